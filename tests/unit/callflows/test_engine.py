"""What the model may do, what comes of it, and that nothing it sends does harm."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callflows.engine import (
    Applied,
    FlowState,
    HangUp,
    Moved,
    Refused,
    Transfer,
    apply,
    at_node,
    functions,
    greeting,
    resume_offer,
    start,
    topic,
)
from callflows.model import Business, Talk
from tests.unit.callflows.examples import clinic, unhurried

CLINIC = clinic()


def applied(state: FlowState, name: str, arguments: str = "") -> Applied:
    result = apply(CLINIC, state, name, arguments)
    assert isinstance(result, Applied), result
    return result


def refusal(state: FlowState, name: str, arguments: str) -> str:
    result = apply(CLINIC, state, name, arguments)
    assert isinstance(result, Refused), result
    assert 0 < len(result.message) < 200
    return result.code


def test_functions_of_a_node_are_schemas() -> None:
    specs = {spec.name: spec for spec in functions(CLINIC, start(CLINIC))}
    assert list(specs) == ["leave_booking", "leave_nurse", "leave_done", "transfer", "hang_up"]
    assert specs["transfer"].parameters == {
        "type": "object",
        "properties": {"target": {"type": "string", "enum": ["desk"]}},
        "required": ["target"],
        "additionalProperties": False,
    }
    assert "desk: reception" in specs["transfer"].description
    assert "the caller wants an appointment" in specs["leave_booking"].description
    assert all(spec.parameters["additionalProperties"] is False for spec in specs.values())


def test_no_transfer_function_where_nobody_may_be_reached() -> None:
    business = clinic("transfers: [desk]", "transfers: []")
    assert "transfer" not in [spec.name for spec in functions(business, start(business))]
    assert isinstance(apply(business, start(business), "transfer", '{"target": "desk"}'), Refused)


def test_transfer_goes_to_the_files_number() -> None:
    result = applied(start(CLINIC), "transfer", '{"target": "desk"}')
    assert result.actions == (Transfer("desk", "+16175550102", "One moment."),)
    assert (result.state.ended, result.state.target, result.state.node) == ("transferred", "desk", "main")


def test_hanging_up_ends_the_flow() -> None:
    result = applied(start(CLINIC), "hang_up")
    assert result.actions == (HangUp(""),)
    assert result.state.ended == "hung_up"


def test_exits_move_to_talk() -> None:
    result = applied(start(CLINIC), "leave_booking", "{}")
    assert result.actions == (Moved("booking"),)
    assert result.state == at_node(CLINIC, "booking")
    assert applied(result.state, "leave_back").state == start(CLINIC)


def test_exits_into_transfer_and_hang_up_nodes_act_at_once() -> None:
    result = applied(start(CLINIC), "leave_nurse")
    assert result.actions == (Moved("nurse"), Transfer("nurse", "+16175550103", "I am getting the nurse."))
    assert (result.state.ended, result.state.target) == ("transferred", "nurse")
    result = applied(start(CLINIC), "leave_done")
    assert result.actions == (Moved("bye"), HangUp("Goodbye."))
    assert result.state.ended == "hung_up"


def test_a_transfer_node_without_words_uses_the_targets() -> None:
    business = clinic("target: nurse, say: I am getting the nurse.", "target: desk")
    result = apply(business, start(business), "leave_nurse", "")
    assert isinstance(result, Applied)
    assert result.actions[-1] == Transfer("desk", "+16175550102", "One moment.")


@pytest.mark.parametrize("name", ["transfer", "hang_up", "leave_booking", "anything"])
def test_after_the_end_every_call_is_refused(name: str) -> None:
    over = applied(start(CLINIC), "hang_up").state
    assert refusal(over, name, "{}") == "flow_ended"
    assert functions(CLINIC, over) == ()


@pytest.mark.parametrize(
    "arguments",
    ['{"target": "de', "null", "[1]", "", "   ", "1", '"desk"', "{}", "[" * 9_000, "x" * 20_000, "NaN"],
)
def test_b054_broken_arguments_do_nothing(arguments: str) -> None:
    assert refusal(start(CLINIC), "transfer", arguments) == "bad_arguments"


def test_b054_arguments_must_be_exactly_those_asked_for() -> None:
    assert (
        refusal(start(CLINIC), "transfer", '{"target": "desk", "number": "+19005550100"}') == "bad_arguments"
    )
    assert refusal(start(CLINIC), "hang_up", '{"why": "x"}') == "bad_arguments"
    assert refusal(start(CLINIC), "hang_up", "null") == "bad_arguments"


def test_b054_nothing_is_no_arguments_for_a_function_without_parameters() -> None:
    assert applied(start(CLINIC), "hang_up", "").state.ended
    assert applied(start(CLINIC), "leave_done", "").state.ended


@pytest.mark.parametrize(
    "name", ["no_such_tool", "", "leave_", "leave_back", "leave_nobody", "TRANSFER", "\x00"]
)
def test_b054_unknown_functions(name: str) -> None:
    assert refusal(start(CLINIC), name, "{}") == "unknown_function"


@pytest.mark.parametrize("target", ["+19005550100", "nurse", "", "DESK", None, 1, ["desk"], {"desk": 1}])
def test_b086_only_targets_of_the_file_can_be_dialled(target: object) -> None:
    assert refusal(start(CLINIC), "transfer", json.dumps({"target": target})) == "unknown_target"


def test_a_refusal_repeats_nothing_of_what_was_sent() -> None:
    result = apply(CLINIC, start(CLINIC), "transfer", '{"target": "secret-words"}')
    assert isinstance(result, Refused)
    assert "secret" not in result.message


# -- state ---------------------------------------------------------------------------------------------------


def test_a_state_survives_json() -> None:
    for state in (at_node(CLINIC, "booking"), applied(start(CLINIC), "leave_nurse").state):
        assert FlowState.from_json(json.loads(json.dumps(state.to_json())), CLINIC) == state


def test_a_node_that_has_vanished_or_talks_no_more_resumes_at_the_start() -> None:
    smaller = clinic(
        "      booking: {to: booking, when: the caller wants an appointment}\n",
        "      done2: {to: booking, when: x}\n",
    )
    stored = {"version": 1, "node": "gone", "slots": {"a": 1}, "ended": ""}
    assert FlowState.from_json(stored, smaller) == FlowState(1, "main", {"a": 1})
    assert FlowState.from_json({"node": "bye"}, CLINIC) == start(CLINIC)


def test_a_flow_that_has_ended_stays_ended_whatever_else_is_lost() -> None:
    state = FlowState.from_json({"node": "gone", "ended": "transferred", "target": "gone"}, CLINIC)
    assert state == FlowState(1, "main", ended="transferred")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_STORED = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("version", "node", "slots", "ended", "target"), _JSON)
)


@unhurried
@given(_JSON | _STORED)
def test_any_stored_state_can_be_gone_on_from(stored: object) -> None:
    state = FlowState.from_json(stored, CLINIC)
    assert state.node in CLINIC.nodes
    assert isinstance(apply(CLINIC, state, "hang_up", ""), Applied | Refused)


# -- greetings -----------------------------------------------------------------------------------------------


def test_greetings() -> None:
    assert greeting(CLINIC) == "Hello, this is the clinic."
    assert topic(CLINIC, start(CLINIC)) == ""
    assert topic(CLINIC, at_node(CLINIC, "booking")) == "booking an appointment"


@pytest.mark.parametrize(
    ("node", "middle"),
    [("main", "."), ("booking", " while talking about booking an appointment.")],
)
def test_the_offer_to_go_on_tells_the_nodes_own_topic_and_nothing_else(node: str, middle: str) -> None:
    offer = resume_offer(CLINIC, at_node(CLINIC, node))
    assert offer == f"Welcome back to The Clinic. We were cut off{middle} Shall we go on, or start afresh?"


@pytest.mark.parametrize(
    ("policy", "node", "said"),
    [
        ("greeting: never", "booking", "Hello, this is the clinic."),
        (
            "greeting: straight",
            "booking",
            "Welcome back to The Clinic. We were cut off while talking about booking an appointment. Let us go on from "
            "there.",
        ),
        ("say: Noch einmal zu {topic}?", "booking", "Noch einmal zu booking an appointment?"),
        (
            "say: Noch einmal zu {topic}?",
            "main",
            "Welcome back to The Clinic. We were cut off. Shall we go on, or start afresh?",
        ),
        ("say: Weiter?", "main", "Weiter?"),
    ],
)
def test_the_policy_of_going_on(policy: str, node: str, said: str) -> None:
    business = clinic("start:", f"resume:\n  {policy}\nstart:")
    assert resume_offer(business, at_node(business, node)) == said


# -- any flow, any events ------------------------------------------------------------------------------------

_NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
_TARGETS = ("x", "y")


@st.composite
def businesses(draw: st.DrawFn) -> Business:
    names = sorted(draw(st.sets(_NAMES, min_size=1)))
    ways = st.dictionaries(
        st.sampled_from(["one", "two", "hang_up", "transfer"]),
        st.fixed_dictionaries({"to": st.sampled_from(names), "when": st.just("asked")}),
    )
    allowed = st.none() | st.lists(st.sampled_from(_TARGETS), unique=True)
    talk = st.fixed_dictionaries(
        {"type": st.just("talk"), "instructions": st.just("talk"), "transfers": allowed, "exits": ways}
    )
    transfer = st.fixed_dictionaries({"type": st.just("transfer"), "target": st.sampled_from(_TARGETS)})
    nodes = {name: draw(talk | transfer | st.just({"type": "hangup"})) for name in names[1:]}
    numbers = {name: {"number": f"+1617555011{i}", "description": name} for i, name in enumerate(_TARGETS)}
    first = {names[0]: draw(talk)}
    changes = {"transfers": numbers, "start": names[0], "nodes": first | nodes}
    return Business.model_validate({**CLINIC.model_dump(), **changes})


_ARGUMENTS = (
    st.sampled_from(["", "{}", "null", "[]", '{"target": "x"}', '{"target": "z"}', '{"a": 1}']) | st.text()
)


@unhurried
@given(businesses(), st.data())
def test_from_every_reachable_state_each_event_leads_to_a_defined_state(
    business: Business, data: st.DataObject
) -> None:
    seen: set[str] = set()
    ahead = [start(business)]
    while ahead:
        state = ahead.pop()
        if state.node in seen:
            continue
        seen.add(state.node)
        assert FlowState.from_json(state.to_json(), business) == state
        offered = [spec.name for spec in functions(business, state)]
        for name in [*offered, data.draw(st.text(max_size=10))]:
            for arguments in ("", "{}", '{"target": "x"}', '{"target": "y"}', data.draw(_ARGUMENTS)):
                result = apply(business, state, name, arguments)
                if isinstance(result, Applied):
                    assert_defined(business, result)
                    ahead.extend([] if result.state.ended else [result.state])


def assert_defined(business: Business, result: Applied) -> None:
    assert result.output
    for action in result.actions:
        match action:
            case Transfer(target=target, number=number):
                assert business.transfers[target].number == number
                assert (result.state.ended, result.state.target) == ("transferred", target)
            case HangUp():
                assert result.state.ended == "hung_up"
            case Moved(node=node):
                assert result.state.node == node
    if not result.state.ended:
        assert isinstance(business.nodes[result.state.node], Talk)
        assert functions(business, result.state)
