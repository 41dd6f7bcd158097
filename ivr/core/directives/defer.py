"""`defer_response`: the boundary is provisional, do not answer yet. It takes hold at once."""

from collections.abc import Mapping
from typing import Any

from callflows.model import Orchestration
from ivr.core.commands import FunctionTool
from ivr.core.directives.directive import Directive, Effect, Refused, parameters


def _validate(arguments: Mapping[str, Any]) -> Effect | Refused:
    if not isinstance(arguments.get("reason", ""), str):
        return Refused("bad_type", "reason must be a string")
    return Effect(defers=True)


DIRECTIVE = Directive(
    FunctionTool(
        "defer_response",
        "Do not answer yet, because the caller has probably not finished: the network state says that something may "
        "be missing, or the sentence breaks off. Call it before saying anything.",
        parameters({"reason": {"type": "string"}}, []),
    ),
    _validate,
    modes=frozenset({Orchestration.MODEL, Orchestration.JOINT}),
    holds_turn=True,
)
