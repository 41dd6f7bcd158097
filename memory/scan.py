"""What a search reads of a caller's pages, as columns. Pure."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Terms:
    """Hashed stems of one side of every page, one after another: the first `counts[0]` are the first page's."""

    hashes: Ints
    counts: Ints


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

    def __len__(self) -> int:
        return len(self.page_ids)


NO_PAGES = CallerScan(
    *(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0)),
    *(
        Terms(np.empty(0, np.int64), np.empty(0, np.int64)),
        Terms(np.empty(0, np.int64), np.empty(0, np.int64)),
    ),
    np.empty(0, np.int64),
)
