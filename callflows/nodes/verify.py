"""`verify`: the caller shows who they are by the PIN that the business gave them. By keys only; nobody hears it."""

from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from callflows.fields import Name
from callflows.nodes.base import Awaited, Event, Here, Key, KeysDone, Outcome, Pattern, Silence
from callflows.nodes.prompts import Waits

CHECKING = "checking"
"""The candidate while a PIN is being checked: it is never the PIN itself."""
CHECK_WAIT_S = 10.0
MAX_DIGITS = 12


class VerifyNode(Waits):
    """Asks for the PIN. Goes `to` when it is right, to `failed` after `no_match: times` more tries."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("failed",), *Waits.LINKS)

    type: Literal["verify"]
    to: Name = Field(description="The node to go to once the caller is verified.")
    failed: Name = Field(description="The node to go to when they are not.")

    def enter(self, here: Here) -> Outcome:
        """Ask; again, too, where another worker took the call while a PIN was checked."""
        progress = replace(here.progress, candidate=None, keys="")
        return Outcome(say=self.question(here), progress=progress)

    def awaits(self, here: Here) -> Awaited:
        """Keys, for nobody's ears; nothing while what was entered is checked."""
        is_checking = here.progress.candidate == CHECKING
        silence_s = CHECK_WAIT_S if is_checking else self.wait_s
        return Awaited(False, not is_checking, silence_s, self.key_wait_s, secret=True)

    def take(self, event: Event, here: Here) -> Outcome:
        """Keys up to `#`, or to a pause."""
        if here.progress.candidate == CHECKING:
            return (
                self.checked(False, here) if isinstance(event, Silence) else Outcome(progress=here.progress)
            )
        match event:
            case Silence():
                return self.silent(here)
            case Key("#") | KeysDone():
                return self._check(here.progress.keys, here)
            case Key(digit) if digit.isdecimal():
                keys = here.progress.keys + digit
                if len(keys) >= MAX_DIGITS:
                    return self._check(keys, here)
                return Outcome(progress=replace(here.progress, keys=keys))
        return Outcome(progress=here.progress)

    def checked(self, is_right: bool, here: Here) -> Outcome:
        """Go on, ask again, or give up."""
        if is_right:
            return Outcome(to=self.to)
        wrong = replace(here.progress, candidate=None)
        if here.progress.no_match >= self.no_match.times:
            return Outcome(to=self.failed)
        return self.unmatched(replace(here, progress=wrong))

    def _check(self, keys: str, here: Here) -> Outcome:
        return Outcome(check=keys, progress=replace(here.progress, candidate=CHECKING, keys=""))
