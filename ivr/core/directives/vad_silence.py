"""`set_vad_silence_duration`: how long the caller may pause before a turn counts as finished (D_VAD)."""

from collections.abc import Mapping
from typing import Any

from callflows.model import Orchestration
from ivr.core.commands import FunctionTool
from ivr.core.directives.directive import Directive, Effect, Refused, number, parameters
from ivr.core.threshold import LONGEST_MS, SHORTEST_MS


def _validate(arguments: Mapping[str, Any]) -> Effect | Refused:
    silence_ms = number(arguments, "silence_ms")
    if silence_ms is None:
        return Refused("bad_type", "silence_ms must be a number")
    if not SHORTEST_MS <= silence_ms <= LONGEST_MS:
        return Refused("out_of_range", f"silence_ms must be {SHORTEST_MS} to {LONGEST_MS}")
    asked = arguments.get("asked", True)
    if not isinstance(asked, bool):
        return Refused("bad_type", "asked must be a boolean")
    return Effect(lambda controls: controls.set_silence(int(silence_ms), asked=asked), changes_session=True)


_SILENCE = {"type": "integer", "minimum": SHORTEST_MS, "maximum": LONGEST_MS}
_ASKED = {
    "type": "boolean",
    "description": "false: nobody asked, it only suits the network; normal again once that is well",
}


DIRECTIVE = Directive(
    FunctionTool(
        "set_vad_silence_duration",
        "How long the caller may pause, in ms, before a turn counts as finished.",
        parameters({"silence_ms": _SILENCE, "asked": _ASKED}, ["silence_ms"]),
    ),
    _validate,
    modes=frozenset(Orchestration) - {Orchestration.OFF},
)
