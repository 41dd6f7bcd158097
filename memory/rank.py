"""Fusing rankings. Pure."""

from collections.abc import Iterable, Mapping, Sequence

RRF_K = 60
"""Damps the lead of first places (Cormack, Clarke and Büttcher 2009)."""

THREAD_BEST_PAGES = 3


def fuse(rankings: Iterable[Mapping[int, int]], k: int = RRF_K) -> dict[int, float]:
    """Reciprocal rank fusion: each ranking maps an id to its rank from 1; an id it lacks gains nothing there."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for key, rank in ranking.items():
            scores[key] = scores.get(key, 0.0) + 1.0 / (k + rank)
    return scores


def thread_score(page_ids: Sequence[int], scores: Mapping[int, float]) -> float:
    """A thread by the mean of its best pages, never by its centroid (which every large topic drifts to)."""
    best = sorted((scores.get(page_id, 0.0) for page_id in page_ids), reverse=True)[:THREAD_BEST_PAGES]
    return sum(best) / THREAD_BEST_PAGES
