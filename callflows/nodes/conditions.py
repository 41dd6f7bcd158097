"""Conditions as YAML: `all`, `any`, `not`, or one fact about the call."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, StringConstraints, WithJsonSchema, model_validator

from callflows.fields import Language, Name, fault
from callflows.nodes.base import Here
from callflows.part import Part

Operator = Literal[
    "is", "is_not", "above", "below", "at_least", "at_most", "contains", "starts_with", "given"
]
Comparable = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=200),
    # To us all is text; to an editor 8 is a number.
    WithJsonSchema(
        {"anyOf": [{"type": "string", "maxLength": 200}, {"type": "number"}, {"type": "boolean"}]}
    ),
]

_FORMS = ("all", "any", "not", "slot", "caller", "language", "hours")


class Condition(Part):
    """Exactly one of `all`, `any`, `not`, `slot` (with `op` and `value`), `caller`, `language` or `hours`."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    all: tuple["Condition", ...] = Field((), max_length=20)
    any: tuple["Condition", ...] = Field((), max_length=20)
    not_: "Condition | None" = Field(None, alias="not")
    slot: Name | None = Field(None, description="A slot to look at.")
    op: Operator | None = Field(None, description="How to compare; `is` when left out.")
    value: Comparable | None = Field(None, description="What to compare with.")
    caller: Literal["vip", "staff", "known", "withheld"] | None = Field(None, description="Who calls.")
    language: Language | None = Field(None, description="The language the call is in.")
    hours: Name | None = Field(None, description="A schedule that is open now.")

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [form for form in _FORMS if getattr(self, "not_" if form == "not" else form)]
        if len(given) != 1:
            raise fault("a condition is exactly one of its forms", f"one of {', '.join(_FORMS)}")
        needs_value = self.slot is not None and self.op != "given"
        if needs_value != (self.value is not None) or (self.op is not None and self.slot is None):
            raise fault("`op` and `value` belong to `slot`", "like slot: party, op: above, value: 8")
        if self.op in _ORDER and _number(self.value) is None and not (self.value or "")[:1].isdigit():
            raise fault("this can only be compared with a number, a date or a time", "like value: 8")
        return self

    def holds(self, here: Here) -> bool:
        """Whether it is true now. A slot that was not filled fulfils nothing but `is_not`."""
        if self.all or self.any:
            return all(c.holds(here) for c in self.all) if self.all else any(c.holds(here) for c in self.any)
        if self.not_ is not None:
            return not self.not_.holds(here)
        if self.slot is not None:
            return _compare(here.slots.get(self.slot), self.op or "is", self.value or "")
        if self.hours is not None:
            return here.is_open(self.hours)
        if self.language is not None:
            return here.language.split("-")[0] == self.language.split("-")[0]
        return {
            "vip": here.is_vip,
            "staff": here.is_staff,
            "known": here.caller is not None,
            "withheld": here.caller is None,
        }[self.caller or "known"]


def _compare(value: Any, op: str, wanted: str) -> bool:
    if op == "given" or value is None:
        return value is not None if op == "given" else op == "is_not"
    text = _text(value).casefold()
    wanted = wanted.casefold()
    if op in _ORDER:
        left, right = _number(text), _number(wanted)
        if left is not None and right is not None:
            return _ORDER[op](left, right)
        # Dates and times as ISO text are ordered as they are in time.
        return left is None and right is None and _ORDER[op](text, wanted)
    return _TEXTS[op](text, wanted)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None


_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "above": lambda a, b: bool(a > b),
    "below": lambda a, b: bool(a < b),
    "at_least": lambda a, b: bool(a >= b),
    "at_most": lambda a, b: bool(a <= b),
}
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "is": lambda a, b: _same(a, b),
    "is_not": lambda a, b: not _same(a, b),
    "contains": lambda a, b: b in a,
    "starts_with": lambda a, b: a.startswith(b),
}


def _same(a: str, b: str) -> bool:
    left, right = _number(a), _number(b)
    return a == b or (left is not None and left == right)
