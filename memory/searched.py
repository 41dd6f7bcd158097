"""What a search of a caller's pages came to. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from memory.caller_pages import CallerPages
from memory.model import Page
from memory.scan import CallerScan, Floats, Ints
from memory.strategies import Found


@dataclass(frozen=True, slots=True)
class Searched:
    """What a turn's window is made of: the latest pages of the call, and all that the strategy reads, with them.

    `found`: how likely each side of a page answers; `has_words`: the query has words to search for; `facts`: passages
    of the business's documents; `seen`: all that may be looked at.
    """

    recent: list[Page]
    pages: list[Page]
    found: dict[int, Found]
    has_words: bool
    seen: CallerPages
    facts: Sequence[str] = ()


def best(sides: Floats, page_ids: Ints, count: int, also: Collection[int]) -> list[int]:
    """Rows of the best pages by their better side, and of those in `also`; none that cannot answer at all."""
    better = sides.max(axis=1, initial=-np.inf)
    rows = np.argsort(-better, kind="stable")[:count].tolist()
    rows += np.flatnonzero(np.isin(page_ids, list(also))).tolist()
    return [row for row in rows if better[row] > -np.inf]


def found_in(scan: CallerScan, sides: Floats, rows: Sequence[int]) -> dict[int, Found]:
    """What the search says of the pages in these rows."""
    cosines = scan.page_cosines()
    return {
        int(scan.page_ids[row]): Found((float(sides[row, 0]), float(sides[row, 1])), float(cosines[row]))
        for row in rows
    }
