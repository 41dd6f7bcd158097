"""Lines in the database: whichever worker Twilio asks, however often, a caller leaves one for one reason, once."""

import asyncio
import io
import wave

import pytest

from callflows import engine
from callflows.parse import parse_text
from ivr.core.setup import restore, snapshot_of
from ivr.core.speaking import SpeedState
from ivr.lines import as_wav, piece_of
from ivr.registry import Registry
from ivr.web.deps import (
    DialReport,
    Ended,
    GoOn,
    LeaveLine,
    LineReport,
    MusicPiece,
    PlaceInLine,
    PutInLine,
    TakeFromLine,
    WaitOn,
)
from memory.calls import CallStatus
from memory.store import Store
from tests.integration.test_rescue import NotedTelephony
from tests.unit.callflows.test_queue import SHOP, STAFF

BUSINESS = parse_text(SHOP, "shop.yaml")
MUSIC = bytes(range(256)) * 100


class Book:
    """One business in use."""

    def __init__(self) -> None:
        self.businesses = {"shop": BUSINESS}

    def by_number(self, number: str) -> None:
        return None

    def hash_of(self, business_id: str) -> str:
        return "now"

    def text_of(self, business_id: str) -> str:
        return SHOP


def registry(store: Store) -> Registry:
    """A worker's."""
    return Registry(store, Book(), NotedTelephony(), sound={"hold.wav": MUSIC}.__getitem__)


async def left(store: Store, call_sid: str, key: str = "1", caller: str = "+12025550144") -> None:
    """A call that pressed this key and has left its stream."""
    await store.open_call(call_sid, "shop", caller, "+16175550101", "now")
    epoch = await store.claim_stream(call_sid, "MZ1")
    moment = engine.Moment(None, caller)
    state = engine.step(BUSINESS, engine.start(BUSINESS), engine.Key(key), moment).state
    if key == "3":
        for digit in "482913#":
            state = engine.step(BUSINESS, state, engine.Key(digit), moment).state
        assert state.using is not None
        state = engine.step(BUSINESS, state, engine.ToolAnswer(state.using.key, True), moment).state
    assert state.is_away()
    kept = snapshot_of(state, 4, SpeedState(), None, resumed=False, standing=None, may_return=True)
    await store.save_snapshot(call_sid, epoch, kept)
    await store.end_call(call_sid, CallStatus.TRANSFERRED, epoch)


async def test_that_a_caller_may_be_called_back_stands_when_they_leave_a_line(store: Store) -> None:
    await left(store, "CA1")
    assert await registry(store).waiting(PlaceInLine("CA1", 1, 2, 7, "*")) == LeaveLine("left")
    row = await store.get_call("CA1")
    assert row is not None
    assert restore(row.snapshot).may_return


async def row_status(store: Store, call_sid: str) -> CallStatus:
    row = await store.get_call(call_sid)
    assert row is not None
    return row.status


async def test_a_caller_waits_and_leaves_by_key_in_any_worker(store: Store) -> None:
    await left(store, "CA1")
    one, two = registry(store), registry(store)
    assert await one.outcome("CA1") == PutInLine("shop.line", "", 1, "en-US")
    waits = WaitOn("Please hold. You are number 2 in the line.", "en-US", True, "*", 20)
    assert await one.waiting(PlaceInLine("CA1", 1, 2, 0)) == waits
    assert await two.waiting(PlaceInLine("CA1", 1, 2, 0)) == waits  # asked twice
    assert await two.waiting(PlaceInLine("CA1", 1, 2, 7, "*")) == LeaveLine("left")
    assert await one.waiting(PlaceInLine("CA1", 1, 1, 8)) == LeaveLine("left")  # it stands
    for worker in (one, two, one):
        assert await worker.out_of_line(LineReport("CA1", 1, "leave", 8)) == GoOn()
    row = await store.get_call("CA1")
    assert row is not None
    assert (row.status, row.epoch) == (CallStatus.ACTIVE, 2)
    restored = restore(row.snapshot)
    assert restored.opening == "You gave up."
    assert restored.exchange_no == 4


async def test_two_workers_told_at_once_move_the_call_once(store: Store) -> None:
    await left(store, "CA1")
    workers = [registry(store) for _ in range(4)]
    await asyncio.gather(*(each.waiting(PlaceInLine("CA1", 1, 9, 0)) for each in workers))
    report = LineReport("CA1", 1, "leave", 0)
    answers = await asyncio.gather(*(each.out_of_line(report) for each in workers))
    assert set(answers) == {GoOn()}
    row = await store.get_call("CA1")
    assert row is not None
    assert (row.epoch, restore(row.snapshot).opening) == (2, "Too many wait.")


@pytest.mark.parametrize(
    ("result", "waited_s", "outcome", "status"),
    [
        ("leave", 50, Ended("Nobody was free. Call again."), CallStatus.FINISHED),
        ("error", 3, Ended("Nobody was free. Call again."), CallStatus.FINISHED),
        ("system-error", 3, Ended("Nobody was free. Call again."), CallStatus.FINISHED),
        ("", 3, Ended("Nobody was free. Call again."), CallStatus.FINISHED),
        ("queue-full", 0, GoOn(), CallStatus.ACTIVE),
        ("bridged", 9, Ended(), CallStatus.TRANSFERRED),
        ("redirected-from-bridged", 9, Ended(), CallStatus.TRANSFERRED),
        ("redirected", 9, Ended(), CallStatus.TRANSFERRED),
        ("hangup", 9, Ended(), CallStatus.FINISHED),
    ],
)
async def test_every_result_that_twilio_documents(
    store: Store, result: str, waited_s: int, outcome: object, status: CallStatus
) -> None:
    await left(store, "CA1")
    for _ in range(2):
        answer = await registry(store).out_of_line(LineReport("CA1", 1, result, waited_s))
        assert answer == outcome or status is CallStatus.FINISHED
    assert await row_status(store, "CA1") is status


async def test_who_hangs_up_after_talking_was_served(store: Store) -> None:
    await left(store, "CA1")
    report = LineReport("CA1", 1, "bridged", 9, call_over=True)
    assert await registry(store).out_of_line(report) == Ended()
    assert await row_status(store, "CA1") is CallStatus.TRANSFERRED


async def test_what_is_not_known_waits_on_and_what_is_over_leaves(store: Store) -> None:
    work = registry(store)
    assert await work.waiting(PlaceInLine("CAunknown", 1, 1, 0)) == WaitOn()
    assert await work.out_of_line(LineReport("CAunknown", 1, "leave", 0)) == Ended()
    await left(store, "CA1")
    await work.out_of_line(LineReport("CA1", 1, "hangup", 3, call_over=True))
    assert await work.waiting(PlaceInLine("CA1", 1, 1, 20)) == LeaveLine("over")
    await left(store, "CA2")
    assert await work.waiting(PlaceInLine("CA2", 7, 1, 0)) == LeaveLine("over")  # of an earlier stay


async def test_the_staff_serve_one_after_the_other(store: Store) -> None:
    await left(store, "CA1", "3", STAFF)
    one, two = registry(store), registry(store)
    assert await one.outcome("CA1") == TakeFromLine("shop.line", 120, "", 1, "en-US")
    after = TakeFromLine("shop.line", 120, "", 2, "en-US")
    assert await one.transfer_result(DialReport("CA1", 1, "completed")) == after
    assert await two.transfer_result(DialReport("CA1", 1, "completed")) == after  # told twice
    assert await two.transfer_result(DialReport("CA1", 2, "no-answer")) == GoOn()
    row = await store.get_call("CA1")
    assert row is not None
    assert restore(row.snapshot).opening == "Nobody is waiting."


async def test_music_is_there_for_who_waits_only(store: Store) -> None:
    work = registry(store)
    await left(store, "CA1")
    sound = await work.hold_music(MusicPiece("CA1", 1, 2))
    assert sound is not None
    with wave.open(io.BytesIO(sound)) as file:
        assert (file.getframerate(), file.getnframes()) == (8_000, 16_000)
    await left(store, "CA2", "2")  # Spanish, for which there is no file
    assert await work.hold_music(MusicPiece("CA2", 0, 2)) is None
    assert await work.hold_music(MusicPiece("CAunknown", 0, 2)) is None


def test_music_begins_again_where_it_ends() -> None:
    sound = bytes(250) + b"\x01" * 12_000
    assert piece_of(sound, 0, 2) == (sound * 2)[:16_000]
    assert piece_of(sound, 1, 1) == (sound * 2)[8_000:16_000]
    assert len(as_wav(b"\xff" * 80)) == 44 + 160
