"""D_VAD: the paper's formula, and its way back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.core.threshold import LONGEST_MS, Threshold


@pytest.mark.parametrize(
    ("gap_ms", "raised_ms"),
    [(0, 700), (600, 1_300), (601, 1_400), (700, 1_400), (4_300, 5_000), (9_000, 5_000), (-50, 700)],
)
def test_a_proved_gap_raises_it(gap_ms: float, raised_ms: int) -> None:
    threshold = Threshold(500)
    assert threshold.proved_short(gap_ms)
    assert (threshold.ms, threshold.normal_ms, threshold.is_normal) == (raised_ms, 500, False)
    assert threshold.restore()
    assert (threshold.ms, threshold.is_normal) == (500, True)
    assert not threshold.restore()


def test_what_is_asked_for_is_the_new_normal() -> None:
    threshold = Threshold(500)
    threshold.proved_short(600)
    threshold.ask(1_200)
    assert (threshold.ms, threshold.normal_ms, threshold.asked_ms) == (1_200, 1_200, 1_200)


@pytest.mark.parametrize(("asked_ms", "suited_ms"), [(None, 900), (300, 900), (1_200, 1_200)])
def test_what_suits_the_line_is_for_now_and_no_less_than_was_asked_for(
    asked_ms: int | None, suited_ms: int
) -> None:
    threshold = Threshold(500, asked_ms)
    normal_ms = threshold.ms
    assert normal_ms == (asked_ms or 500)
    threshold.suit(900)
    assert (threshold.ms, threshold.asked_ms) == (suited_ms, asked_ms)
    threshold.restore()
    assert threshold.ms == normal_ms


def test_the_model_is_told_why_it_is_so() -> None:
    threshold = Threshold(500)
    assert threshold.shown() == "silence_ms=500 (default)"
    threshold.suit(900)
    assert threshold.shown() == "silence_ms=900 (for this line; else 500)"
    threshold.ask(300)
    assert threshold.shown() == "silence_ms=300 (asked)"


def test_the_longest_is_not_exceeded_nor_lowered() -> None:
    threshold = Threshold(LONGEST_MS)
    assert not threshold.proved_short(1_000)
    assert threshold.ms == LONGEST_MS


@given(st.lists(st.floats(0, 6_000), max_size=8))
def test_it_only_rises_until_it_is_restored(gaps_ms: list[float]) -> None:
    threshold = Threshold(500)
    before = threshold.ms
    for gap_ms in gaps_ms:
        threshold.proved_short(gap_ms)
        assert before <= threshold.ms <= LONGEST_MS
        assert threshold.ms % 100 == 0
        before = threshold.ms
