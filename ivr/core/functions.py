"""One dispatch for everything the model may call: directives, the flow's functions, and starting afresh.

Arguments come from a language model and are never trusted; whatever they are, each call gets one short answer (B054).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from callflows import engine
from callflows.model import Business
from ivr.core.commands import FunctionTool
from ivr.core.directives import DIRECTIVES, Directive, Effect, Refused
from ivr.core.persons import OUTPUTS, TOOLS, Personal, Rights, offered

MAX_ARGUMENT_CHARS = 4_000

START_AFRESH = FunctionTool(
    "start_afresh",
    "The caller does not want to go on with the conversation that broke off: begin the call anew.",
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)


GO_ON = FunctionTool(
    "go_on",
    "The caller wants to go on with the conversation that broke off. Call it before you answer.",
    {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
)


@dataclass(frozen=True, slots=True)
class FlowStep:
    """The flow's answer to a call: its next state, and what is to be done on the way there."""

    state: engine.FlowState
    actions: tuple[engine.Action, ...]


@dataclass(frozen=True, slots=True)
class AboutPerson:
    """Something about the person on the line. `anew`: how the flow begins for somebody else."""

    what: Personal
    anew: FlowStep


@dataclass(frozen=True, slots=True)
class Outcome:
    """`output` goes back to the model; `effect` is `None` when the call was refused."""

    output: str
    effect: Effect | FlowStep | AboutPerson | None


def _refusal(code: str, message: str) -> Outcome:
    return Outcome(json.dumps({"error": code, "message": message}), None)


def _taken_up(step: engine.Step) -> Outcome:
    if any(isinstance(action, engine.Say) for action in step.actions):
        return Outcome("the flow asks the caller something first", FlowStep(step.state, step.actions))
    return Outcome(
        "you are where the call broke off; what was said there is known again",
        FlowStep(step.state, step.actions),
    )


def parse_arguments(text: str) -> Mapping[str, Any] | None:
    """The JSON object in `text` ('' is {}), or `None`."""
    if len(text) > MAX_ARGUMENT_CHARS:
        return None
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides which functions are open, beside the business and its flow."""

    may_start_afresh: bool = False
    may_defer: bool = True
    """The turn may be held: see `Turn.may_defer`."""
    may_go_on: bool = False
    """A call that broke off is offered, and not taken up yet."""
    rights: Rights = field(default_factory=Rights)


class Functions:
    """The functions open to the model at one point of one business's flow.

    `unsupported`: directives that the provider in use cannot carry out.
    """

    def __init__(self, business: Business, unsupported: frozenset[str] = frozenset()) -> None:
        self._business = business
        self._unsupported = unsupported

    def tools(self, flow: engine.FlowState, situation: Situation) -> tuple[FunctionTool, ...]:
        """Always in the same order for the same node, so that the provider's prefix cache holds."""
        own = [d.tool for d in DIRECTIVES.values() if self._why_not(d, situation) is None]
        specs = engine.functions(self._business, flow)
        flow_tools = [FunctionTool(s.name, s.description, dict(s.parameters)) for s in specs]
        offer = [GO_ON] * situation.may_go_on + [START_AFRESH] * situation.may_start_afresh
        personal = [TOOLS[one] for one in offered(situation.rights)]
        return (*own, *personal, *flow_tools, *offer)

    def apply(
        self,
        flow: engine.FlowState,
        name: str,
        arguments: str,
        moment: engine.Moment,
        situation: Situation,
        *,
        audible: bool,
    ) -> Outcome:
        """What a call comes to.

        After audible audio the reply can no longer be held back, nor the talk go on elsewhere; it can end.
        """
        if name in DIRECTIVES:
            return self._directive(DIRECTIVES[name], arguments, situation, audible=audible)
        if name == START_AFRESH.name and situation.may_start_afresh:
            fresh = engine.begin(self._business, moment, flow.uses)
            return Outcome("started afresh", FlowStep(fresh.state, fresh.actions))
        if name == GO_ON.name and situation.may_go_on:
            return _taken_up(engine.take_up(self._business, flow, moment))
        personal = next((p for p in offered(situation.rights) if p.value == name), None)
        if personal is not None:
            fresh = engine.begin(self._business, moment)
            return Outcome(OUTPUTS[personal], AboutPerson(personal, FlowStep(fresh.state, fresh.actions)))
        step = engine.apply(self._business, flow, name, arguments, moment)
        if isinstance(step, engine.Refused):
            return _refusal(step.code, step.message)
        if audible and step.actions and all(isinstance(a, engine.Moved) for a in step.actions):
            return _refusal("already_speaking", "call this before saying anything")
        actions = tuple(step.actions)
        if audible and any(isinstance(action, engine.UseTool) for action in actions):
            # It has said itself that it takes a moment.
            actions = tuple(action for action in actions if not isinstance(action, engine.Say))
        return Outcome(step.output, FlowStep(step.state, actions))

    def _directive(
        self, directive: Directive, arguments: str, situation: Situation, *, audible: bool
    ) -> Outcome:
        refused = self._why_not(directive, situation)
        if refused is not None:
            return _refusal(refused.code, refused.message)
        parsed = parse_arguments(arguments)
        if parsed is None:
            return _refusal("bad_arguments", "arguments must be one JSON object")
        if audible and directive.holds_turn:
            return _refusal("already_speaking", "call this before saying anything")
        effect = directive.validate(parsed)
        if isinstance(effect, Refused):
            return _refusal(effect.code, effect.message)
        return Outcome("ok", effect)

    def _why_not(self, directive: Directive, situation: Situation) -> Refused | None:
        """Why a directive is not on offer, `None` if it is."""
        language = self._business.language.partition("-")[0].lower()
        if directive.tool.name in self._unsupported:
            return Refused("not_supported", "the speech model in use cannot do this")
        if self._business.orchestration not in directive.modes:
            return Refused("not_available", "this business decides it otherwise")
        if directive.languages is not None and language not in directive.languages:
            return Refused("unsupported_language", f"not for {language}")
        if directive.holds_turn and not situation.may_defer:
            return Refused("no_waiting", "the caller has finished, or has waited: answer now")
        return None
