"""`set_response_instruction`: how the next reply, and only that, is to be."""

from collections.abc import Mapping
from typing import Any

from ivr.core.commands import FunctionTool
from ivr.core.directives.directive import Directive, Effect, Refused, parameters

MAX_CHARS = 500


def _validate(arguments: Mapping[str, Any]) -> Effect | Refused:
    text = arguments.get("text")
    if not isinstance(text, str) or not text.strip():
        return Refused("bad_type", "text must be a non-empty string")
    if len(text) > MAX_CHARS:
        return Refused("out_of_range", f"text may have {MAX_CHARS} characters")
    return Effect(lambda controls: controls.set_instruction(text.strip()))


DIRECTIVE = Directive(
    FunctionTool(
        "set_response_instruction",
        "Add an instruction that holds for your next reply only.",
        parameters({"text": {"type": "string", "maxLength": MAX_CHARS}}, ["text"]),
    ),
    _validate,
)
