"""Who the caller seems to be, and what a reply may be made of: an offer, another person, a shared number."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from callflows import engine
from callflows.model import Hears, MemoryUse
from callflows.parse import parse_text
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.setup import restore
from ivr.core.standing import Standing, shown
from memory.model import Access, Form, Page, Trust, Window, WindowEntry
from tests.unit.core.harness import SPEECH, World, calling, clinic, speech

OLD = datetime(2026, 1, 1, tzinfo=UTC)
USUAL = MemoryUse()
OPT_IN = MemoryUse(hears=Hears(number="all"))
STRICT = MemoryUse(hears=Hears(number="nothing", attested="nothing"))


def page(page_id: int, call_id: str, text: str, no: int = 1) -> Page:
    return Page(page_id, call_id, no, text, "", "", "", "", 0, 0, False, "", OLD)


EARLIER = Window(
    (
        WindowEntry(page(1, "CA0", "my test is on Monday"), Form.TRANSCRIPT, 5),
        WindowEntry(page(2, "CA1", "said in this call"), Form.TRANSCRIPT, 5),
    ),
    ("a topic about the test",),
)


# -- the policy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("standing", "memory", "resumed", "older"),
    [
        (Standing(Trust.NONE), OPT_IN, False, False),
        (Standing(Trust.NUMBER), USUAL, True, False),
        (Standing(Trust.NUMBER), OPT_IN, True, True),
        (Standing(Trust.NUMBER), STRICT, False, False),
        (Standing(Trust.ATTESTED), USUAL, True, True),
        (Standing(Trust.ATTESTED), STRICT, False, False),
        (Standing(Trust.VERIFIED), STRICT, True, True),
        (Standing(Trust.NUMBER, is_silent=True), OPT_IN, True, False),
        (Standing(Trust.ATTESTED, is_silent=True), USUAL, True, False),
        (Standing(Trust.VERIFIED, is_silent=True), USUAL, True, True),
        (Standing(Trust.ATTESTED, is_shared=True), OPT_IN, False, False),
        (Standing(Trust.VERIFIED, is_shared=True), USUAL, True, True),
        (Standing(Trust.ATTESTED, is_other=True), OPT_IN, False, False),
        (Standing(Trust.VERIFIED, is_other=True), OPT_IN, False, False),
    ],
)
def test_what_each_standing_may_hear(
    standing: Standing, memory: MemoryUse, resumed: bool, older: bool
) -> None:
    access = standing.access(memory)
    assert (access.resumed, access.older) == (resumed, older)
    assert access.trust is standing.trust
    assert access.only_verified is standing.is_shared


@pytest.mark.parametrize(
    ("trust", "after_s"), [(Trust.ATTESTED, 9.5), (Trust.NUMBER, 9.5), (Trust.VERIFIED, 0.0)]
)
def test_what_was_said_before_a_long_silence_is_for_who_is_verified(trust: Trust, after_s: float) -> None:
    assert Standing(trust, new_since_s=9.5).access(OPT_IN).after_s == after_s


def test_a_standing_survives_a_worker() -> None:
    standing = Standing(
        Trust.ATTESTED, is_shared=True, is_silent=True, new_since_s=8.5, is_other=True, since_no=3
    )
    assert Standing.from_json(standing.to_json()) == standing
    assert Standing.from_json(None) is None
    assert Standing.from_json({"trust": 9}) is None


def test_what_is_shown_of_a_window() -> None:
    assert shown(EARLIER, "CA1", 1, past=True) == EARLIER
    hidden = shown(EARLIER, "CA1", 1, past=False)
    assert ([entry.page.page_id for entry in hidden.entries], hidden.threads) == ([2], ())
    assert shown(EARLIER, "CA1", 2, past=False).entries == ()


# -- in a call -----------------------------------------------------------------------------------------------


def told(reply: do.StartReply) -> str:
    return repr(reply.input)


def offering(*answers: object, standing: Standing | None = None) -> World:
    """A call in which going on with a broken one is offered."""
    business = clinic()
    broken = engine.FlowState(1, "booking", {"day": "Friday"})
    flow = engine.offered(business, broken, asks=True, is_old=False)
    world = World(
        *answers,  # type: ignore[arg-type]
        flow=flow,
        opening=engine.resume_offer(business, flow),
        standing=standing or Standing(Trust.NUMBER),
    )
    world.window = EARLIER
    world.greet()
    return world


def test_before_a_yes_nothing_of_the_broken_call_is_shown() -> None:
    world = offering(speech("At nine."))
    world.says("When do you open?")
    world.run(5_000)
    (reply,) = world.asked()
    assert "Monday" not in told(reply)
    assert "a topic about" not in told(reply)
    assert "Friday" not in told(reply) + reply.instructions
    assert "Ask which day suits." not in reply.instructions
    assert {"go_on", "start_afresh"} <= {tool.name for tool in reply.tools}
    state = world.of(do.SaveSnapshot)[-1].snapshot.state
    assert state["resumed"] is False
    assert restore(world.of(do.SaveSnapshot)[-1].snapshot).flow_json["offered"]["node"] == "booking"  # type: ignore[index]


def test_a_yes_takes_the_caller_back() -> None:
    world = offering(speech("Which day?"))
    world.says("Yes please.")
    world.run(5_000)
    (reply,) = world.asked()
    assert "Monday" in told(reply)
    assert "Ask which day suits." in reply.instructions
    assert "go_on" not in {tool.name for tool in reply.tools}
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["resumed"] is True
    assert world.of(do.Recall)[-1].access == Access(older=False, trust=Trust.NUMBER)


def test_the_model_may_understand_a_yes_that_we_do_not() -> None:
    world = offering(calling(("go_on", "{}")), speech("Which day?"))
    world.says("I would rather like that.")
    world.run(5_000)
    first, second = world.asked()
    assert "Monday" not in told(first)
    assert "Monday" in told(second)
    assert "Ask which day suits." in second.instructions


def test_a_no_begins_anew_and_what_was_offered_is_gone() -> None:
    world = offering(speech("How can I help?"), calling(("go_on", "{}")), speech("I cannot."))
    world.says("No, something else.")
    world.run(5_000)
    world.says("Go on with the old one.")
    world.run(5_000)
    assert all("Monday" not in told(reply) for reply in world.asked())
    assert world.of(do.SaveSnapshot)[-1].snapshot.state["resumed"] is False
    assert all(not recall.access.resumed for recall in world.of(do.Recall)[-1:])


def test_b085_another_person_hears_nothing_of_the_one_before() -> None:
    world = World(
        speech("Your test is on Monday."),
        calling(("another_person", "{}")),
        speech("I cannot tell."),
        speech("Still not."),
        standing=Standing(Trust.ATTESTED),
    )
    world.window = EARLIER
    world.greet()
    world.says("When is my test?")
    world.run(6_000)
    world.says("This is Ben. What do you know about me?")
    world.run(6_000)
    world.says("And now?")
    world.run(6_000)
    first, second, third, fourth = world.asked()
    assert "Monday" in told(first)
    assert "Monday" in told(second), "it was this reply that noticed"
    for reply in (third, fourth):
        assert "Monday" not in told(reply)
        assert "When is my test" not in told(reply), "what was told of the past is the other's too"
        assert "a topic about" not in told(reply)
    assert "What do you know about me?" in told(fourth)
    access = world.of(do.Recall)[-1].access
    assert (access.resumed, access.older, access.since_no) == (False, False, 2)
    kept = restore(world.of(do.SaveSnapshot)[-1].snapshot).standing
    assert kept is not None
    assert (kept.is_other, kept.is_shared) == (True, True)


def test_another_person_does_not_go_on_with_the_broken_call() -> None:
    world = offering(calling(("another_person", "{}")), speech("How can I help you?"))
    world.says("Hm, this is Ben.")
    world.run(5_000)
    assert [e.flow_node for e in world.exchanges()] == ["main"]
    flow = world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]
    assert ("offered" in flow, flow["slots"]) == (False, {})
    assert all("Monday" not in told(reply) for reply in world.asked())


def test_where_nothing_was_remembered_a_handed_over_telephone_goes_on() -> None:
    """What this call said itself stays: nobody was spoken of but who spoke."""
    world = World(
        speech("Noted."), calling(("another_person", "{}")), speech("Yes."), standing=Standing(Trust.NUMBER)
    )
    world.greet()
    world.says("I need a table for four.")
    world.run(6_000)
    world.says("She gave me the phone. Is it noted?")
    world.run(6_000)
    assert "table for four" in told(world.asked()[-1])


def test_pages_carry_the_trust_they_were_spoken_at() -> None:
    world = World(speech("Fine."), standing=Standing(Trust.ATTESTED))
    world.greet()
    world.says("Hello there.")
    world.run(6_000)
    assert [exchange.trust for exchange in world.exchanges()] == [Trust.ATTESTED]


def test_words_never_raise_trust() -> None:
    standing = Standing(Trust.NUMBER)
    assert replace(standing).another_person(4, saw_past=True).trust is Trust.NUMBER


# -- PINs ----------------------------------------------------------------------------------------------------


BANK = """\
id: bank
name: The Bank
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Bank.
start: pin
nodes:
  pin: {type: verify, say: Your PIN., no_match: {times: 5}, to: account, failed: desk}
  account: {type: talk, instructions: Talk about the account.}
  desk: {type: talk, instructions: Talk about anything else.}
"""


def at_the_bank(standing: Standing) -> World:
    world = World(speech("Yes."), speech("Yes."), business=parse_text(BANK, "bank.yaml"), standing=standing)
    world.window = EARLIER
    world.greet()
    world.run(4_000)
    return world


def enters(world: World, pin: str, *, right: bool) -> None:
    """The caller enters a PIN; what checks it says whether it is right."""
    known = len(world.of(do.CheckPin))
    world.press(*pin, "#")
    checks = world.of(do.CheckPin)[known:]
    assert [check.pin for check in checks] == [pin]
    world.happen(ev.ToolAnswered(checks[0].key, right))
    world.run(4_000)


def test_a_pin_brings_back_what_is_remembered() -> None:
    world = at_the_bank(Standing(Trust.NUMBER, is_silent=True))
    enters(world, "123456", right=True)
    world.says("What do you know?")
    world.run(6_000)
    assert world.of(do.Recall)[-1].access == Access(resumed=False, trust=Trust.VERIFIED)
    assert "Monday" in told(world.asked()[-1])
    assert world.exchanges()[-1].trust is Trust.VERIFIED
    assert "123456" not in repr([save.snapshot.state for save in world.of(do.SaveSnapshot)])
    heard = b"".join(command.ulaw for command in world.of(do.Hear))
    assert SPEECH not in heard[: len(heard) // 2]


def test_too_many_wrong_pins_leave_the_call_to_its_number_and_a_right_one_then_opens_nothing() -> None:
    world = at_the_bank(Standing(Trust.ATTESTED))
    for _ in range(3):
        enters(world, "111111", right=False)
    enters(world, "123456", right=True)
    world.says("What do you know?")
    world.run(6_000)
    state = restore(world.of(do.SaveSnapshot)[-1].snapshot)
    assert state.standing is not None
    assert (state.standing.trust, state.standing.failures) == (Trust.NUMBER, 3)
    assert state.flow_json is not None
    assert state.flow_json["node"] == "pin"


def test_who_is_verified_is_who_is_remembered_again() -> None:
    other = Standing(Trust.ATTESTED).another_person(4, saw_past=True)
    back = other.verified()
    assert (back.trust, back.is_other) == (Trust.VERIFIED, False)
    assert back.access(USUAL) == Access(only_verified=True, since_no=4)
    assert Standing(Trust.NONE).failed().failed().failed().trust is Trust.NONE
