"""Flows within a flow: groups of nodes that are gone through and come back."""

import json
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from callflows import engine
from callflows.diagram import differences, mermaid
from callflows.engine import Event, FlowState, Key, KeysDone, Moment, Say, Silence, Step, Words
from callflows.faults import FlowErrors
from callflows.model import Business
from callflows.parse import parse_text
from callflows.survivors import taken_up
from tests.unit.callflows.examples import unhurried

INN = """\
id: inn
name: The Inn
numbers: ["+16175550101"]
timezone: America/New_York
languages: {es-US: {}}
disclosure: This is a machine.
greeting: The Inn.
transfers: {desk: {number: "+16175550102", description: reception}}
flows:
  count:
    start: ask
    parameters: [what]
    exits: [many]
    nodes:
      ask: {type: collect, slot: number, kind: number, least: 1, most: 99, by: keys,
        say: {en-US: "How many {what}?", es-US: "Cuantos {what}?"}, to: size}
      size: {type: branch, cases: [{when: {slot: number, op: above, value: 8}, to: many}], otherwise: sure}
      sure:
        type: flow
        flow: confirm
        with: {text: {en-US: "{number} {what}.", es-US: "{number} {what}."}}
        then: return
        exits: {wrong: ask}
  confirm:
    start: ask
    parameters: [text]
    exits: [wrong]
    nodes:
      ask:
        type: menu
        say: {en-US: "{text} One if that is right, two if not.", es-US: "{text} Uno o dos."}
        options: {"1": {to: return}, "2": {to: wrong}}
start: rooms
nodes:
  rooms:
    type: flow
    flow: count
    with: {what: {en-US: rooms, es-US: habitaciones}}
    fills: {number: rooms}
    then: nights
    exits: {many: group}
  nights:
    type: flow
    flow: count
    with: {what: {en-US: nights, es-US: noches}}
    fills: {number: nights}
    then: done
    exits: {many: group}
  group: {type: transfer, target: desk, say: {en-US: To our desk., es-US: A recepcion.}}
  done: {type: hangup, say: {en-US: "{rooms} rooms, {nights} nights.", es-US: "{rooms}, {nights}."}}
"""
NOW = Moment(None, "+12025550143")


def inn(old: str = "", new: str = "") -> Business:
    assert old in INN
    return parse_text(INN.replace(old, new, 1), "inn.yaml")


def faults(old: str, new: str) -> list[tuple[int, str]]:
    with pytest.raises(FlowErrors) as raised:
        inn(old, new)
    return [(fault.line, fault.message) for fault in raised.value.faults]


def keyed(business: Business, state: FlowState, keys: str) -> Step:
    for key in keys:
        done = engine.step(business, state, engine.KeysDone() if key == "." else Key(key), NOW)
        state = done.state
    return done


def said(step: Step) -> list[str]:
    return [action.text for action in step.actions if isinstance(action, Say)]


def test_a_group_is_gone_through_and_comes_back() -> None:
    business = inn()
    first = engine.begin(business, NOW)
    assert first.state.node == "rooms.ask"
    assert said(first) == ["How many rooms?"]
    done = keyed(business, first.state, "3.")
    assert (done.state.node, said(done)) == ("rooms.sure.ask", ["3 rooms. One if that is right, two if not."])
    done = keyed(business, done.state, "1")
    assert (done.state.node, said(done)) == ("nights.ask", ["How many nights?"])
    done = keyed(business, done.state, "2.1")
    assert done.state.ended == "hung_up"
    assert done.state.slots == {"rooms": 3, "nights": 2}
    assert done.actions[-1] == engine.HangUp("3 rooms, 2 nights.")


def test_an_exit_leads_where_its_use_says() -> None:
    business = inn()
    start = engine.begin(business, NOW).state
    assert keyed(business, start, "3.2").state.node == "rooms.ask"
    assert keyed(business, start, "12.").state.target == "desk"


def test_a_call_is_taken_up_inside_a_group_by_another_process() -> None:
    business = inn()
    state = keyed(business, engine.begin(business, NOW).state, "3.1").state
    stored = json.loads(json.dumps(state.to_json()))
    assert len(json.dumps(stored)) < 200
    again = FlowState.from_json(stored, parse_text(INN, "another process"))
    assert again == state
    assert said(engine.again(inn(), again, NOW)) == ["How many nights?"]


def test_a_group_that_is_gone_is_taken_up_at_what_led_to_it() -> None:
    new = inn(
        "otherwise: sure}",
        "otherwise: ask2}\n      ask2: {type: say, say: {en-US: So., es-US: Si.}, to: sure}",
    )
    assert taken_up({"node": "rooms.sure.ask"}, inn(), new) == {"node": "rooms.sure.ask"}
    renamed = parse_text(INN.replace(" sure", " certain"), "inn.yaml")
    assert taken_up({"node": "rooms.sure.ask"}, inn(), renamed) == {"node": "rooms.ask"}


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        (
            "flow: count\n    with: {what: {en-US: rooms",
            "flow: cuont\n    with: {what: {en-US: rooms",
            37,
            "no flow is called `cuont`",
        ),
        ("then: nights", "then: nigths", 40, "no node is called `nigths`"),
        ("exits: {many: group}\n  nights", "exits: {many: gruop}\n  nights", 41, "no node is called `gruop`"),
        ("to: size}", "to: seize}", 16, "no node in the flow `count` is called `seize`"),
        ("otherwise: sure", "otherwise: done", 17, "no node in the flow `count` is called `done`"),
        ("    then: nights\n", "", 35, "where does `count` return to?"),
        ("    exits: {many: group}\n  nights", "  nights", 35, "`exits` lacks many"),
        (
            "exits: {many: group}\n  nights",
            "exits: {many: group, few: group}\n  nights",
            41,
            "the flow has no `few` among its exits",
        ),
        ("with: {what: {en-US: rooms, es-US: habitaciones}}", "with: {}", 38, "`with` lacks what"),
        (
            "with: {what: {en-US: rooms, es-US: habitaciones}}",
            "with: {what: a, wath: b}",
            38,
            "the flow has no `wath` among its parameters",
        ),
        (
            "fills: {number: rooms}",
            "fills: {numbr: rooms}",
            39,
            "no node of the flow `count` fills a slot `numbr`",
        ),
        ("flow: confirm", "flow: count", 20, "flows within flows without end: count → count"),
        (
            "start: ask\n    parameters: [what]",
            "start: aks\n    parameters: [what]",
            11,
            "no node in the flow `count` is called `aks`",
        ),
        ("exits: [many]", "exits: [many, return]", 11, "`return` is the name of a way out already"),
        ("exits: [many]", "exits: [many, size]", 11, "`size` is the name of a way out already"),
        ("then: done", "then: rooms.ask", 47, "no node is called `rooms.ask`"),
        ('options: {"1"', 'optoins: {"1"', 32, "`optoins` is not known here"),
        ("  group: {", "  rooms.ask: {", 49, "`rooms.ask` is the name of a node inside `rooms`"),
        ("to: return}", "to: 7}", 32, "no node in the flow `confirm` is called `7`"),
    ],
)
def test_what_is_wrong_is_told_where_it_was_written(old: str, new: str, line: int, message: str) -> None:
    assert (line, message) in faults(old, new)


def test_a_fault_in_a_group_is_told_once_however_often_it_is_used() -> None:
    assert faults("to: size}", "to: siez}") == [(16, "no node in the flow `count` is called `siez`")]
    told = faults("      sure:\n", "      lost: {type: hangup, say: x}\n      sure:\n")
    assert told == [(18, "nothing leads to `lost`")]


def test_flows_within_flows_are_bounded_in_depth_and_in_number() -> None:
    def group(number: int, uses: int) -> str:
        use = f"type: flow, flow: f{number + 1}, then: "
        nodes = [
            f"      n{at}: {{{use}{f'n{at + 1}' if at + 1 < uses else 'return'}}}\n" for at in range(uses)
        ]
        return f"  f{number}:\n    start: n0\n    nodes:\n{''.join(nodes)}"

    head = INN[: INN.index("flows:")]
    last = "    start: n0\n    nodes: {n0: {type: say, say: x, to: return}}\n"
    tail = "start: n\nnodes: {n: {type: flow, flow: f0, then: e}, e: {type: hangup, say: x}}\n"

    def flow(depth: int, uses: int) -> str:
        groups = "".join(group(number, uses) for number in range(depth))
        return f"{head}flows:\n{groups}  f{depth}:\n{last}{tail}"

    assert len(parse_text(flow(3, 2), "f").nodes) == 2 + 2 + 4 + 8 + 8
    with pytest.raises(FlowErrors, match="more than 4 deep"):
        parse_text(flow(4, 1), "f")
    with pytest.raises(FlowErrors, match="too many nodes: more than 500"):
        parse_text(flow(3, 60), "f")


def test_groups_in_diagram_and_difference() -> None:
    chart = mermaid(inn())
    assert 'subgraph in_n_rooms ["rooms: count"]' in chart
    assert 'n_rooms_IN_ask[/"ask: collect"/]' in chart
    lines = differences(inn(), inn("most: 99", "most: 98"))
    assert lines == ["~ flows.count.nodes.ask.most: 99.0 -> 98.0"]


_EVENTS = st.sampled_from(
    [
        *(Key(digit) for digit in "0123789*#"),
        KeysDone(),
        Silence(),
        Words("yes"),
        Words("two"),
        Words("start over"),
    ]
)


@unhurried
@given(st.lists(_EVENTS, max_size=30))
def test_whatever_the_caller_does_the_call_waits_at_a_node_or_ends(events: list[Event]) -> None:
    business = inn()
    state = engine.begin(business, NOW).state
    for event in events:
        done = engine.step(business, state, event, NOW)
        state = done.state
        assert state.ended or business.nodes[state.node].WAITS
        assert sum(isinstance(action, engine.Moved) for action in done.actions) <= len(business.nodes)
        stored = json.loads(json.dumps(state.to_json()))
        assert replace(FlowState.from_json(stored, business), progress=state.progress) == state


@unhurried
@given(
    st.integers(0, len(INN)),
    st.integers(0, 12),
    st.text(alphabet="[]{}:,&*!|>'\"%@`-?# \n\tabz019+\\~<=.é\u2028\x00", max_size=8),
)
def test_any_damage_to_flows_parses_or_tells(at: int, cut: int, put: str) -> None:
    try:
        parse_text(INN[:at] + put + INN[at + cut :], "inn.yaml")
    except FlowErrors as errors:
        assert errors.faults
        assert all(fault.line >= 1 and fault.column >= 1 and fault.message for fault in errors.faults)


_WORDS = st.sampled_from(
    ["count", "confirm", "ask", "return", "many", "rooms", "rooms.ask", "flow", "begins", "x"]
)
_KEYS = st.sampled_from(
    ["type", "flow", "then", "exits", "with", "fills", "begins", "nodes", "start", "parameters"]
)
_ANY = st.recursive(
    st.none() | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS | _WORDS, inner, max_size=4),
    max_leaves=10,
)


@unhurried
@given(
    st.sampled_from(["flows", "nodes"]), _ANY, st.sampled_from(["count", "confirm", "rooms", "nights"]), _ANY
)
def test_any_structure_of_flows_parses_or_tells(part: str, whole: object, name: str, inner: object) -> None:
    values = yaml.safe_load(INN)
    for changed in ({part: whole}, {part: {**values[part], name: inner}}):
        try:
            parse_text(yaml.safe_dump({**values, **changed}), "inn.yaml")
        except FlowErrors as errors:
            assert errors.faults


def test_a_parameter_in_place_of_a_name_is_told_with_what_to_do_instead() -> None:
    group = 'flows: {go: {start: a, parameters: [who], nodes: {a: {type: transfer, target: "{who}"}}}}'
    with pytest.raises(FlowErrors) as told:
        parse_text(group, "shop.yaml")
    hints = [fault.hint for fault in told.value.faults if fault.message == "not a usable name"]
    assert len(hints) == 1
    assert "an exit can lead" in hints[0]
