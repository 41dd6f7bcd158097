"""`collect`: one typed value from the caller, by voice or keys, checked and read back."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from callflows.actions import Say
from callflows.fields import Line, Name, fault
from callflows.lexicon import DIGIT_WORDS, plain
from callflows.nodes.base import (
    Awaited,
    Event,
    Here,
    Key,
    KeysDone,
    Outcome,
    Pattern,
    Silence,
    Words,
)
from callflows.nodes.prompts import Waits
from callflows.texts import Texts, filled, text_in
from callflows.understand import KEYED_KINDS, Kind, keyed, sounds, understood, yes_no

_MAX_KEYS = 40


class CollectNode(Waits):
    """Asks for one value and keeps it in a slot. A `secret` one is taken by keys only and masked everywhere."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), *Waits.LINKS)
    FILLS: ClassVar[tuple[Pattern, ...]] = (("slot",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("confirm",), *Waits.TEXTS)

    type: Literal["collect"]
    slot: Name = Field(description="Where the value is kept.")
    kind: Kind = Field(description="What kind of value it is.")
    choices: dict[Name, tuple[Line, ...]] = Field(
        {},
        max_length=30,
        description="For `choice`: each value with the words callers say; by keys: its place.",
    )
    by: Literal["voice", "keys", "both"] = Field("both", description="How it may be given.")
    secret: bool = Field(False, description="Keys only; not spoken back, not kept, not heard by the model.")
    least: float | None = Field(None, allow_inf_nan=False, description="The smallest number or amount.")
    most: float | None = Field(None, allow_inf_nan=False, description="The largest number or amount.")
    min_digits: int = Field(1, ge=1, le=_MAX_KEYS)
    max_digits: int = Field(_MAX_KEYS, ge=1, le=_MAX_KEYS)
    finish: Literal["#", "*", ""] = Field("#", description="The key that ends an entry.")
    confirm: Texts = Field({}, description="Reads {slot} back; a yes, or key 1, keeps it.")
    to: Name = Field(description="The node to go to with the value.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.kind == "choice") != bool(self.choices):
            raise fault(
                "`choices` belong to kind choice, and it needs them", "like choices: {small: [small one]}"
            )
        if self.secret and (self.by != "keys" or self.confirm):
            raise fault("a secret is taken by keys and never read back", "by: keys, without confirm")
        if self.by != "voice" and self.kind not in KEYED_KINDS and self.by == "keys":
            raise fault("this kind cannot be given by keys", f"by keys: {', '.join(KEYED_KINDS)}")
        if self.min_digits > self.max_digits:
            raise fault("min_digits is above max_digits", "")
        return self

    def enter(self, here: Here) -> Outcome:
        """Ask."""
        return Outcome(say=self.question(here), progress=here.progress)

    def awaits(self, here: Here) -> Awaited:
        """Words, keys or both; while a value is read back, a yes or a no."""
        confirming = here.progress.candidate is not None
        return Awaited(
            words=self.by != "keys",
            keys=confirming or self._takes_keys(),
            silence_s=self.wait_s,
            key_wait_s=self.key_wait_s,
            secret=self.secret,
        )

    def take(self, event: Event, here: Here) -> Outcome:
        """A value, a yes or no to what was read back, or asking again."""
        if isinstance(event, Silence):
            return self.silent(here)
        if here.progress.candidate is not None:
            return self._answered(event, here)
        match event:
            case Key(digit):
                return self._key(digit, here) if self._takes_keys() else Outcome(progress=here.progress)
            case KeysDone():
                return self._entered(here.progress.keys, here)
            case Words(text):
                return self._said(text, here)

    def question(self, here: Here, before: Mapping[str, str] | None = None) -> tuple[Say, ...]:
        """The prompt, or the value read back."""
        value = here.progress.candidate
        if value is None:
            return self.prompt(here, before)
        spoken = {**here.spoken, self.slot: self._sounds(value, here)}
        return (Say(filled(text_in(self.confirm, here.language), spoken)),)

    def _takes_keys(self) -> bool:
        return self.by != "voice" and self.kind in KEYED_KINDS

    def _key(self, digit: str, here: Here) -> Outcome:
        keys = here.progress.keys
        if digit == self.finish:
            return self._entered(keys, here)
        keys += digit
        if len(keys) >= self._longest():
            return self._entered(keys, here)
        return Outcome(progress=replace(here.progress, keys=keys))

    def _longest(self) -> int:
        """How many keys can be a value: the last of them ends the entry."""
        if self.kind == "yes_no":
            return 1
        if self.kind == "choice":
            return len(str(len(self.choices)))
        return 4 if self.kind == "time" else self.max_digits

    def _entered(self, keys: str, here: Here) -> Outcome:
        if self.kind == "choice":
            names = list(self.choices)
            in_range = keys.isdecimal() and 1 <= int(keys) <= len(names)
            return self._value(names[int(keys) - 1] if in_range else None, here)
        return self._value(keyed(self.kind, keys, here.region), here)

    def _said(self, text: str, here: Here) -> Outcome:
        if self.by == "keys":
            return Outcome(progress=here.progress)
        value = self._choice(text) if self.kind == "choice" else None
        if self.kind != "choice":
            value = understood(self.kind, text, here.now, here.region)
        return self._value(value, here)

    def _choice(self, text: str) -> str | None:
        said = plain(text)
        places = {str(no): name for no, name in enumerate(self.choices, start=1)}
        if DIGIT_WORDS.get(said, said) in places:
            return places[DIGIT_WORDS.get(said, said)]
        phrases = {
            name: [plain(w) for w in (*words, name.replace("_", " "))] for name, words in self.choices.items()
        }
        fits = [name for name, each in phrases.items() if any(p and f" {p} " in f" {said} " for p in each)]
        return fits[0] if len(fits) == 1 else None

    def _value(self, value: Any, here: Here) -> Outcome:
        if value is None or not self._is_allowed(value):
            return self.unmatched(here)
        if self.confirm:
            progress = replace(here.progress, candidate=value, keys="")
            return Outcome(say=self.question(replace(here, progress=progress)), progress=progress)
        return self._kept(value)

    def _is_allowed(self, value: Any) -> bool:
        if self.kind in ("number", "money"):
            amount = float(value)
            return (self.least is None or amount >= self.least) and (self.most is None or amount <= self.most)
        return self.kind != "digits" or self.min_digits <= len(value) <= self.max_digits

    def _kept(self, value: Any) -> Outcome:
        if self.secret:
            return Outcome(to=self.to, secrets={self.slot: value})
        return Outcome(to=self.to, slots={self.slot: value})

    def _answered(self, event: Event, here: Here) -> Outcome:
        """The answer to what was read back; another value said at once is taken instead."""
        agreed = {"1": True, "2": False}.get(event.digit) if isinstance(event, Key) else None
        if isinstance(event, Words):
            agreed = yes_no(event.text)
        if agreed:
            return self._kept(here.progress.candidate)
        fresh = replace(here, progress=replace(here.progress, candidate=None, keys=""))
        if agreed is None and isinstance(event, Words) and self.kind not in ("text", "yes_no"):
            return self._said(event.text, fresh)
        if agreed is None:
            again = replace(here, progress=replace(here.progress, no_match=here.progress.no_match + 1))
            if here.progress.no_match < self.no_match.times:
                return Outcome(say=self.question(again), progress=again.progress)
        return self.unmatched(fresh)

    def _sounds(self, value: Any, here: Here) -> str:
        if self.kind == "choice":
            return (
                (self.choices[value] or (value.replace("_", " "),))[0]
                if value in self.choices
                else str(value)
            )
        return sounds(value, self.kind, here.language, here.now)
