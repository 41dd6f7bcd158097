"""`set_response_speed`: how fast our voice speaks. What the caller asked for outranks every measurement."""

from collections.abc import Mapping
from typing import Any

from ivr.core.commands import FunctionTool
from ivr.core.directives.directive import Directive, Effect, Refused, number, parameters

SLOWEST, FASTEST = 0.25, 1.5
"""OpenAI Realtime, `audio.output.speed`."""


def _validate(arguments: Mapping[str, Any]) -> Effect | Refused:
    speed = number(arguments, "speed")
    if speed is None:
        return Refused("bad_type", "speed must be a number")
    if not SLOWEST <= speed <= FASTEST:
        return Refused("out_of_range", f"speed must be {SLOWEST} to {FASTEST}")
    asked = arguments.get("asked", True)
    if not isinstance(asked, bool):
        return Refused("bad_type", "asked must be a boolean")
    return Effect(lambda controls: controls.set_speed(speed, asked=asked), changes_session=True)


_SPEED = {"type": "number", "minimum": SLOWEST, "maximum": FASTEST}
_ASKED = {
    "type": "boolean",
    "description": "false: nobody asked, it only suits how fast the caller speaks",
}


DIRECTIVE = Directive(
    FunctionTool(
        "set_response_speed",
        "Speak slower (below 1) or faster (above 1) from the next reply on. Call it when the caller asks.",
        parameters({"speed": _SPEED, "asked": _ASKED}, ["speed"]),
    ),
    _validate,
)
