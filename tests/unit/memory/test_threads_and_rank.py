"""Where a page belongs, and how rankings are fused."""

import pytest

from memory.rank import fuse, thread_score
from memory.threads import Append, PageLink, Spawn, ThreadLink, ThreadProfile, place, profile_for

PROFILE = ThreadProfile(append_link=0.35, page_link=0.45, threads_max=2, founders_max=2)


def test_the_nearest_two_threads_are_joined() -> None:
    threads = [ThreadLink(1, 0.36), ThreadLink(2, 0.6), ThreadLink(3, 0.34), ThreadLink(4, 0.5)]
    assert place(threads, [], PROFILE) == Append((2, 4))


def test_without_a_thread_similar_pages_found_one() -> None:
    pages = [PageLink(1, 0.44), PageLink(2, 0.5), PageLink(3, 0.9), PageLink(4, 0.6)]
    assert place([ThreadLink(1, 0.2)], pages, PROFILE) == Spawn((3, 4))


def test_with_neither_the_page_is_alone() -> None:
    assert place([], [], PROFILE) == Spawn(())


def test_thresholds_belong_to_a_model() -> None:
    assert profile_for("BAAI/bge-small-en-v1.5").append_link > profile_for("all-MiniLM-L6-v2").append_link
    assert profile_for("unheard-of") == profile_for("all-MiniLM-L6-v2")


def test_being_found_twice_beats_being_first_once() -> None:
    """1/61 < 1/62 + 1/63."""
    scores = fuse([{10: 1, 20: 2}, {30: 1, 20: 3}])
    assert max(scores, key=scores.__getitem__) == 20
    assert scores[20] == pytest.approx(1 / 62 + 1 / 63)


def test_a_thread_is_scored_by_its_best_pages_not_by_its_size() -> None:
    scores = {1: 0.9, 2: 0.9, 3: 0.9, 4: 0.1}
    assert thread_score([1, 2, 3], scores) == thread_score([1, 2, 3, 4, 5, 6], scores) == pytest.approx(0.9)
    assert thread_score([1], scores) == pytest.approx(0.3)
