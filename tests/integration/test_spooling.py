"""Writes without a database: kept in order on disk, replayed once, by this process or the next."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NoReturn

import pytest

from ivr.core.commands import EndReason
from ivr.remembering import Claim, Prices, StoreJournal
from ivr.spool import SpoolFolder
from ivr.spooling import Spool, SpooledJournal
from memory.audio_store import AudioStore
from memory.calls import CallRow, CallStatus
from memory.errors import StorageUnavailable
from memory.model import LATE_NO, Access, CallSnapshot, EndedBy, Exchange, Owner, Page
from memory.service import Memory
from memory.store import AudioPaths, Store

ANA = Owner("bakery", "+12025550111")
TO = "+12025550100"
PRICES = Prices("gpt-realtime-2.1", "gpt-realtime-whisper")


@dataclass
class Worker:
    """A process with this data folder."""

    store: Store
    folder: Path
    spool: Spool = field(init=False)
    memory: Memory = field(init=False)
    claim: Claim = field(init=False)
    journal: SpooledJournal = field(init=False)

    def __post_init__(self) -> None:
        self.memory = Memory(self.store, AudioStore(f"file://{self.folder}/audio"), None)
        self.spool = Spool(SpoolFolder(self.folder / "spool"), self.memory, self.store, PRICES)

    def begin(self, call_sid: str = "CA1", stream_sid: str = "MZ1") -> None:
        self.claim = Claim(self.store, ANA, call_sid, stream_sid, TO, "hash")
        memory = self.memory.of_call(ANA, call_sid)
        direct = StoreJournal(memory, self.store, self.claim, PRICES)
        self.journal = self.spool.journal(direct, self.claim, PRICES)

    async def say(self, number: int, text: str) -> None:
        await self.journal.commit_exchange(
            Exchange(self.claim.call_sid, number, text, "Right.", b"\xff" * 800)
        )
        await self.journal.save_snapshot(CallSnapshot(1, {"exchange_no": number + 1}))

    def dies(self) -> None:
        """As kill -9 does: the system closes its files."""
        if self.journal._file is not None:
            self.journal._file.release()

    def files(self) -> list[str]:
        return [path.suffix for path in (self.folder / "spool").glob("*")]


class Outage:
    """While it lasts no transaction of this store begins."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch) -> None:
        self._store = store
        self._patch = patch

    def begins(self) -> None:
        self._patch.setattr(self._store, "_transaction", self._unreachable)

    def ends(self) -> None:
        self._patch.undo()

    def _unreachable(self, *_entry: object) -> NoReturn:
        raise StorageUnavailable("the database is away")


@pytest.fixture
def outage(store: Store) -> Iterator[Outage]:
    with pytest.MonkeyPatch.context() as patch:
        yield Outage(store, patch)


async def pages(store: Store, call_sid: str = "CA1") -> list[Page]:
    return await store.recent_pages(ANA, call_sid, 50)


async def row(store: Store, call_sid: str = "CA1") -> CallRow:
    found = await store.get_call(call_sid)
    assert found is not None
    return found


def said(found: list[Page]) -> list[str]:
    return [page.user_text for page in found]


async def test_a_database_that_answers_is_written_at_once(store: Store, tmp_path: Path) -> None:
    worker = Worker(store, tmp_path)
    worker.begin()
    await worker.say(1, "Two loaves")
    assert said(await pages(store)) == ["Two loaves"]
    assert worker.files() == []


async def test_a_call_goes_on_without_a_database_and_is_whole_afterwards(
    store: Store, outage: Outage, tmp_path: Path
) -> None:
    worker = Worker(store, tmp_path)
    worker.begin()
    await worker.say(1, "one")
    outage.begins()
    await worker.say(2, "two")
    await worker.say(3, "three")
    outage.ends()
    await worker.say(4, "four")  # behind what waits, not before it
    assert said(await pages(store)) == ["one"]
    await worker.spool.replay()
    assert said(await pages(store)) == ["one", "two", "three", "four"]
    await worker.say(5, "five")
    outage.begins()
    await worker.journal.end(EndReason.FINISHED, EndedBy.CALLER)
    worker.spool.over(worker.journal)
    outage.ends()
    await worker.spool.replay()
    ended = await row(store)
    assert ended.status is CallStatus.FINISHED
    assert ended.snapshot == CallSnapshot(1, {"exchange_no": 6})
    assert len(await pages(store)) == 5
    assert (await pages(store))[1].user_audio_path
    assert worker.files() == []


async def test_the_next_process_replays_what_a_killed_one_left(
    store: Store, outage: Outage, tmp_path: Path
) -> None:
    """It had never reached the database; the call is nobody else's."""
    killed = Worker(store, tmp_path)
    killed.begin()
    outage.begins()
    await killed.say(1, "one")
    await killed.say(2, "two")
    killed.dies()
    outage.ends()
    successor = Worker(store, tmp_path)
    await successor.spool.replay()
    await successor.spool.replay()
    assert said(await pages(store)) == ["one", "two"]
    assert (await row(store)).snapshot == CallSnapshot(1, {"exchange_no": 3})
    assert successor.files() == []


@pytest.mark.parametrize("had_epoch", [True, False])
async def test_what_was_said_survives_a_newer_stream_that_keeps_its_state(
    store: Store, outage: Outage, tmp_path: Path, *, had_epoch: bool
) -> None:
    """The old stream's state and end are void, its exchanges are not, and the new one is not thrown out."""
    killed = Worker(store, tmp_path)
    killed.begin()
    if had_epoch:
        await killed.claim.epoch()
    outage.begins()
    await killed.say(1, "old words")
    await killed.journal.end(EndReason.DROPPED, EndedBy.NETWORK)
    killed.dies()
    outage.ends()
    successor = Worker(store, tmp_path)
    successor.begin(stream_sid="MZ2")
    await successor.say(1, "new words")
    for _ in range(2):
        await successor.spool.replay()
    assert said(await pages(store)) == ["old words", "new words"]
    assert [page.exchange_no for page in await pages(store)] == [LATE_NO + 1, 1]
    await successor.say(2, "and more")
    kept = await row(store)
    assert (kept.status, kept.snapshot) == (CallStatus.ACTIVE, CallSnapshot(1, {"exchange_no": 3}))


async def test_a_late_exchange_has_the_place_that_it_was_spoken_at(
    store: Store, outage: Outage, tmp_path: Path
) -> None:
    """In the window, for a resumed call, and for people; and it counts as said before whatever came after it."""
    killed = Worker(store, tmp_path)
    killed.begin()
    await killed.say(1, "first")
    outage.begins()
    await killed.say(2, "second, on disk")
    killed.dies()
    outage.ends()
    successor = Worker(store, tmp_path)
    successor.begin(stream_sid="MZ2")
    await successor.say(2, "third")
    for _ in range(2):
        await successor.spool.replay()
    await successor.say(3, "fourth")
    order = ["first", "second, on disk", "third", "fourth"]
    assert said(await pages(store)) == order
    assert [turn.page.user_text for turn in await store.turns_of(ANA, "CA1")] == order
    window = await successor.memory.recall(ANA, "CA1", "", ())
    assert said([entry.page for entry in window.entries]) == order
    assert await store.next_exchange_no("CA1", LATE_NO) == 4
    since = await successor.memory.recall(ANA, "CA1", "", (), access=Access(older=False, since_no=3))
    assert said([entry.page for entry in since.entries]) == ["fourth"]


async def test_a_worker_whose_clock_is_wrong_puts_nothing_into_the_future(store: Store) -> None:
    await store.open_call("CA1", ANA.business_id, ANA.caller, TO, "hash")
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    late = Exchange("CA1", 1, "one", "Right.", is_late=True, spoken_at=tomorrow)
    await store.commit_page(ANA, late, AudioPaths())
    assert (await pages(store))[0].created_at < tomorrow


async def test_a_replay_that_breaks_off_goes_on_where_it_stood(
    store: Store, outage: Outage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = Worker(store, tmp_path)
    worker.begin()
    outage.begins()
    await worker.say(1, "one")
    await worker.say(2, "two")
    outage.ends()
    monkeypatch.setattr(worker.journal, "_replayed", 2)  # as after a replay that broke off behind the first
    await store.open_call("CA1", ANA.business_id, ANA.caller, TO, "hash")
    await worker.spool.replay()
    assert said(await pages(store)) == ["two"]


async def test_an_erased_call_does_not_come_back(store: Store, outage: Outage, tmp_path: Path) -> None:
    killed = Worker(store, tmp_path)
    killed.begin()
    await killed.claim.epoch()
    outage.begins()
    await killed.say(1, "forget me")
    killed.dies()
    outage.ends()
    async with store.transaction(ANA.business_id) as connection:
        await connection.exec_driver_sql("DELETE FROM calls")
    successor = Worker(store, tmp_path)
    await successor.spool.replay()
    assert await store.get_call("CA1") is None
    assert successor.files() == []


async def test_what_an_erased_caller_said_before_does_not_come_back(
    store: Store, outage: Outage, tmp_path: Path
) -> None:
    """The call had begun without a database, so its row would be made by the replay."""
    killed = Worker(store, tmp_path)
    killed.begin()
    outage.begins()
    await killed.say(1, "forget me")
    killed.dies()
    outage.ends()
    await store.forget(ANA)
    successor = Worker(store, tmp_path)
    await successor.spool.replay()
    assert await store.get_call("CA1") is None
    assert successor.files() == []


async def test_a_file_that_cannot_be_read_is_set_aside_and_holds_up_nobody(
    store: Store, outage: Outage, tmp_path: Path
) -> None:
    worker = Worker(store, tmp_path)
    worker.begin()
    outage.begins()
    await worker.say(1, "one")
    worker.dies()
    outage.ends()
    (tmp_path / "spool" / "00000000000000000001-x.jsonl").write_bytes(b'{"what":"is this"}\n')
    successor = Worker(store, tmp_path)
    await successor.spool.replay()
    assert said(await pages(store)) == ["one"]
    assert successor.files() == [".bad"]
