"""What a call writes while storage is away: in order, nothing said is lost, and what waits is bounded."""

import asyncio
from datetime import UTC, datetime

from ivr.core.commands import EndReason
from ivr.writing import WAITING_AUDIO_BYTES, JournalWriter
from memory.model import CallSnapshot, Charge, ChargeKind, Exchange
from tests.unit.core.call_rig import FakeClock, FakeJournal, play

PAID = Charge("c1", ChargeKind.TRANSCRIPTION, "whisper", 0.01, datetime(2026, 1, 1, tzinfo=UTC))
SECOND = b"\x7f" * 8_000
"""Of µ-law."""


def said(number: int, seconds: int = 1) -> Exchange:
    return Exchange("CA1", number, f"Words {number}.", "Yes.", SECOND * seconds, SECOND)


def stands(number: int) -> CallSnapshot:
    return CallSnapshot(1, {"at": number})


def writer(journal: FakeJournal) -> JournalWriter:
    return JournalWriter(journal, FakeClock(), lambda: None)


async def written(journal: FakeJournal, writes: JournalWriter) -> list[object]:
    """All of it, once storage is back."""
    running = asyncio.create_task(writes.run())
    await asyncio.sleep(5)
    assert journal.written == []
    journal.is_down = False
    writes.close()
    await running
    return list(journal.written)


def test_of_the_snapshots_that_wait_only_the_newest_is_written_after_what_it_tells_of() -> None:
    async def scene() -> None:
        journal = FakeJournal()
        journal.is_down = True
        writes = writer(journal)
        for number in range(1, 1_001):
            writes.snapshot(stands(number))
            if number % 500 == 0:
                writes.exchange(said(number))
        writes.snapshot(stands(1_001))
        writes.charge(PAID)
        writes.end(EndReason.FINISHED, None)
        assert await written(journal, writes) == [
            said(500),
            said(1_000),
            stands(1_001),
            PAID,
            EndReason.FINISHED,
        ]

    play(scene)


def test_a_snapshot_that_is_being_written_is_not_left_out() -> None:
    async def scene() -> None:
        journal = FakeJournal()
        journal.is_down = True
        writes = writer(journal)
        writes.snapshot(stands(1))
        running = asyncio.create_task(writes.run())
        await asyncio.sleep(1)
        writes.snapshot(stands(2))
        journal.is_down = False
        writes.close()
        await running
        assert journal.written == [stands(1), stands(2)]

    play(scene)


def test_more_audio_than_may_wait_is_left_out_and_the_words_are_not() -> None:
    async def scene() -> None:
        journal = FakeJournal()
        journal.is_down = True
        writes = writer(journal)
        minutes = 40
        for number in range(1, minutes + 1):
            writes.exchange(said(number, seconds=59))
        exchanges = [what for what in await written(journal, writes) if isinstance(what, Exchange)]
        assert [each.user_text for each in exchanges] == [f"Words {n}." for n in range(1, minutes + 1)]
        kept = [each for each in exchanges if each.user_ulaw]
        assert kept == exchanges[: WAITING_AUDIO_BYTES // (60 * 8_000)]
        assert all(not each.reply_ulaw for each in exchanges[len(kept) :])

    play(scene)


def test_audio_waits_again_once_what_waited_is_written() -> None:
    async def scene() -> None:
        journal = FakeJournal()
        writes = writer(journal)
        running = asyncio.create_task(writes.run())
        for number in range(1, 41):
            writes.exchange(said(number, seconds=59))
            await asyncio.sleep(1)
        writes.close()
        await running
        assert all(isinstance(what, Exchange) and what.user_ulaw for what in journal.written)
        assert len(journal.written) == 40

    play(scene)
