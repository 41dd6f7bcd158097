"""Being taken back: nothing of a broken call is entered before a yes, and what is no answer is not taken for one."""

from dataclasses import replace

import pytest

from callflows import engine
from callflows.actions import Begin, HangUp, Moved, Say, Transfer
from callflows.engine import FlowState, Key, Moment, Silence, Words
from callflows.model import Business
from callflows.parse import parse_text
from callflows.stock import SHALL_WE

TALKING = """\
id: clinic
name: The Clinic
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello, this is the clinic.
announcement: This call is recorded.
transfers:
  desk: {number: "+16175550102", description: reception}
operator: desk
start: main
nodes:
  main:
    type: talk
    instructions: Answer questions.
    exits: {book: {to: size, when: the caller wants to book}}
  booking: {type: talk, topic: booking an appointment, instructions: Ask which day suits.}
  size: {type: collect, slot: size, kind: number, say: "How many people?", to: booking}
"""
MENU_FIRST = TALKING.replace("start: main", "start: size").replace(
    "to: booking}", "to: booking, no_input: {to: main}}"
)
BROKEN = FlowState(1, "booking", {"size": 4}, secrets={"pin": "1234"})
WHEN = Moment()


def business(text: str = TALKING) -> Business:
    return parse_text(text, "clinic.yaml")


def pending(of: Business, *, is_old: bool = False) -> FlowState:
    return engine.offered(of, BROKEN, asks=True, is_old=is_old)


def after(state: FlowState, *events: engine.Event, of: Business | None = None) -> engine.Step:
    of = of or business()
    step = engine.Step(state, ())
    for event in events:
        step = engine.step(of, step.state, event, WHEN)
    return step


@pytest.mark.parametrize(
    "text",
    [
        "Yes.",
        "Yes please, go on",
        "yeah, is she there on Friday?",
        "Go on!",
        "sure",
        "let's continue",
        "ja",
        "sí",
    ],
)
def test_a_yes_takes_the_call_up(text: str) -> None:
    step = after(pending(business()), Words(text))
    assert (step.state.node, step.state.slots, step.state.taken_up) == ("booking", {"size": 4}, True)
    assert step.state.offered is None
    assert step.actions == (Moved("booking"), Begin())


@pytest.mark.parametrize(
    "text", ["No.", "no thanks", "start over", "I have a new question, something else", "nein"]
)
def test_a_no_begins_anew(text: str) -> None:
    step = after(pending(business()), Words(text))
    assert (step.state.node, step.state.slots, step.state.taken_up) == ("main", {}, False)
    assert step.state.offered is None
    assert step.actions[-1] == Begin()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "What is the right time on Friday?",
        "Right, what does it cost?",
        "Please tell me the price",
        "No, go on",
        "Who is this?",
        "okay so what is your address",
        "my sister told me that I could just continue paying by card if I want to do that",
    ],
)
def test_anything_else_enters_nothing_and_the_model_hears_it(text: str) -> None:
    step = after(pending(business()), Words(text))
    assert (step.state.node, step.state.slots, step.state.taken_up) == ("main", {}, False)
    assert step.state.offered is not None
    assert step.actions == (Begin(),)
    # From here on a yes may be an answer to anything: only the model's function takes the call up.
    assert not engine.takes_events(business(), step.state)
    assert after(step.state, Words("yes")).state.offered is not None
    taken = engine.take_up(business(), step.state, WHEN)
    assert (taken.state.node, taken.actions) == ("booking", (Moved("booking"),))


def test_where_the_flow_asks_first_it_is_asked_once_more_then_begun_anew() -> None:
    flow = business(MENU_FIRST)
    once = after(pending(flow), Words("four"), of=flow)
    assert once.actions == (Say(SHALL_WE["en"]),)
    twice = after(once.state, Words("four"), of=flow)
    assert twice.state.offered is None
    assert (twice.state.node, twice.state.slots) == ("size", {})


def test_keys_silence_and_commands() -> None:
    state = pending(business())
    assert after(state, Key("1")).state.node == "booking"
    assert after(state, Key("2")).state == after(state, Words("no")).state
    assert after(state, Key("7")).state == state
    assert after(state, Silence()).actions == (Say(SHALL_WE["en"]),)
    assert after(state, Words("say that again")).actions == (Say(SHALL_WE["en"]),)
    hung_up = after(state, Silence(), Silence(), Silence())
    assert (hung_up.state.ended, hung_up.actions) == ("hung_up", (HangUp(""),))
    for wish in (Key("0"), Words("operator")):
        assert isinstance(after(state, wish).actions[-1], Transfer)


def test_old_values_are_confirmed_first() -> None:
    asked = after(pending(business(), is_old=True), Words("yes"))
    assert asked.actions == (Say("You had told me: size: 4. Is that still right?"),)
    assert asked.state.offered is not None
    kept = after(asked.state, Words("that's right"))
    assert (kept.state.node, kept.state.slots) == ("booking", {"size": 4})
    dropped = after(asked.state, Words("no"))
    assert (dropped.state.node, dropped.state.slots, dropped.state.taken_up) == ("main", {}, True)
    unclear = after(asked.state, Words("hm"))
    assert unclear.actions == asked.actions
    assert after(unclear.state, Words("hm")).state.slots == {}


def test_straight_goes_on_at_once_unless_values_are_old() -> None:
    flow = business()
    assert engine.offered(flow, BROKEN, asks=False, is_old=False) == replace(BROKEN, taken_up=True)
    old = engine.offered(flow, BROKEN, asks=False, is_old=True)
    assert engine.again(flow, old, WHEN).actions == (Say("You had told me: size: 4. Is that still right?"),)
    assert engine.resume_offer(flow, old).endswith("Let us go on from there.")


def test_an_offer_survives_a_worker_and_secrets_never_do() -> None:
    flow = business()
    state = pending(flow, is_old=True)
    restored = FlowState.from_json(state.to_json(), flow)
    assert restored == replace(state, offered=replace(BROKEN, taken_up=True, is_old=True, secrets={}))
    assert "1234" not in repr(state.to_json())
    back = after(restored, Words("yes"), Words("yes"))
    assert back.state.secrets == {}
    assert engine.again(flow, restored, WHEN).actions == (Say(SHALL_WE["en"]),)


def test_who_goes_another_way_has_declined() -> None:
    flow = business()
    talked = after(pending(flow), Words("I would like a table"))
    left = engine.apply(flow, talked.state, "leave_book", "{}", WHEN)
    assert isinstance(left, engine.Applied)
    assert (left.state.node, left.state.offered, left.state.taken_up) == ("size", None, False)


def test_every_opening_says_that_calls_are_recorded() -> None:
    flow = business()
    for said in (
        engine.greeting(flow),
        engine.resume_offer(flow, pending(flow)),
        engine.resume_offer(flow, BROKEN),
        engine.generic_offer(flow),
    ):
        assert "This call is recorded." in said
    assert "booking" not in engine.generic_offer(flow)


def test_an_emergency_comes_before_the_offer() -> None:
    flow = business(TALKING + 'emergency: [{words: [fire], say: "Call 911."}]\n')
    step = after(pending(flow), Words("yes there is a fire"), of=flow)
    assert step.actions[0] == Say("Call 911.", interruptible=False)
    assert step.state.slots == {}
