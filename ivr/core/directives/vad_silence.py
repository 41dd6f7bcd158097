"""`set_vad_silence_duration`: how long the caller may pause before a turn counts as finished (D_VAD)."""

from collections.abc import Mapping
from typing import Any

from callflows.model import Orchestration
from ivr.core.commands import FunctionTool
from ivr.core.directives.directive import Directive, Effect, Refused, number, parameters

SHORTEST_MS, LONGEST_MS = 200, 5_000


def _validate(arguments: Mapping[str, Any]) -> Effect | Refused:
    silence_ms = number(arguments, "silence_ms")
    if silence_ms is None:
        return Refused("bad_type", "silence_ms must be a number")
    if not SHORTEST_MS <= silence_ms <= LONGEST_MS:
        return Refused("out_of_range", f"silence_ms must be {SHORTEST_MS} to {LONGEST_MS}")
    return Effect(lambda controls: controls.set_silence(int(silence_ms)), changes_session=True)


DIRECTIVE = Directive(
    FunctionTool(
        "set_vad_silence_duration",
        "How long the caller may pause, in ms, before a turn counts as finished.",
        parameters(
            {"silence_ms": {"type": "integer", "minimum": SHORTEST_MS, "maximum": LONGEST_MS}}, ["silence_ms"]
        ),
    ),
    _validate,
    modes=frozenset(Orchestration) - {Orchestration.OFF},
)
