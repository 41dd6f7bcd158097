"""What the two parties of a call are called. Their names say who spoke, and nothing about what of. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parties:
    """Names by which a query may speak of the caller and of the agent; matched as whole words, in any case."""

    caller: tuple[str, ...] = ("caller",)
    agent: tuple[str, ...] = ("assistant",)

    def asked_side(self, query: str) -> int | None:
        """0 if the query speaks of the caller only, 1 if of the agent only, else None."""
        named = [
            bool(names) and _pattern(names).search(query) is not None for names in (self.caller, self.agent)
        ]
        if named[0] == named[1]:
            return None
        return 0 if named[0] else 1

    def without_names(self, query: str) -> str:
        """The query as it is searched for: a name that half of all pages could bear only blurs it."""
        names = (*self.caller, *self.agent)
        return " ".join(_pattern(names).sub(" ", query).split()) if names else query


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    longest_first = sorted(names, key=len, reverse=True)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, longest_first))})(?:['’]s)?\b", re.IGNORECASE)
