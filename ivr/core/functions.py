"""One dispatch for everything the model may call: directives, the flow's functions, and starting afresh.

Arguments come from a language model and are never trusted; whatever they are, each call gets one short answer (B054).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from callflows import engine
from callflows.model import Business
from ivr.core.commands import FunctionTool
from ivr.core.directives import DIRECTIVES, Effect, Refused

MAX_ARGUMENT_CHARS = 4_000

START_AFRESH = FunctionTool(
    "start_afresh",
    "The caller does not want to go on with the conversation that broke off: begin the call anew.",
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)


@dataclass(frozen=True, slots=True)
class FlowStep:
    """The flow's answer to a call: its next state, and what is to be done on the way there."""

    state: engine.FlowState
    actions: tuple[engine.Action, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """`output` goes back to the model; `effect` is `None` when the call was refused."""

    output: str
    effect: Effect | FlowStep | None


def _refusal(code: str, message: str) -> Outcome:
    return Outcome(json.dumps({"error": code, "message": message}), None)


def parse_arguments(text: str) -> Mapping[str, Any] | None:
    """The JSON object in `text` ('' is {}), or `None`."""
    if len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class Functions:
    """The functions open to the model at one point of one business's flow."""

    def __init__(self, business: Business) -> None:
        self._business = business

    def tools(self, flow: engine.FlowState, *, may_start_afresh: bool) -> tuple[FunctionTool, ...]:
        """Always in the same order for the same node, so that the provider's prefix cache holds."""
        own = [d.tool for d in DIRECTIVES.values()]
        specs = engine.functions(self._business, flow)
        flow_tools = [FunctionTool(s.name, s.description, dict(s.parameters)) for s in specs]
        return tuple(own + flow_tools + ([START_AFRESH] if may_start_afresh else []))

    def apply(
        self, flow: engine.FlowState, name: str, arguments: str, *, audible: bool, may_start_afresh: bool
    ) -> Outcome:
        """What a call comes to.

        After audible audio the reply can no longer be held back, nor the talk go on elsewhere; it can end.
        """
        if name in DIRECTIVES:
            return self._directive(name, arguments, audible=audible)
        if name == START_AFRESH.name and may_start_afresh:
            return Outcome("started afresh", FlowStep(engine.start(self._business), ()))
        step = engine.apply(self._business, flow, name, arguments)
        if isinstance(step, engine.Refused):
            return _refusal(step.code, step.message)
        if audible and step.actions and all(isinstance(a, engine.Moved) for a in step.actions):
            return _refusal("already_speaking", "call this before saying anything")
        return Outcome(step.output, FlowStep(step.state, tuple(step.actions)))

    def _directive(self, name: str, arguments: str, *, audible: bool) -> Outcome:
        parsed = parse_arguments(arguments)
        if parsed is None:
            return _refusal("bad_arguments", "arguments must be one JSON object")
        if audible and name == "defer_response":
            return _refusal("already_speaking", "defer before saying anything")
        effect = DIRECTIVES[name].validate(parsed)
        if isinstance(effect, Refused):
            return _refusal(effect.code, effect.message)
        return Outcome("ok", effect)
