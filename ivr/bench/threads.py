"""Thresholds of vthreads for an embedding model: pages of one answer belong together, random ones do not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from memory.threads import Append, PageLink, ThreadLink, ThreadProfile, place

Floats32 = NDArray[np.float32]
SIMILAR_PAGES_MAX = 10
"""As many as the store shows to `place`."""
PAGE_STEP = 0.1
"""How much nearer an old page must be to found a thread than a thread to be joined: one page says less than many."""


@dataclass(frozen=True, slots=True)
class Talk:
    """A dialogue's pages as unit vectors, in order, and which pages answer each question with several."""

    vectors: Floats32
    answers: tuple[tuple[int, ...], ...]


class Threading(msgspec.Struct, frozen=True):
    """What thresholds do. Shares of 1.

    `together`: pairs of pages of one answer that are in one thread; `by_chance`: the same of all pairs.
    """

    append_link: float
    page_link: float
    threads: float
    largest: float
    together: float
    by_chance: float

    @property
    def gain(self) -> float:
        """How much more often pages that belong together are together than others."""
        return self.together - self.by_chance


def profile_of(append_link: float) -> ThreadProfile:
    """The profile that this threshold stands for."""
    return ThreadProfile(round(append_link, 3), round(append_link + PAGE_STEP, 3))


def threads_of(vectors: Floats32, profile: ThreadProfile) -> list[list[int]]:
    """The threads that these pages form, committed one after the other."""
    threads: list[list[int]] = []
    for number in range(len(vectors)):
        cosines = vectors[:number] @ vectors[number]
        near = [ThreadLink(index, float(cosines[pages].mean())) for index, pages in enumerate(threads)]
        similar = [
            PageLink(int(page), float(cosines[page])) for page in np.argsort(-cosines)[:SIMILAR_PAGES_MAX]
        ]
        match place(near, similar, profile):
            case Append(thread_ids):
                for index in thread_ids:
                    threads[index].append(number)
            case found:
                threads.append([*sorted(found.page_ids), number])
    return threads


def measure(talks: Sequence[Talk], profile: ThreadProfile) -> Threading:
    """Means over the dialogues."""
    rows = np.array([_measure(talk, profile) for talk in talks])
    return Threading(profile.append_link, profile.page_link, *(round(float(x), 4) for x in rows.mean(axis=0)))


def best_of(rows: Sequence[Threading]) -> Threading:
    """The greatest gain; the stricter threshold where it is the same."""
    return max(rows, key=lambda row: (row.gain, row.append_link))


def _measure(talk: Talk, profile: ThreadProfile) -> tuple[float, float, float, float]:
    count = len(talk.vectors)
    threads = threads_of(talk.vectors, profile)
    shared = np.zeros((count, count), bool)
    for pages in threads:
        shared[np.ix_(pages, pages)] = True
    pairs = [(a, b) for answer in talk.answers for a in answer for b in answer if a < b]
    together = float(np.mean([shared[pair] for pair in pairs])) if pairs else 0.0
    by_chance = (int(shared.sum()) - count) / max(1, count * (count - 1))
    return float(len(threads)), max(map(len, threads)) / count, together, by_chance
