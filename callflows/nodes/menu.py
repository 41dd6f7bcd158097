"""`menu`: keys and what they mean, pressed or spoken."""

import re
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, WithJsonSchema

from callflows.fields import Line, Name, fault
from callflows.lexicon import DIGIT_WORDS, plain
from callflows.nodes.base import Awaited, Event, Here, Key, KeysDone, Outcome, Pattern, Silence, Words
from callflows.nodes.prompts import Waits
from callflows.part import Part

_CHOICE = re.compile(r"[0-9*#]{1,4}")


def _choice(text: str) -> str:
    if not _CHOICE.fullmatch(text):
        raise fault("not a choice by keys", 'one to four of 0-9, * and #, like "1"')
    return text


Choice = Annotated[
    str, AfterValidator(_choice), WithJsonSchema({"type": "string", "pattern": "^[0-9*#]{1,4}$"})
]


class Option(Part):
    """One choice of a menu."""

    to: Name = Field(description="The node to go to.")
    words: tuple[Line, ...] = Field((), max_length=30, description="What callers say for it.")


class MenuNode(Waits):
    """Offers choices; `0` reaches the operator and `*` repeats, unless the menu gives them another meaning."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("options", "*", "to"), *Waits.LINKS)

    type: Literal["menu"]
    options: dict[Choice, Option] = Field(min_length=1, max_length=30)

    def enter(self, here: Here) -> Outcome:
        """Ask."""
        return Outcome(say=self.prompt(here), progress=here.progress)

    def awaits(self, here: Here) -> Awaited:
        """Keys and words."""
        return Awaited(words=True, keys=True, silence_s=self.wait_s, key_wait_s=self.key_wait_s)

    def take(self, event: Event, here: Here) -> Outcome:
        """A choice, or asking again."""
        match event:
            case Key(digit):
                return self._keys(here.progress.keys + digit, here)
            case KeysDone():
                return self._chosen(here.progress.keys, here)
            case Words(text):
                return self._chosen(self._meant(text), here)
            case Silence():
                return self.silent(here)

    def _keys(self, keys: str, here: Here) -> Outcome:
        """At once where no longer choice begins like it; a key that begins none counts as one mistake."""
        longer = [choice for choice in self.options if choice.startswith(keys) and choice != keys]
        if longer:
            return Outcome(progress=replace(here.progress, keys=keys))
        if keys == "*" and keys not in self.options:
            return Outcome(say=self.prompt(here), progress=replace(here.progress, keys=""))
        return self._chosen(keys, here)

    def _chosen(self, choice: str, here: Here) -> Outcome:
        option = self.options.get(choice)
        return self.unmatched(here) if option is None else Outcome(to=option.to)

    def _meant(self, text: str) -> str:
        """The choice whose words were said; empty when none or several fit equally well."""
        said = plain(text)
        scores = {choice: self._score(choice, option, said) for choice, option in self.options.items()}
        best = max(scores.values(), default=0)
        chosen = [choice for choice, score in scores.items() if score == best]
        return chosen[0] if best and len(chosen) == 1 else ""

    def _score(self, choice: str, option: Option, said: str) -> int:
        """The length of the longest of an option's phrases that was said."""
        digits = [word for word, digit in DIGIT_WORDS.items() if digit == choice]
        phrases = [plain(words) for words in option.words]
        exact = said in (
            choice,
            *digits,
            *(f"{lead} {each}" for lead in _LEADS for each in (choice, *digits)),
        )
        inside = [len(phrase) for phrase in phrases if phrase and f" {phrase} " in f" {said} "]
        return 1_000 if exact else max(inside, default=0)


_LEADS = ("option", "number", "press", "opcion", "numero", "nummer", "taste", "option numero")
