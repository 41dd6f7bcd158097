"""Errors as the Realtime protocol gives them: an `error` event that the session survives."""

import re
from dataclasses import dataclass

import msgspec

from ivr.errors import CallthreadError


@dataclass(eq=False)
class Fault(CallthreadError):
    """A request the server refuses. Becomes an `error` event; the connection stays up."""

    code: str
    message: str
    param: str | None = None
    kind: str = "invalid_request_error"
    event_id: str | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class SandboxMissing(CallthreadError):
    """The packages that hear and speak are not installed."""

    def __init__(self, package: str) -> None:
        super().__init__(
            f"the sandbox needs the package {package!r}: pip install 'callthread[sandbox]' "
            "(or run it with --script, which needs neither ear nor voice)"
        )


_UNKNOWN_FIELD = re.compile(r"unknown field `(?P<field>[^`]*)`")
_MISSING_FIELD = re.compile(r"missing required field `(?P<field>[^`]*)`")
_PATH = re.compile(r" - at `(?:key in )?\$\.?(?P<path>[^`]*)`")


def _parameter(text: str, field: str = "") -> str | None:
    """`session.audio.foo` out of msgspec's "… - at `$.session.audio`" and the field it names."""
    found = _PATH.search(text)
    path = found["path"] if found else ""
    return ".".join(part for part in (path, field) if part) or None


def from_validation(error: msgspec.ValidationError) -> Fault:
    """What OpenAI would call a message that does not fit its type."""
    text = str(error)
    unknown = _UNKNOWN_FIELD.search(text)
    if unknown:
        param = _parameter(text, unknown["field"])
        return Fault("unknown_parameter", f"Unknown parameter: '{param}'.", param)
    missing = _MISSING_FIELD.search(text)
    if missing:
        param = _parameter(text, missing["field"])
        return Fault("missing_required_parameter", f"Missing required parameter: '{param}'.", param)
    param = _parameter(text)
    detail = _PATH.sub("", text)
    code = "invalid_type" if detail.startswith("Expected `") and "got `" in detail else "invalid_value"
    return Fault(code, f"Invalid value at '{param}': {detail}", param)
