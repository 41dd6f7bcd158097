"""A failed call that goes on by keys: PINs, hours, tools, people, lines and messages, on a real database."""

from datetime import UTC, datetime

import pytest

from callflows.parse import parse_text
from ivr.registry import Registry
from ivr.web.deps import (
    AskKeys,
    DialReport,
    Ended,
    LeaveLine,
    LineReport,
    Outcome,
    PlaceInLine,
    PutInLine,
    RecordMessage,
    TransferTo,
    WaitOn,
)
from memory.calls import CallStatus
from memory.model import EndedBy, Owner
from memory.store import Store
from tests.integration.test_rescue import NotedTelephony

OWNER = "+12025550144"
NOT_REACHED = "I am sorry, nobody could take the call."
FLOW = """
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Shop.
allow_hosts: [api.example.com]
callers: {owners: ["+12025550144"]}
hours: {office: {weekly: {mon-fri: "09:00-17:00"}}}
tools:
  stock: {description: x, url: "https://api.example.com/stock", result: {left: {kind: number}}}
transfers:
  ann: {number: "+16175550111", description: Ann}
  ben: {number: "+16175550112", description: Ben}
on_model_down: {say: "Our assistant is away.", keys: menu, transfer: ben}
start: talk
nodes:
  talk:
    type: talk
    instructions: Help.
    exits: {menu: {to: menu, when: They want the menu.}}
  menu:
    type: menu
    say: Press a key.
    options:
      "1": {to: pin}
      "2": {to: ask}
      "3": {to: both}
      "4": {to: line}
      "5": {to: message}
  pin: {type: verify, say: Your PIN., to: shut, failed: menu, no_match: {times: 1, say: [Once more.]}}
  shut: {type: override, hours: office, state: closed, to: done, failed: menu}
  done: {type: say, say: It is closed now., to: menu}
  ask: {type: tool, tool: stock, to: done, failed: sorry}
  sorry: {type: say, say: I cannot look that up., to: menu}
  both: {type: transfer, target: ann, fallback: [ben], say: To Ann., otherwise: message}
  line: {type: queue, say: Please wait., hold: You are waiting., max_wait_s: 60, otherwise: message}
  message: {type: voicemail, say: Leave a message., to: thanks}
  thanks: {type: hangup, say: Thank you.}
"""


class Book:
    """One business."""

    def __init__(self) -> None:
        self.business = parse_text(FLOW, "shop.yaml")
        self.businesses = {"shop": self.business}

    def hash_of(self, business_id: str) -> str:
        return "now"

    def by_number(self, number: str) -> object:
        return self.business


class Shop:
    """A call to it that has failed, and what Twilio asks then."""

    def __init__(self, store: Store, pin: str = "123456") -> None:
        self.checked: list[str] = []

        async def check(owner: Owner, given: str) -> bool:
            self.checked.append(given)
            return given == pin

        self.store = store
        self.worker = Registry(store, Book(), NotedTelephony(), check_pin=check)  # type: ignore[arg-type]

    async def failed(self, call_sid: str = "CA1", caller: str = OWNER) -> Outcome:
        """Take the call to the question of its menu."""
        await self.store.open_call(call_sid, "shop", caller, "+16175550101", "now")
        await self.store.claim_stream(call_sid, "MZ1")
        await self.store.end_call(call_sid, CallStatus.FAILED, by=EndedBy.MODEL)
        return await self.worker.keys(call_sid, None)

    async def press(self, *digits: str) -> Outcome:
        for each in digits:
            outcome = await self.worker.keys("CA1", each)
        return outcome


def asked(say: str, most: int = 1) -> AskKeys:
    return AskKeys(say, 7, most, "en-US")


async def test_the_owner_closes_the_business_by_pin(store: Store) -> None:
    shop = Shop(store)
    assert await shop.failed() == asked("Press a key.")
    assert await shop.press("1") == asked("Your PIN.", 0)
    assert await shop.press("123456") == asked("It is closed now. Press a key.")
    (held,) = await store.overrides("shop", datetime.now(UTC))
    assert (held.schedule, held.is_open) == ("office", False)
    row = await store.get_call("CA1")
    assert row is not None and row.status is CallStatus.FAILED
    assert "123456" not in str(row.snapshot)


async def test_three_wrong_pins_are_the_calls_last_however_they_are_asked_for(store: Store) -> None:
    shop = Shop(store)
    await shop.failed()
    await shop.press("1", "111111")
    assert await shop.press("222222") == asked("Press a key.")
    await shop.press("1", "333333")
    assert shop.checked == ["111111", "222222", "333333"]
    assert await shop.press("123456") == asked("Press a key.")
    assert len(shop.checked) == 3
    assert await store.overrides("shop", datetime.now(UTC)) == []


async def test_a_tool_has_failed_and_the_flow_says_so(store: Store) -> None:
    shop = Shop(store)
    await shop.failed()
    assert await shop.press("2") == asked("I cannot look that up. Press a key.")


async def test_people_are_rung_one_after_the_other_then_a_message_is_taken(store: Store) -> None:
    shop = Shop(store)
    await shop.failed()
    assert await shop.press("3") == TransferTo("+16175550111", "To Ann.", leg=1, language="en-US")
    then = await shop.worker.transfer_result(DialReport("CA1", 1, "no-answer"))
    assert isinstance(then, TransferTo)
    assert (then.number, then.leg) == ("+16175550112", 2)
    message = await shop.worker.transfer_result(DialReport("CA1", 2, "busy"))
    assert isinstance(message, RecordMessage)
    assert (message.say, message.leg) == (f"{NOT_REACHED} Leave a message.", 3)
    assert await shop.worker.message_left("CA1", 3, is_empty=False, call_over=False) == Ended(
        "Thank you.", "en-US"
    )


async def test_who_was_connected_is_done(store: Store) -> None:
    shop = Shop(store)
    await shop.failed()
    await shop.press("3")
    assert await shop.worker.transfer_result(DialReport("CA1", 1, "completed", "true")) == Ended()


@pytest.mark.parametrize(("result", "came"), [("queue-full", "full"), ("leave", "timeout")])
async def test_callers_wait_in_the_line_and_leave_it(store: Store, result: str, came: str) -> None:
    shop = Shop(store)
    await shop.failed()
    waits = await shop.press("4")
    assert isinstance(waits, PutInLine)
    assert (waits.say, waits.leg) == ("Please wait.", 1)
    on = await shop.worker.waiting(PlaceInLine("CA1", 1, position=1, waited_s=5))
    assert isinstance(on, WaitOn) and on.text == "You are waiting. You are number 1 in the line."
    if result == "leave":
        assert await shop.worker.waiting(PlaceInLine("CA1", 1, position=1, waited_s=61)) == LeaveLine(came)
    message = await shop.worker.out_of_line(LineReport("CA1", 1, result, waited_s=61))
    assert isinstance(message, RecordMessage) and message.say == f"{NOT_REACHED} Leave a message."


async def test_a_callback_that_comes_twice_is_answered_alike(store: Store) -> None:
    shop = Shop(store)
    await shop.failed()
    await shop.press("3")
    then = await shop.worker.transfer_result(DialReport("CA1", 1, "no-answer"))
    assert await shop.worker.transfer_result(DialReport("CA1", 1, "no-answer")) == then
