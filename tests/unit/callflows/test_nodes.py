"""Every kind of node at work, step by step, in a conversation without a telephone."""

import json
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows import engine
from callflows.conversation import MASK, Conversation
from callflows.engine import Begin, FlowState, HangUp, Moment, Moved, Say, Step, Transfer
from callflows.model import Business
from tests.unit.callflows.examples import unhurried
from tests.unit.callflows.nodes import shop

SHOP = shop()
NEW_YORK = ZoneInfo("America/New_York")
OPEN = Moment(datetime(2026, 1, 7, 10, 0, tzinfo=NEW_YORK), "+12025550144")
"""A Wednesday morning."""
CLOSED = Moment(datetime(2026, 1, 7, 18, 0, tzinfo=NEW_YORK), "+12025550144")
GREETING = "This is a machine. The Shop. Calls are recorded."


def conversation(moment: Moment = OPEN, business: Business = SHOP) -> tuple[Conversation, str]:
    call = Conversation(business, moment)
    return call, call.begin().said()


def test_a_call_begins_where_hours_and_caller_lead_it() -> None:
    call, said = conversation()
    assert (said, call.state.node) == (f"{GREETING} Press one to order, two for Spanish.", "menu")
    call, said = conversation(CLOSED)
    assert (said, call.state.ended) == (f"{GREETING} We are closed.", "hung_up")
    call, said = conversation(Moment(OPEN.now, "+12025550143"))
    assert (said, call.state.target) == (f"{GREETING} To the owner.", "boss")
    call, said = conversation(Moment(OPEN.now, "+12025550199"))
    assert (said, call.state.ended) == ("No.", "hung_up")
    assert conversation(Moment(None))[0].state.ended == "hung_up"  # a time not known is closed


def test_a_choice_by_key_by_digit_and_by_words() -> None:
    for doing in ("press", "number one", "I'd like to order"):
        call, _ = conversation()
        reaction = call.press("1") if doing == "press" else call.say(doing)
        assert reaction.said() == "How many?"


def test_a_choice_that_begins_like_another_waits_for_more() -> None:
    call, _ = conversation()
    assert call.press("3").actions[0] == Moved("main")
    call, _ = conversation()
    assert call.press("33").said() == "PIN?"


def test_no_match_and_no_input_have_counts_of_their_own() -> None:
    call, _ = conversation()
    prompt = "Press one to order, two for Spanish."
    assert call.press("7").said() == f"Sorry? {prompt}"
    assert call.wait().said() == f"Hello? {prompt}"
    assert call.say("what").said() == f"Please. {prompt}"
    assert call.wait().said() == f"Hello? {prompt}"
    assert call.wait().said() == "We are closed."
    call, _ = conversation()
    for _ in range(2):
        call.press("7")
    assert call.press("7").actions == (HangUp(""),)


def test_star_repeats_and_zero_reaches_the_operator() -> None:
    call, _ = conversation()
    assert call.press("*").said() == "Press one to order, two for Spanish."
    assert call.state.progress == engine.start(SHOP).progress
    assert call.press("0").said() == "One moment."
    assert call.state.target == "desk"


def test_the_language_changes_and_holds() -> None:
    call, _ = conversation()
    assert call.press("2").said() == "Pulse uno."
    assert call.state.language == "es-US"
    assert call.press("1").said() == "Cuantos?"
    assert "The language is es-US" in engine.instructions(SHOP, call.state)
    assert call.say("operadora").said() == "Un momento."


def test_a_value_is_checked_read_back_and_kept() -> None:
    call, _ = conversation()
    call.press("1")
    assert call.say("thirty").said() == "How many?"
    assert call.say("six").said() == "6, right?"
    assert call.say("no").said() == "How many?"
    assert call.say("six").said() == "6, right?"
    assert call.say("seven, sorry").said() == "7, right?"
    assert call.say("yes").said() == "Which day?"
    assert call.state.slots == {"party": 7}
    assert call.say("tomorrow").said() == "7 on Thursday, January 8. (the model speaks)"
    assert call.state.slots == {"party": 7, "day": "2026-01-08"}


@pytest.mark.parametrize(
    ("party", "node"), [("nine", "boss"), ("eight", "day"), ("one", "day"), ("twelve", "boss")]
)
def test_branches_look_at_slots(party: str, node: str) -> None:
    call, _ = conversation()
    call.press("1")
    call.say(party)
    call.say("yes")
    assert call.state.node == node


def test_commands_work_wherever_the_flow_listens() -> None:
    call, _ = conversation()
    call.press("1")
    assert call.say("repeat that please").said() == "How many?"
    assert call.say("start over").said() == "Press one to order, two for Spanish."
    assert call.say("goodbye").actions == (HangUp(""),)


def test_emergency_words_work_everywhere_but_for_secrets() -> None:
    call, _ = conversation()
    urgent = call.say("there is a fire here").actions
    assert urgent[0] == Say("Dial nine one one.", interruptible=False)
    call.press("3")
    assert call.say("Fire!").actions == (Say("Dial nine one one.", interruptible=False), Begin())
    assert call.say("a robbery").actions == (
        Say("Stay calm.", interruptible=False),
        Transfer("desk", "+16175550102", "One moment."),
    )


def test_a_secret_is_taken_by_keys_and_shown_to_nobody() -> None:
    call, _ = conversation()
    call.press("33")
    awaited = engine.awaits(SHOP, call.state)
    assert awaited is not None
    assert (awaited.secret, awaited.words, awaited.keys) == (True, False, True)
    assert call.say("seven three nine one").actions == ()
    call.press("73")
    assert "73" not in json.dumps(call.state.to_json())
    call, _ = conversation()
    call.press("33")
    assert call.press("7391").said() == "To the owner."
    assert call.slots() == {"pin": MASK}
    assert "7391" not in json.dumps(call.state.to_json())
    assert "7391" not in repr(call.state)


def test_the_model_leads_to_a_menu_and_the_menu_back() -> None:
    call, _ = conversation()
    call.press("3")
    assert call.offered() == ("leave_again", "leave_done", "transfer", "hang_up")
    assert call.call("leave_again").said() == "Press one to order, two for Spanish."
    assert call.offered() == ()
    assert call.call("leave_again").refusal.startswith("unknown_function")


def test_a_call_that_goes_on_elsewhere_asks_again() -> None:
    call, _ = conversation()
    call.press("1")
    call.say("six")
    restored = FlowState.from_json(json.loads(json.dumps(call.state.to_json())), SHOP)
    assert restored == call.state
    assert engine.again(SHOP, restored, OPEN) == Step(restored, (Say("6, right?"),))


def test_a_circle_that_is_made_at_run_time_ends_the_call() -> None:
    """`check` refuses such a file; a model made otherwise must not hang a worker either."""
    nodes = {
        "a": {"type": "say", "say": "x", "to": "b"},
        "b": {"type": "say", "say": "y", "to": "a"},
    }
    business = Business.model_validate({**SHOP.model_dump(), "start": "a", "nodes": nodes, "operator": None})
    first = engine.begin(business, OPEN)
    assert first.state.ended == "hung_up"
    assert len(first.actions) < 200


# -- any event in any order ----------------------------------------------------------------------------------

_EVENTS = st.one_of(
    st.builds(engine.Key, st.sampled_from("0123456789*#")),
    st.just(engine.KeysDone()),
    st.just(engine.Silence()),
    st.builds(
        engine.Words,
        st.sampled_from(
            ["", "order", "spanish", "six", "yes", "no", "tomorrow", "operator", "repeat", "start over"]
        )
        | st.text(max_size=20),
    ),
    st.sampled_from(["leave_again", "leave_done", "transfer", "nonsense"]),
)


@unhurried
@given(st.lists(_EVENTS, max_size=40), st.sampled_from([OPEN, CLOSED, Moment()]))
def test_from_every_reachable_state_each_event_leads_to_a_defined_state(
    events: list[engine.Event | str], moment: Moment
) -> None:
    state = engine.begin(SHOP, moment).state
    for event in events:
        before = state
        if isinstance(event, str):
            result = engine.apply(SHOP, state, event, "{}", moment)
            actions = result.actions if isinstance(result, engine.Applied) else ()
            state = result.state if isinstance(result, engine.Applied) else state
        else:
            step = engine.step(SHOP, state, event, moment)
            state, actions = step.state, step.actions
        assert len(actions) < 20
        assert_defined(state, before)
        if isinstance(event, engine.Silence) and engine.takes_events(SHOP, before):
            assert actions, "silence must lead somewhere"


def assert_defined(state: FlowState, before: FlowState) -> None:
    assert state.node in SHOP.nodes
    if before.ended:
        assert state == before
    elif not state.ended:
        node = SHOP.node(state.node)
        assert node is not None
        assert node.WAITS
        assert (engine.awaits(SHOP, state) is None) != engine.takes_events(SHOP, state)
    stored = FlowState.from_json(json.loads(json.dumps(state.to_json())), SHOP)
    assert (stored.node, stored.slots, stored.ended) == (state.node, state.slots, state.ended)
    assert stored.secrets == {}


@unhurried
@given(st.text(alphabet="0123456789", min_size=4, max_size=4).filter(lambda pin: pin != "2026"))
def test_no_secret_is_ever_written(pin: str) -> None:
    call, _ = conversation()
    call.press("33")
    written = []
    for digit in pin:
        call.press(digit)
        written.append(json.dumps(call.state.to_json()))
    assert all(pin not in text for text in written)


def test_silence_alone_ends_every_call() -> None:
    for node, kind in SHOP.nodes.items():
        state = engine.at_node(SHOP, node)
        if kind.type not in ("menu", "collect"):
            continue
        for _ in range(20):
            state = engine.step(SHOP, state, engine.Silence(), OPEN).state
        assert state.ended
