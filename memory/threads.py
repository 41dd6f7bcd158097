"""Which vthreads a new page joins: append, spawn, or alone. Pure.

The paper appends to every thread at cosine ≥ 0.35 with bge-small. A threshold belongs to its model: with
MiniLM that rule puts 97 % of all pages into one thread. Average link over a thread's pages, best one or two
threads only, gave topics whose pages belong together four times as often as chance (measured on LoCoMo).
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ThreadProfile:
    """Thresholds for one embedding model. Cosines."""

    append_link: float
    """Least average cosine between the page and a thread's pages."""
    page_link: float
    """Least cosine between the page and an old page that founds a thread with it."""
    threads_max: int = 2
    """How many threads a page joins at most."""
    founders_max: int = 3
    """How many old pages found a thread with the new one at most."""


DEFAULT_PROFILE = ThreadProfile(append_link=0.35, page_link=0.45)
# bge-small's cosines lie higher and closer together: an unrelated pair is seldom below 0.4. To be measured by
# `ivr bench threads`; until then a bound above its noise.
PROFILES = {
    "all-MiniLM-L6-v2": DEFAULT_PROFILE,
    "BAAI/bge-small-en-v1.5": ThreadProfile(append_link=0.62, page_link=0.68),
}


@dataclass(frozen=True, slots=True)
class ThreadLink:
    """How near a thread is: the mean cosine of the page to the thread's pages."""

    thread_id: int
    average_link: float


@dataclass(frozen=True, slots=True)
class PageLink:
    """How near an old page is."""

    page_id: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Append:
    """Join these threads, nearest first."""

    thread_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Spawn:
    """Found a thread of these old pages (none: a singleton) and the new one."""

    page_ids: tuple[int, ...]


def profile_for(model: str) -> ThreadProfile:
    """The model's thresholds; MiniLM's for a model nobody has measured."""
    return PROFILES.get(model, DEFAULT_PROFILE)


def place(threads: Sequence[ThreadLink], pages: Sequence[PageLink], profile: ThreadProfile) -> Append | Spawn:
    """Where a new page belongs. Ties go to the newer thread or page (the greater id)."""
    near = [link for link in threads if link.average_link >= profile.append_link]
    if near:
        near.sort(key=lambda link: (link.average_link, link.thread_id), reverse=True)
        return Append(tuple(link.thread_id for link in near[: profile.threads_max]))
    kin = [link for link in pages if link.cosine >= profile.page_link]
    kin.sort(key=lambda link: (link.cosine, link.page_id), reverse=True)
    return Spawn(tuple(link.page_id for link in kin[: profile.founders_max]))
