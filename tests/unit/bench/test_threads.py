"""Thresholds of vthreads: what they make of pages whose topics are known."""

import numpy as np
import pytest

from ivr.bench.threads import Talk, best_of, measure, profile_of, threads_of
from ivr.bench.threads_command import as_svg

TOPICS = (0, 1, 0, 1, 1, 0)


def talk(noise: float) -> Talk:
    """Two topics, far from each other; pages of a topic are the nearer the less noise."""
    rng = np.random.default_rng(7)
    vectors = np.array([np.eye(16)[topic] for topic in TOPICS]) + rng.normal(0.0, noise, (len(TOPICS), 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Talk(vectors.astype(np.float32), ((0, 2), (1, 3, 4)))


def test_pages_of_a_topic_form_a_thread() -> None:
    assert threads_of(talk(0.05).vectors, profile_of(0.5)) == [[0, 2, 5], [1, 3, 4]]


@pytest.mark.parametrize(("link", "threads", "together"), [(-1.0, 1, 1.0), (0.5, 2, 1.0), (1.0, 6, 0.0)])
def test_a_threshold_is_judged_by_what_is_together(link: float, threads: int, together: float) -> None:
    row = measure([talk(0.05)], profile_of(link))
    assert (row.threads, row.together) == (threads, together)
    assert row.largest == pytest.approx({1: 1.0, 2: 0.5, 6: 1 / 6}[threads], abs=1e-4)
    assert row.by_chance == pytest.approx({1: 1.0, 2: 0.4, 6: 0.0}[threads])


def test_the_best_threshold_tells_topics_apart() -> None:
    rows = [measure([talk(0.1)], profile_of(link)) for link in (-1.0, 0.5, 1.0)]
    assert best_of(rows).append_link == 0.5
    assert "<svg" in as_svg(rows, "a model")


def test_a_dialogue_without_such_questions_has_nothing_together() -> None:
    row = measure([Talk(talk(0.1).vectors, ())], profile_of(0.5))
    assert (row.together, row.threads) == (0.0, 2)
