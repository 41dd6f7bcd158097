"""Erasure and retention: what goes, what stays, and what must not come back."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import boto3  # type: ignore[import-untyped]
import psycopg
import pytest
from moto.server import ThreadedMotoServer

from memory.audio_store import AudioStore
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.errors import StorageUnavailable, UnknownCall
from memory.jobs import JobTools, delete_doomed, run_pending, upkeep
from memory.ledger import Ledger
from memory.model import Charge, ChargeKind, Exchange, Owner
from memory.service import Memory
from memory.store import Store
from memory.store_erasure import Erased, Erasure, caller_hash
from memory.store_notices import CALL_ENDED
from memory.summarise import ExtractiveSummariser

ANA, BOB = Owner("bakery", "+12025550111"), Owner("bakery", "+12025550122")
ANA_ELSEWHERE = Owner("florist", "+12025550111")
TO = "+12025550100"


@pytest.fixture
def audio(tmp_path: Path) -> AudioStore:
    return AudioStore(f"file://{tmp_path}/audio")


@pytest.fixture
def memory(store: Store, audio: AudioStore) -> Memory:
    return Memory(store, audio, None)


async def a_call(memory: Memory, store: Store, owner: Owner, call_sid: str, *said: str) -> None:
    await store.open_call(call_sid, owner.business_id, owner.caller, TO, "hash")
    for number, text in enumerate(said, start=1):
        await memory.commit(owner, Exchange(call_sid, number, text, "Right.", b"\xff" * 800, b"\xff" * 80))


async def sql(url: str, statement: str) -> list[tuple[object, ...]]:
    async with await psycopg.AsyncConnection.connect(conninfo_of(url), autocommit=True) as connection:
        cursor = await connection.execute(statement.encode())
        return await cursor.fetchall() if cursor.description else []


async def rows_of(url: str, owner: Owner) -> dict[str, int]:
    """How many rows in each table are of this owner."""
    counts = {}
    for table in ("calls", "pages", "page_vectors", "threads"):
        ((count,),) = await sql(
            url,
            f"SELECT count(*) FROM {table} WHERE business_id = '{owner.business_id}' AND caller = '{owner.caller}'",
        )
        counts[table] = int(str(count))
    return counts


def recordings(folder: Path) -> list[str]:
    """The audio files there are, by their paths below `folder`."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.wav"))


async def test_a_forgotten_caller_is_gone_and_nobody_else(
    memory: Memory, store: Store, database_url: str, audio: AudioStore, tmp_path: Path
) -> None:
    for owner, sid in ((ANA, "CA1"), (BOB, "CA2"), (ANA_ELSEWHERE, "CA3")):
        await a_call(memory, store, owner, sid, "I like walnuts", "two loaves")
    await run_pending(database_url, JobTools(store, ExtractiveSummariser()))
    assert (await rows_of(database_url, ANA))["threads"] == 1
    erased, _ = await store.forget(ANA)
    assert erased == Erased(calls=1, pages=2, files=4)
    assert set((await rows_of(database_url, ANA)).values()) == {0}
    assert await sql(database_url, "SELECT count(*) FROM thread_pages WHERE business_id = 'bakery'") == [(2,)]
    for other in (BOB, ANA_ELSEWHERE):
        assert (await rows_of(database_url, other))["pages"] == 2
    assert await store.topics(ANA) == []
    assert [topic.turns for topic in await store.topics(BOB)] == [2]
    assert await delete_doomed(store, audio) == 4
    assert await store.doomed(10) == []
    left = recordings(tmp_path / "audio")
    assert len(left) == 8 and not any(path.startswith("bakery/CA1") for path in left)


async def test_b087_no_table_knows_a_forgotten_caller(
    memory: Memory, store: Store, database_url: str
) -> None:
    """Vectors, PIN, costs, messages, notices, orders, jobs: every column of every table is looked at."""
    await a_call(memory, store, ANA, "CA1", "I like walnuts", "two loaves")
    await store.enrol(ANA, "hash")
    await store.add_charge("bakery", "CA1", Charge("c1", ChargeKind.SPEECH, "m", 0.01, datetime.now(UTC)))
    await store.add_notice("bakery", "CA1", CALL_ENDED, "1")
    assert await tables_that_know(database_url, "2025550111")
    await store.forget(ANA)
    assert await tables_that_know(database_url, "2025550111") == []
    assert await tables_that_know(database_url, "walnuts") == []
    assert (await memory.recall(ANA, "CA2", "walnuts", ())).entries == ()


async def tables_that_know(url: str, text: str) -> list[str]:
    """The tables in which some column of some row contains a text."""
    names = await sql(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    found = [
        (name, await sql(url, f"SELECT 1 FROM {name} AS t WHERE t::text LIKE '%{text}%' LIMIT 1"))
        for (name,) in names
    ]
    return [str(name) for name, rows in found if rows]


async def test_a_commit_that_races_it_is_refused(memory: Memory, store: Store, database_url: str) -> None:
    """At once, in either order: the page is erased, or it is refused."""
    for turn in range(8):
        sid = f"CA{turn}"
        await a_call(memory, store, ANA, sid, "one")
        commit = memory.commit(ANA, Exchange(sid, 2, "two", "Right."))
        _, outcome = await asyncio.gather(store.forget(ANA), commit, return_exceptions=True)
        assert outcome is None or isinstance(outcome, int | UnknownCall)
        with pytest.raises(UnknownCall):
            await memory.commit(ANA, Exchange(sid, 3, "three", "Right."))
        assert (await rows_of(database_url, ANA))["pages"] == 0


async def test_nobody_cannot_be_forgotten(store: Store) -> None:
    with pytest.raises(ValueError, match="withheld"):
        await store.forget(Owner("bakery", None))


async def test_who_calls_again_afterwards_is_new_and_stays(memory: Memory, store: Store) -> None:
    await a_call(memory, store, ANA, "CA1", "old words")
    before = datetime.now(UTC) - timedelta(seconds=5)
    await store.forget(ANA)
    assert await store.was_erased_since(ANA, before)
    assert not await store.was_erased_since(ANA_ELSEWHERE, before)
    assert not await store.was_erased_since(ANA, datetime.now(UTC) + timedelta(seconds=5))
    await a_call(memory, store, ANA, "CA2", "new words")
    assert [page.user_text for page in await store.recent_pages(ANA, "CA2", 9)] == ["new words"]


async def test_a_restored_backup_brings_nobody_back(
    memory: Memory, store: Store, database_url: str, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "data" / "erasures.jsonl")
    assert ledger.entries() == []
    assert await store.erase_again(ledger.entries()) == Erased()
    await a_call(memory, store, ANA, "CA1", "old words")
    await a_call(memory, store, BOB, "CA2", "his words")
    _, entry = await store.forget(ANA)
    ledger.add(entry)
    assert ledger.entries() == [entry]
    await sql(database_url, "DELETE FROM erasures")  # the backup is older than the erasure, ...
    await a_call(memory, store, ANA, "CA1", "old words")
    await sql(database_url, "UPDATE calls SET started_at = now() - interval '1 day' WHERE call_sid = 'CA1'")
    await a_call(memory, store, ANA, "CA3", "said since then")  # ... and she has called since
    assert await store.erase_again(ledger.entries()) == Erased(1, 1, 2)
    assert await store.get_call("CA1") is None
    assert [page.user_text for page in await store.recent_pages(ANA, "CA3", 9)] == ["said since then"]
    assert await store.erase_again(ledger.entries()) == Erased()
    assert (await rows_of(database_url, BOB))["pages"] == 1


def test_a_ledger_line_cut_off_by_a_crash_spoils_no_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "erasures.jsonl")
    entries = [Erasure("bakery", f"hash{n}", datetime(2026, 11, 30, tzinfo=UTC)) for n in range(2)]
    ledger.add(entries[0])
    with (tmp_path / "erasures.jsonl").open("a") as file:
        file.write('{"business": "bak')
    ledger.add(entries[1])
    assert ledger.entries() == entries
    assert (tmp_path / "erasures.jsonl").stat().st_mode & 0o077 == 0


def test_the_hash_tells_business_and_caller_apart() -> None:
    hashes = {
        caller_hash(key, business, caller)
        for key, business, caller in [
            ("k", "a", "+11"),
            ("k", "a1", "+1"),
            ("k", "b", "+11"),
            ("l", "a", "+11"),
        ]
    }
    assert len(hashes) == 4


async def test_calls_expire_by_their_business(
    memory: Memory, store: Store, database_url: str, tmp_path: Path
) -> None:
    for owner, sid in ((ANA, "CA1"), (ANA, "CA2"), (ANA, "CA3"), (ANA_ELSEWHERE, "CA4")):
        await a_call(memory, store, owner, sid, f"words of {sid}")
    for sid in ("CA1", "CA2", "CA4"):
        await store.end_call(sid, CallStatus.FINISHED)
    await sql(
        database_url,
        "UPDATE calls SET ended_at = ended_at - interval '40 days', last_activity_at = now() - interval '40 days'"
        " WHERE call_sid <> 'CA2'",
    )
    tools = JobTools(
        store,
        ExtractiveSummariser(),
        audio=AudioStore(f"file://{tmp_path}/audio"),
        retention={"bakery": timedelta(days=30)},
    )
    await upkeep(tools, datetime.now(UTC))
    assert await store.get_call("CA1") is None
    for sid in ("CA2", "CA3", "CA4"):  # young; under way; of a business that keeps
        assert await store.get_call(sid) is not None
    left = recordings(tmp_path / "audio")
    assert len(left) == 6 and not any(path.startswith("bakery/CA1") for path in left)


async def test_a_topic_that_loses_a_call_is_told_anew(
    memory: Memory, store: Store, database_url: str
) -> None:
    await a_call(memory, store, ANA, "CA1", "My code word is pelican", "and I like rye")
    await run_pending(database_url, JobTools(store, ExtractiveSummariser()))
    await store.end_call("CA1", CallStatus.FINISHED)
    await sql(database_url, "UPDATE calls SET ended_at = now() - interval '9 days'")
    await a_call(memory, store, ANA, "CA2", "A rye loaf, please")
    ((thread,),) = await sql(database_url, "SELECT thread_id FROM threads")
    await sql(
        database_url,
        "INSERT INTO thread_pages (business_id, thread_id, page_id)"
        f" SELECT 'bakery', {thread}, page_id FROM pages WHERE call_id = 'CA2'",
    )
    assert "pelican" in (await store.topics(ANA))[0].summary
    await store.expire("bakery", datetime.now(UTC) - timedelta(days=1))
    await run_pending(database_url, JobTools(store, ExtractiveSummariser()))
    (topic,) = await store.topics(ANA)
    assert topic.turns == 1 and "pelican" not in topic.summary and "rye" in topic.summary


async def test_files_that_cannot_be_deleted_now_are_deleted_later(
    memory: Memory, store: Store, audio: AudioStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_call(memory, store, ANA, "CA1", "one")
    await store.forget(ANA)
    with monkeypatch.context() as patch:
        patch.setattr(audio, "_delete", lambda _: (_ for _ in ()).throw(OSError("away")))
        with pytest.raises(StorageUnavailable):
            await delete_doomed(store, audio)
    assert len(await store.doomed(10)) == 2
    assert await delete_doomed(store, audio) == 2


async def test_every_version_of_an_object_is_deleted() -> None:
    server = ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        client.create_bucket(Bucket="calls")
        client.put_bucket_versioning(Bucket="calls", VersioningConfiguration={"Status": "Enabled"})
        audio = AudioStore(
            "s3://calls/audio", key="test", secret="test", client_kwargs={"endpoint_url": endpoint}
        )
        for data in (b"first", b"second"):
            await audio.put("bakery/CA1/00001-user.wav", data)
        await audio.put("bakery/CA1/00001-user.wav2", b"another")
        await audio.delete("bakery/CA1/00001-user.wav")
        await audio.delete("bakery/CA1/00001-user.wav")
        versions = client.list_object_versions(Bucket="calls")
        assert [v["Key"] for v in versions.get("Versions", [])] == ["audio/bakery/CA1/00001-user.wav2"]
        assert versions.get("DeleteMarkers", []) == []
        assert await audio.get("bakery/CA1/00001-user.wav") is None
    finally:
        server.stop()
