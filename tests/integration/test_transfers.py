"""Transfers in the database: whichever worker is asked, however often, the call goes on once."""

import asyncio

from callflows import engine
from callflows.parse import parse_text
from ivr.core.setup import restore, snapshot_of
from ivr.core.speaking import SpeedState
from ivr.registry import Registry
from ivr.web.deps import DialReport, Ended, GoOn, RecordMessage, TransferTo, Whispered
from memory.calls import CallStatus
from memory.model import EndedBy
from memory.store import Store
from tests.integration.test_rescue import NotedTelephony
from tests.unit.callflows.test_rings import HELP

BUSINESS = parse_text(HELP, "help.yaml")
OLDER = HELP.replace("Nobody is there.", "Nobody was there.")


class Book:
    """One business in use."""

    def __init__(self) -> None:
        self.businesses = {"help": BUSINESS}

    def by_number(self, number: str) -> None:
        return None

    def hash_of(self, business_id: str) -> str:
        return "now"

    def text_of(self, business_id: str) -> str:
        return HELP


def registry(store: Store) -> Registry:
    """A worker's."""
    return Registry(store, Book(), NotedTelephony())


async def left(store: Store, call_sid: str, keys: str, flow_hash: str = "now", flow: str = HELP) -> None:
    """A call that pressed these keys and has left its stream."""
    await store.open_call(call_sid, "help", "+12025550144", "+16175550101", flow_hash)
    epoch = await store.claim_stream(call_sid, "MZ1")
    business = parse_text(flow, "flow.yaml")
    state = engine.start(business)
    for key in keys:
        state = engine.step(business, state, engine.Key(key), engine.Moment()).state
    assert state.is_away()
    await store.save_snapshot(
        call_sid, epoch, snapshot_of(state, 4, SpeedState(), None, resumed=False, standing=None)
    )
    await store.end_call(call_sid, CallStatus.TRANSFERRED, epoch)


async def test_b061_a_list_is_gone_through_by_whichever_worker_is_asked(store: Store) -> None:
    await left(store, "CA1", "1")
    one, two = registry(store), registry(store)
    first = await one.outcome("CA1")
    assert first == TransferTo("+16175550102", timeout_s=15, whispers=True, leg=1, language="en-US")
    assert await two.whisper("CA1") == Whispered("A call of . Press five to take it.", "5", "en-US")
    second = await two.transfer_result(DialReport("CA1", 1, "busy"))
    assert isinstance(second, TransferTo)
    assert (second.number, second.leg) == ("+16175550103", 2)
    assert second.say == "Nobody has answered there. I am trying somebody else. Calling Bob."
    assert await one.transfer_result(DialReport("CA1", 1, "busy")) == second  # told twice: answered alike
    assert await one.outcome("CA1") == second
    third = await one.transfer_result(DialReport("CA1", 2, "completed", bridged="false"))
    assert isinstance(third, TransferTo)
    assert third.number == "+16175550104"
    assert await two.transfer_result(DialReport("CA1", 3, "no-answer")) == GoOn()
    row = await store.get_call("CA1")
    assert row is not None
    assert (row.status, row.ended_at, row.epoch) == (CallStatus.ACTIVE, None, 2)
    restored = restore(row.snapshot)
    assert restored.opening == "Nobody is there. Please call again later. What else can I do for you?"
    assert restored.exchange_no == 4
    assert await two.transfer_result(DialReport("CA1", 3, "no-answer")) == GoOn()
    assert await one.transfer_result(DialReport("CA1", 1, "busy")) == GoOn()
    assert await store.claim_stream("CA1", "MZ2") == 3


async def test_two_workers_told_at_once_move_the_call_once(store: Store) -> None:
    await left(store, "CA1", "1")
    workers = [registry(store) for _ in range(4)]
    answers = await asyncio.gather(*(w.transfer_result(DialReport("CA1", 1, "busy")) for w in workers))
    assert {answer.number for answer in answers if isinstance(answer, TransferTo)} == {"+16175550103"}
    row = await store.get_call("CA1")
    assert row is not None
    assert restore(row.snapshot).flow_json["trip"]["no"] == 2  # type: ignore[index]


async def test_b061_all_ends_of_a_dial(store: Store) -> None:
    for no, status in enumerate(("busy", "no-answer", "failed", "canceled", "")):
        await left(store, f"CA{no}", "3")
        assert await registry(store).transfer_result(DialReport(f"CA{no}", 1, status)) == GoOn()
    for no, report in enumerate(
        (DialReport("CB0", 1, "completed", "true"), DialReport("CB1", 1, "busy", call_over=True)), start=0
    ):
        await left(store, f"CB{no}", "3")
        assert await registry(store).transfer_result(report) == Ended()
        row = await store.get_call(f"CB{no}")
        assert row is not None
        assert row.status is CallStatus.TRANSFERRED
    assert await registry(store).transfer_result(DialReport("CAunknown", 1, "busy")) == Ended()
    assert await registry(store).whisper("CAunknown") is None


async def test_a_call_goes_on_with_the_flow_that_it_began_with(store: Store) -> None:
    await store.save_flow("older", OLDER)
    await left(store, "CA1", "1", "older")
    workers = registry(store)
    for leg in (1, 2, 3):
        await workers.transfer_result(DialReport("CA1", leg, "busy"))
    row = await store.get_call("CA1")
    assert row is not None
    assert (restore(row.snapshot).opening or "").startswith("Nobody was there.")


async def test_who_reaches_nobody_without_a_model_leaves_a_message(store: Store) -> None:
    down = "\non_model_down: {say: Sorry., transfer: cat, voicemail: Speak after the tone.}\n"
    book = Book()
    business = parse_text(HELP + down, "help.yaml")
    book.businesses = {"help": business}
    worker = Registry(store, book, NotedTelephony())
    await store.open_call("CA1", "help", "+12025550144", "+16175550101", "now")
    await store.claim_stream("CA1", "MZ1")
    await store.end_call("CA1", CallStatus.FAILED, by=EndedBy.MODEL)
    assert await worker.outcome("CA1") == TransferTo(
        business.transfers["cat"].number, "Sorry.", language="en-US"
    )
    asked = await worker.transfer_result(DialReport("CA1", 0, "no-answer"))
    assert asked == RecordMessage("Speak after the tone.", 120, 5, "#", False, 0, "en-US")
    assert await worker.message_left("CA1", 0, is_empty=False, call_over=False) == Ended()
