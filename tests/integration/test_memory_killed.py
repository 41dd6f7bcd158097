"""A process killed between any two steps of a commit and of its jobs: nothing accepted is lost or doubled."""

import asyncio
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from memory.audio_store import AudioStore, wav_to_ulaw
from memory.embedded import conninfo_of
from memory.jobs import JobTools, make_app, requeue_stalled, run_pending, sweep_audio
from memory.service import Memory
from memory.store import Store
from memory.summarise import ExtractiveSummariser
from tests.integration.killed_process import ANA, SAID, exchange

STEPS_MAX = 300
ROOT = Path(__file__).parents[2]


def rows(url: str, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


async def recovered(store: Store, service_url: str, database_url: str) -> None:
    """What every service does: jobs of workers that gave no sign of life are queued again, and done."""
    await asyncio.to_thread(
        rows, database_url, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1h'"
    )
    app = make_app(service_url, periodic=False)
    async with app.open_async():
        await requeue_stalled(app)
    await asyncio.to_thread(
        rows, database_url, "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE status = 'todo'"
    )
    await run_pending(service_url, JobTools(store, ExtractiveSummariser()))


async def assert_whole(store: Store, audio: AudioStore, database_url: str, call_sid: str) -> None:
    """One page, whole, with its summary, in one thread that knows of it; and no job that waits or hangs."""
    (page,) = await store.recent_pages(ANA, call_sid, 9)
    assert (page.user_text, page.summary != "") == (SAID, True)
    for path in (page.user_audio_path, page.reply_audio_path):
        wav = await audio.get(path)
        assert wav is not None and len(wav_to_ulaw(wav)) == 800
    (thread,) = await store.threads_of(ANA, [page.page_id])
    assert thread.page_ids == (page.page_id,)
    assert "walnuts" in thread.summary
    left = await asyncio.to_thread(
        rows, database_url, "SELECT task_name, status FROM procrastinate_jobs WHERE status <> 'succeeded'"
    )
    assert left == []


async def test_killed_between_any_two_steps_nothing_accepted_is_lost(
    store: Store, service_url: str, database_url: str, tmp_path: Path
) -> None:
    audio = AudioStore(f"file://{tmp_path}/audio")
    mortal = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.killed_process", service_url, f"{tmp_path}/audio"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    assert mortal.stdin is not None and mortal.stdout is not None
    seen = set()
    for step in range(STEPS_MAX):
        call_sid = f"CA{step}"
        await store.open_call(call_sid, ANA.business_id, ANA.caller, "+12025550100", "hash")
        mortal.stdin.write(f"{call_sid} {step}\n".encode())
        accepted, end = (await mortal.stdout.readline()).decode().split()
        seen.add((accepted, end))
        if accepted == "accepted":
            assert len(await store.recent_pages(ANA, call_sid, 9)) == 1
        else:  # the call, or its spool, still has the exchange, and commits it again
            await Memory(store, audio, None).commit(ANA, exchange(call_sid))
        await recovered(store, service_url, database_url)
        await assert_whole(store, audio, database_url, call_sid)
        if end == "finished":
            break
    mortal.stdin.close()
    await mortal.wait()
    assert seen == {("lost", "killed"), ("accepted", "killed"), ("accepted", "finished")}
    await assert_swept(store, audio, tmp_path / "audio")


def files_in(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file()}


async def assert_swept(store: Store, audio: AudioStore, folder: Path) -> None:
    """Files that no page names go, once they are a day old; the others stay."""
    wavs = files_in(folder)
    orphan = folder / "bakery" / "CA0" / "00009-user.wav"
    orphan.write_bytes(b"of an exchange that was never committed")
    assert await sweep_audio(store, audio, datetime.now(UTC)) == 0
    for path in (*wavs, orphan):
        os.utime(path, (0, 0))
    young = folder / "bakery" / "CA0" / "00008-user.wav"
    young.write_bytes(b"its page may be on its way")
    unfinished = {path for path in wavs if path.suffix == ".part"}
    assert await sweep_audio(store, audio, datetime.now(UTC)) == 1 + len(unfinished)
    assert files_in(folder) == (wavs - unfinished) | {young}
    assert await sweep_audio(store, audio, datetime.now(UTC) + timedelta(hours=25)) == 1
