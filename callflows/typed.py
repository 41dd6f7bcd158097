"""Typed values out of JSON that somebody else wrote: a speech model's arguments, a tool's answer. Never trusted."""

import json
import re
from collections.abc import Callable, Mapping
from datetime import date, time
from typing import Any, Self

import phonenumbers
from pydantic import Field, model_validator

from callflows.fields import Line, Name, fault
from callflows.part import Part
from callflows.understand import Kind

MAX_TEXT = 500
_MAX_JSON = 10_000
_MAX_LISTED = 20
_MAIL = re.compile(r"[a-z0-9][a-z0-9._%+\-]{0,63}@(?:[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}")
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,6})?")


class Value(Part):
    """What a value must be."""

    kind: Kind = Field("text", description="What kind of value it is.")
    description: Line | None = Field(None, description="What it means, for the speech model.")
    choices: tuple[Name, ...] = Field((), max_length=30, description="For kind choice: the values there are.")
    least: float | None = Field(None, allow_inf_nan=False, description="The smallest number or amount.")
    most: float | None = Field(None, allow_inf_nan=False, description="The largest number or amount.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.kind == "choice") != bool(self.choices):
            raise fault("`choices` belong to kind choice, and it needs them", "like choices: [small, large]")
        if self.kind not in ("number", "money") and (self.least is not None or self.most is not None):
            raise fault("`least` and `most` belong to numbers", "kind: number, or kind: money")
        return self

    def read(self, raw: object, region: str) -> Any:
        """The value in `raw`, in the form that a slot of this kind has; None if it is none. Never raises."""
        value = _READERS[self.kind](raw, region)
        if value is None or (self.kind == "choice" and value not in self.choices):
            return None
        if self.kind in ("number", "money"):
            amount = float(value)
            low = self.least is not None and amount < self.least
            high = self.most is not None and amount > self.most
            return None if low or high else value
        return value

    def form(self) -> dict[str, Any]:
        """As JSON Schema, for the parameter of a function."""
        found: dict[str, Any] = dict(_SCHEMAS[self.kind])
        if self.choices:
            found["enum"] = list(self.choices)
        for ours, theirs in (("least", "minimum"), ("most", "maximum")):
            if (bound := getattr(self, ours)) is not None:
                found[theirs] = bound
        told = [self.description, found.pop("form", None)]
        if any(told):
            found["description"] = "; ".join(each for each in told if each)
        return found


def plain_text(raw: object) -> str | None:
    """Text or a figure as one printable line, cut short; a list of such with commas between. None for all else."""
    if isinstance(raw, list):
        parts = [plain_text(each) if not isinstance(each, list) else None for each in raw[:_MAX_LISTED]]
        return plain_text(", ".join(part for part in parts if part)) if all(parts) else None
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    printable = "".join(each if each.isprintable() else " " for each in str(raw)[: 4 * MAX_TEXT])
    return " ".join(printable.split())[:MAX_TEXT] or None


def _text(raw: object, _: str) -> Any:
    return plain_text(raw)


def _number(raw: object, _: str) -> Any:
    if isinstance(raw, str):
        text = raw.strip()
        value = float(text) if _NUMBER.fullmatch(text) else None
    else:
        value = float(raw) if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    if value is None or not abs(value) < 1e15:
        return None
    return int(value) if value.is_integer() else value


def _money(raw: object, region: str) -> Any:
    value = _number(raw, region)
    return None if value is None or value < 0 else f"{value:.2f}"


def _date(raw: object, _: str) -> Any:
    try:
        return date.fromisoformat(str(raw).strip()[:10]).isoformat() if isinstance(raw, str) else None
    except ValueError:
        return None


def _time(raw: object, _: str) -> Any:
    try:
        return time.fromisoformat(raw.strip()).strftime("%H:%M") if isinstance(raw, str) else None
    except ValueError:
        return None


def _yes_no(raw: object, _: str) -> Any:
    if isinstance(raw, bool):
        return raw
    return {"yes": True, "true": True, "no": False, "false": False}.get(str(raw).strip().casefold())


def _digits(raw: object, _: str) -> Any:
    text = re.sub(r"[ \-]", "", raw) if isinstance(raw, str) else ""
    return text if re.fullmatch(r"[0-9]{1,40}", text) else None


def _phone(raw: object, region: str) -> Any:
    if not isinstance(raw, str) or len(raw) > 40:
        return None
    try:
        number = phonenumbers.parse(raw, region)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _email(raw: object, _: str) -> Any:
    text = raw.strip().casefold() if isinstance(raw, str) else ""
    return text if _MAIL.fullmatch(text) else None


_READERS: Mapping[str, Callable[[object, str], Any]] = {
    "text": _text,
    "number": _number,
    "money": _money,
    "date": _date,
    "time": _time,
    "phone": _phone,
    "email": _email,
    "yes_no": _yes_no,
    "choice": _text,
    "digits": _digits,
}
_SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": "string", "maxLength": MAX_TEXT},
    "number": {"type": "number"},
    "money": {"type": "number", "form": "an amount of money as a figure"},
    "date": {"type": "string", "form": "a date as YYYY-MM-DD"},
    "time": {"type": "string", "form": "a time of day as HH:MM, 24 hours"},
    "phone": {"type": "string", "form": "a telephone number with its country code, like +12025550143"},
    "email": {"type": "string", "form": "an e-mail address"},
    "yes_no": {"type": "boolean"},
    "choice": {"type": "string"},
    "digits": {"type": "string", "form": "digits only"},
}


def json_object(text: str) -> dict[str, Any] | None:
    """The JSON object in `text`; an empty text is an empty object. None for anything else."""
    if len(text) > _MAX_JSON:
        return None
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
