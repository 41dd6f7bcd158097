"""The paper's typed functions by which the model steers the call: schema for the model, validation, effect.

An invalid call changes nothing and is refused with a code the model is told.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ivr.core.commands import FunctionTool

SPEED_MIN, SPEED_MAX = 0.25, 1.5  # OpenAI Realtime, `audio.output.speed`
SILENCE_MIN_MS, SILENCE_MAX_MS = 200, 5_000
MAX_INSTRUCTION_CHARS = 500


@dataclass(frozen=True, slots=True)
class SetInstruction:
    """Holds for the next reply only."""

    text: str


@dataclass(frozen=True, slots=True)
class SetSpeed:
    """Holds from the next reply on. `asked`: the caller wanted it in words; else it only matches how they speak."""

    speed: float
    asked: bool = True


@dataclass(frozen=True, slots=True)
class SetSilence:
    """D_VAD of later boundaries."""

    silence_ms: int


@dataclass(frozen=True, slots=True)
class Defer:
    """The boundary is provisional: do not answer yet."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was changed. `code` and `message` go back to the model."""

    code: str
    message: str


Effect = SetInstruction | SetSpeed | SetSilence | Defer


@dataclass(frozen=True, slots=True)
class Directive:
    """One function: what the model is told, and how its arguments become an effect."""

    tool: FunctionTool
    validate: Callable[[Mapping[str, Any]], Effect | Refused]


def _number(arguments: Mapping[str, Any], key: str) -> float | None:
    value = arguments.get(key)
    # bool is an int in Python; `true` is no speed
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def _instruction(arguments: Mapping[str, Any]) -> Effect | Refused:
    text = arguments.get("text")
    if not isinstance(text, str) or not text.strip():
        return Refused("bad_type", "text must be a non-empty string")
    if len(text) > MAX_INSTRUCTION_CHARS:
        return Refused("out_of_range", f"text may have {MAX_INSTRUCTION_CHARS} characters")
    return SetInstruction(text.strip())


def _speed(arguments: Mapping[str, Any]) -> Effect | Refused:
    speed = _number(arguments, "speed")
    if speed is None:
        return Refused("bad_type", "speed must be a number")
    if not SPEED_MIN <= speed <= SPEED_MAX:
        return Refused("out_of_range", f"speed must be {SPEED_MIN} to {SPEED_MAX}")
    asked = arguments.get("asked", True)
    return (
        SetSpeed(speed, asked) if isinstance(asked, bool) else Refused("bad_type", "asked must be a boolean")
    )


def _silence(arguments: Mapping[str, Any]) -> Effect | Refused:
    silence_ms = _number(arguments, "silence_ms")
    if silence_ms is None:
        return Refused("bad_type", "silence_ms must be a number")
    if not SILENCE_MIN_MS <= silence_ms <= SILENCE_MAX_MS:
        return Refused("out_of_range", f"silence_ms must be {SILENCE_MIN_MS} to {SILENCE_MAX_MS}")
    return SetSilence(int(silence_ms))


def _defer(arguments: Mapping[str, Any]) -> Effect | Refused:
    if not isinstance(arguments.get("reason", ""), str):
        return Refused("bad_type", "reason must be a string")
    return Defer()


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


DIRECTIVES: dict[str, Directive] = {
    d.tool.name: d
    for d in (
        Directive(
            FunctionTool(
                "set_response_instruction",
                "Add an instruction that holds for your next reply only.",
                _object({"text": {"type": "string", "maxLength": MAX_INSTRUCTION_CHARS}}, ["text"]),
            ),
            _instruction,
        ),
        Directive(
            FunctionTool(
                "set_response_speed",
                "Speak slower (below 1) or faster (above 1) from the next reply on. Call it when the caller asks.",
                _object(
                    {
                        "speed": {"type": "number", "minimum": SPEED_MIN, "maximum": SPEED_MAX},
                        "asked": {
                            "type": "boolean",
                            "description": "false: nobody asked, it only suits how fast the caller speaks",
                        },
                    },
                    ["speed"],
                ),
            ),
            _speed,
        ),
        Directive(
            FunctionTool(
                "set_vad_silence_duration",
                "How long the caller may pause, in ms, before a turn counts as finished.",
                _object(
                    {"silence_ms": {"type": "integer", "minimum": SILENCE_MIN_MS, "maximum": SILENCE_MAX_MS}},
                    ["silence_ms"],
                ),
            ),
            _silence,
        ),
        Directive(
            FunctionTool(
                "defer_response",
                "Do not answer yet, because the caller has probably not finished. Call it before saying anything.",
                _object({"reason": {"type": "string"}}, []),
            ),
            _defer,
        ),
    )
}
