"""Who the caller seems to be in this call, and what of their past it may therefore be made of. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from callflows.model import EXTENTS, Extent, MemoryUse
from memory.model import Access, Trust, Window, is_since

PIN_TRIES = 3
"""So many wrong PINs, and none counts any more in this call."""


class Keeps(StrEnum):
    """What is kept of a call."""

    ALL = "all"
    WORDS = "words"
    """The caller does not want to be recorded."""
    NOTHING = "nothing"
    """And the business then keeps nothing at all."""


class Wish(StrEnum):
    """Whether the caller wants to be forgotten."""

    NONE = "none"
    ASKED = "asked"
    """They said so, and are to confirm it."""
    CONFIRMED = "confirmed"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of the caller now. It never rises by words: only a PIN raises it."""

    trust: Trust = Trust.NUMBER
    is_shared: bool = False
    """Several people use the number, or it is in another call at this moment."""
    is_silent: bool = False
    """The number was not heard of for so long that it may be somebody else's by now."""
    new_since_s: float = 0.0
    """Unix time of the first call after the last such silence, this one or an earlier one; 0: there was none. What was
    said before may be another's, however often somebody has called since."""
    is_other: bool = False
    """Somebody else than the person remembered is on the line."""
    since_no: int = 1
    """The first exchange of this call that may be shown."""
    failures: int = 0
    """PINs that were wrong, in this call."""
    keeps: Keeps = Keeps.ALL
    wish: Wish = Wish.NONE
    wished_no: int = 0
    """The exchange in which they said that they want to be forgotten."""

    def extent(self, memory: MemoryUse) -> Extent:
        """How much of the past may be shown, by the business's policy."""
        if self.is_other or self.trust is Trust.NONE:
            return "nothing"
        if self.trust is Trust.VERIFIED:
            return memory.hears.verified
        if self.is_shared:
            return "nothing"
        allowed = memory.hears.attested if self.trust is Trust.ATTESTED else memory.hears.number
        return _less(allowed, "resumed") if self.is_silent else allowed

    def access(self, memory: MemoryUse) -> Access:
        """What a turn's window may be made of."""
        extent = self.extent(memory)
        return Access(
            resumed=extent != "nothing",
            older=extent == "all",
            trust=self.trust,
            only_verified=self.is_shared,
            since_no=self.since_no,
            after_s=0.0 if self.trust is Trust.VERIFIED else self.new_since_s,
        )

    def may_resume(self, memory: MemoryUse) -> bool:
        """Whether the call that broke off may be offered and taken up."""
        return self.extent(memory) != "nothing"

    def another_person(self, next_no: int, *, saw_past: bool) -> "Standing":
        """Somebody else took over. Where we may have spoken of the past, what this call said so far is hidden too."""
        return replace(self, is_other=True, is_shared=True, since_no=next_no if saw_past else self.since_no)

    def verified(self) -> "Standing":
        """They entered their PIN: they are who is remembered, whatever was said; but not after too many wrong ones."""
        if self.failures >= PIN_TRIES:
            return self
        return replace(self, trust=Trust.VERIFIED, is_other=False)

    def failed(self) -> "Standing":
        """A PIN was wrong. Too many make the call one of its number only; the number itself is never locked out."""
        failures = self.failures + 1
        trust = min(self.trust, Trust.NUMBER) if failures >= PIN_TRIES else self.trust
        return replace(self, failures=failures, trust=trust)

    def may_be_forgotten(self) -> bool:
        """Whether they may have what is remembered of the number erased: only who it is about."""
        return self.trust >= Trust.ATTESTED and not self.is_other and not self.is_shared

    def wants_to_be_forgotten(self, no: int) -> "Standing":
        """They said so in exchange `no`; in a later one they may confirm it."""
        return replace(self, wish=Wish.ASKED, wished_no=no)

    def may_confirm(self, no: int) -> bool:
        """Whether the wish may be confirmed in exchange `no`."""
        return self.wish is Wish.ASKED and no > self.wished_no and self.may_be_forgotten()

    def to_json(self) -> dict[str, Any]:
        """As a JSON-compatible dict."""
        return {**asdict(self), "trust": int(self.trust)}

    @classmethod
    def from_json(cls, data: object) -> "Standing | None":
        """What `to_json` gave; None for anything else, as an older snapshot has."""
        if not isinstance(data, Mapping) or data.get("trust") not in tuple(Trust):
            return None
        known = {name: data[name] for name in cls.__slots__ if name in data}
        known |= {"keeps": Keeps(data.get("keeps", Keeps.ALL)), "wish": Wish(data.get("wish", Wish.NONE))}
        return cls(**{**known, "trust": Trust(data["trust"])})


def _less(one: Extent, other: Extent) -> Extent:
    return min(one, other, key=EXTENTS.index)


def shown(window: Window, call_id: str, since_no: int, *, past: bool) -> Window:
    """What of a window may be shown now: it may have been made before something changed.

    `past`: pages of other calls, and summaries of topics, may.
    """
    if past and since_no <= 1:
        return window
    entries = tuple(
        entry
        for entry in window.entries
        if (is_since(entry.page.exchange_no, since_no) if entry.page.call_id == call_id else past)
    )
    return replace(window, entries=entries, threads=(), covers=())
