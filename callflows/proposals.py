"""What the speech model may do where a call stands, and what comes of it when it does. Pure.

The model proposes by calling functions; what it passes is never trusted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from callflows.actions import Action, Begin, HangUp, Say
from callflows.model import Business, Talk
from callflows.moving import Moment, Step, enter, filler, here, transferred
from callflows.state import FlowState
from callflows.typed import Value, json_object
from callflows.using import USE, use

TRANSFER = "transfer"
HANG_UP = "hang_up"
NOTE = "note"
_LEAVE = "leave_"
_NO_MOMENT = Moment()


@dataclass(frozen=True, slots=True)
class FunctionSpec:
    """A function the speech model may call. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Applied:
    """A function was carried out. `output` is what the model is told; it wrote none of it."""

    state: FlowState
    actions: tuple[Action, ...]
    output: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was done and the state stands. `message` is for the model, short, and repeats nothing it sent.

    Codes: flow_ended, unknown_function, bad_arguments, bad_value, busy, unknown_target.
    """

    code: str
    message: str


def talk_at(business: Business, state: FlowState) -> Talk | None:
    """The talking node the call is at; None once the flow has ended or stands anywhere else."""
    node = business.nodes.get(state.node)
    return node if isinstance(node, Talk) and not state.ended else None


# -- what the model may do -----------------------------------------------------------------------------------


def functions(business: Business, state: FlowState) -> tuple[FunctionSpec, ...]:
    """The functions of the present node, always in the same order; none once the flow has ended."""
    talk = talk_at(business, state)
    if talk is None:
        return ()
    ways = [_leave(name, way.when) for name, way in talk.exits.items()]
    names = business.allowed_transfers(talk)
    transfers = [_transfer(business, names)] if names else []
    note = [_note(talk)] if talk.slots else []
    tools = [_use(business, name) for name in talk.tools]
    return (*ways, *note, *tools, *transfers, FunctionSpec(HANG_UP, _HANG_UP_TEXT, _parameters({})))


_HANG_UP_TEXT = "End the call. Only when the caller is done and both have said goodbye."


def _leave(name: str, when: str) -> FunctionSpec:
    return FunctionSpec(
        f"{_LEAVE}{name}", f"Go on to the next part of the call. Use when: {when}", _parameters({})
    )


def _transfer(business: Business, names: tuple[str, ...]) -> FunctionSpec:
    who = "; ".join(f"{name}: {business.transfers[name].description}" for name in names)
    text = f"Connect the caller to a person, when the caller asks for one or needs one. Targets: {who}"
    return FunctionSpec(TRANSFER, text, _parameters({"target": {"type": "string", "enum": list(names)}}))


def _note(talk: Talk) -> FunctionSpec:
    text = "Write down what the caller has said, as soon as it is known, and again when it changes."
    properties = {name: value.form() for name, value in talk.slots.items()}
    return FunctionSpec(NOTE, text, _parameters(properties, required=[]))


def _use(business: Business, name: str) -> FunctionSpec:
    tool = business.tools[name]
    text = f"{tool.description} Its answer comes a moment later, as data."
    return FunctionSpec(
        f"{USE}{name}", text, _parameters({n: value.form() for n, value in tool.parameters.items()})
    )


def _parameters(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def apply(
    business: Business, state: FlowState, name: str, arguments_json: str, moment: Moment = _NO_MOMENT
) -> Applied | Refused:
    """Carry out what the model called, or say why not. Never raises, whatever the two texts are."""
    if state.ended:
        return Refused("flow_ended", "The call is ending; nothing more can be done.")
    talk = talk_at(business, state)
    spec = next((spec for spec in functions(business, state) if spec.name == name), None)
    if talk is None or spec is None:
        return Refused("unknown_function", "There is no such function in this part of the call.")
    arguments = json_object(arguments_json)
    if arguments is None:
        return Refused("bad_arguments", "The arguments are not a JSON object.")
    properties, required = spec.parameters["properties"], spec.parameters["required"]
    if not set(required) <= arguments.keys() or not arguments.keys() <= properties.keys():
        return Refused("bad_arguments", f"Needed are exactly: {', '.join(properties) or 'none'}.")
    if name == NOTE:
        return _noted(business, state, talk, arguments)
    if name.startswith(USE):
        return _used(business, state, name.removeprefix(USE), arguments, moment)
    if name == TRANSFER:
        return _connect(business, state, talk, arguments["target"])
    if name == HANG_UP:
        return Applied(replace(state, ended="hung_up"), (HangUp(""),), "The call ends now.")
    return _left(enter(business, state, talk.exits[name.removeprefix(_LEAVE)].to, moment))


def _noted(business: Business, state: FlowState, talk: Talk, arguments: dict[str, Any]) -> Applied | Refused:
    if not arguments:
        return Refused("bad_arguments", f"Give at least one of: {', '.join(talk.slots)}.")
    values = _values(business, state, talk.slots, arguments)
    if isinstance(values, Refused):
        return values
    state = replace(state, slots={**state.slots, **values})
    still = [name for name in talk.slots if name not in state.slots]
    return Applied(
        state, (), f"Noted. Still open: {', '.join(still)}." if still else "Noted. Nothing is open."
    )


def _used(
    business: Business, state: FlowState, name: str, arguments: dict[str, Any], moment: Moment
) -> Applied | Refused:
    if state.using is not None:
        return Refused("busy", "The answer to what you asked before has not come yet. Wait for it.")
    values = _values(business, state, business.tools[name].parameters, arguments)
    if isinstance(values, Refused):
        return values
    state = replace(state, slots={**state.slots, **values})
    text = json.dumps(values, ensure_ascii=False)
    state, order = use(business, state, name, moment.call_id, moment.caller, text)
    return Applied(state, (*filler(business, state, name), order), _RUNNING)


_RUNNING = "It is being asked. Tell the caller, in one short sentence, that it takes a moment."


def _values(
    business: Business, state: FlowState, wanted: Mapping[str, Value], arguments: Mapping[str, Any]
) -> dict[str, Any] | Refused:
    """The arguments as values of their kinds; all of them, or none."""
    region = here(business, state, _NO_MOMENT).region
    read = {name: wanted[name].read(raw, region) for name, raw in arguments.items()}
    bad = [f"{name} ({_form(wanted[name])})" for name, value in read.items() if value is None]
    if bad:
        return Refused("bad_value", f"Not kept; ask the caller again for: {', '.join(bad)}."[:_MAX_MESSAGE])
    return read


_MAX_MESSAGE = 190


def _form(value: Value) -> str:
    bounds = [f"at least {value.least:g}" if value.least is not None else ""]
    bounds.append(f"at most {value.most:g}" if value.most is not None else "")
    return ", ".join(each for each in (", ".join(value.choices) or value.kind, *bounds) if each)


def gathered(state: FlowState) -> str:
    """What the caller gave, or a system answered, as JSON for the model: data. Empty for nothing; no secrets."""
    text = json.dumps(state.slots, ensure_ascii=False, default=str)
    return "" if not state.slots else text[:_MAX_GATHERED]


_MAX_GATHERED = 2_000


def _connect(business: Business, state: FlowState, talk: Talk, name: object) -> Applied | Refused:
    allowed = business.allowed_transfers(talk)
    if not isinstance(name, str) or name not in allowed:
        return Refused("unknown_target", f"Transfers go only to: {', '.join(allowed)}.")
    done = transferred(business, state, name)
    return Applied(done.state, done.actions, _CONNECTING)


_CONNECTING = "The caller is being connected now."


def _left(done: Step) -> Applied:
    """What the model is told of the way that its exit led."""
    if done.state.ended:
        text = _CONNECTING if done.state.is_away() else "The call ends now."
        return Applied(done.state, done.actions, text)
    if not isinstance(done.actions[-1], Begin):
        return Applied(done.state, done.actions, "The call goes on without you until you are asked again.")
    rest = done.actions[:-1]
    if any(isinstance(action, Say) for action in rest):
        return Applied(done.state, done.actions, "You are in the next part of the call.")
    # Its answer to the same turn, by the next part's instructions, is how the model begins there.
    return Applied(done.state, rest, "You are in the next part of the call; its instructions hold now.")
