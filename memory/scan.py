"""What a search reads of a caller's pages, as columns. Pure."""

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory.kinds import NOTHING_WANTED, Wanted

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """Hashed stems of one side of every page, one after another: the first `counts[0]` are the first page's."""

    hashes: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class Cosines:
    """One number a vector, in no order. `sides`: 0 the caller's, 1 the reply's."""

    page_ids: Ints
    sides: Ints
    values: Floats


@dataclass(frozen=True, slots=True)
class CallerScan:
    """All pages of a caller, oldest first; each array is one number a page.

    `call_ids` are hashes: equal for pages of one call. A side's cosine is that of its best chunk; NaN where it has
    no vector of the model asked for. `asked_terms` are the query's stems, hashed as the pages' are.
    """

    page_ids: Ints
    call_ids: Ints
    user_cosines: Floats
    reply_cosines: Floats
    user_terms: Terms
    reply_terms: Terms
    asked_terms: Ints
    kinds: NDArray[np.float32] | None = None
    """What each utterance could answer, shape (2 · pages, kinds); None where it was not looked at."""
    wanted: Wanted = NOTHING_WANTED
    """What the query asks for."""

    def __len__(self) -> int:
        return len(self.page_ids)

    def page_cosines(self) -> Floats:
        """The query's cosine with each page: the mean of its sides'; 0 where neither has a vector."""
        sides = np.column_stack((self.user_cosines, self.reply_cosines))
        known = np.isfinite(sides)
        return np.asarray(
            np.where(known, sides, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1), np.float64
        )

    def with_cosines(self, cosines: Cosines) -> "CallerScan":
        """The same pages with these; those of pages that it lacks (committed since) are left out."""
        if not len(self):
            return self
        order = np.argsort(self.page_ids, kind="stable")
        found = np.searchsorted(self.page_ids[order], cosines.page_ids)
        rows = order[np.minimum(found, len(self) - 1)]
        known = self.page_ids[rows] == cosines.page_ids
        table = np.full((len(self), 2), np.nan)
        # `fmax` knows that NaN is no number: the best chunk of a side stands for it.
        np.fmax.at(table, (rows[known], cosines.sides[known]), cosines.values[known])
        return replace(self, user_cosines=table[:, 0], reply_cosines=table[:, 1])


NO_PAGES = CallerScan(
    *(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0)),
    *(
        Terms(np.empty(0, np.int64), np.empty(0, np.int64)),
        Terms(np.empty(0, np.int64), np.empty(0, np.int64)),
    ),
    np.empty(0, np.int64),
)
NO_COSINES = Cosines(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
