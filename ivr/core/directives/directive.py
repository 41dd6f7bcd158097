"""What a directive is (paper, state to control): a typed function by which the model steers the call.

A new one is a module here that makes a `Directive`, and its name in `ivr.core.directives`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from callflows.model import Orchestration
from ivr.core.commands import FunctionTool


class Controls(Protocol):
    """What directives may change. Nothing of it disturbs a reply that is being spoken."""

    def set_speed(self, speed: float, *, asked: bool) -> None:
        """The voice's speed, from the next reply on. `asked`: the caller wanted it, so no measurement changes it."""
        ...

    def set_silence(self, silence_ms: int, *, asked: bool) -> None:
        """D_VAD of later boundaries. Not `asked` by the caller: until the line has been well for a while."""
        ...

    def set_instruction(self, text: str) -> None:
        """An instruction for the next reply only."""
        ...


@dataclass(frozen=True, slots=True)
class Effect:
    """What a valid call comes to. `defers`: the turn is not answered yet."""

    apply: Callable[[Controls], None] = lambda _: None
    changes_session: bool = False
    """The provider has to be told."""
    defers: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was changed. `code` and `message` go back to the model."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Directive:
    """One function: what the model is told, how its arguments become an effect, and where it is on offer."""

    tool: FunctionTool
    validate: Callable[[Mapping[str, Any]], Effect | Refused]
    modes: frozenset[Orchestration] = frozenset(Orchestration)
    languages: frozenset[str] | None = None
    """Primary subtags it makes sense in; `None`: all."""
    holds_turn: bool = False
    """Refused once the reply is audible, and not on offer once the caller has waited as long as anybody may."""


def number(arguments: Mapping[str, Any], key: str) -> float | None:
    """A number, or `None`: bool is an int in Python, and `true` is no speed."""
    value = arguments.get(key)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def parameters(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    """JSON Schema of arguments."""
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
