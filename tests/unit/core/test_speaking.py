"""The paper's estimate of the speaking rate and its mapping to a speed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.core.speaking import SpeakingRate, SpeedProfile


def test_newest_utterances_weigh_most() -> None:
    rate = SpeakingRate("en-US")
    for words in (10, 12, 15):  # in 5 s each: 120, 144, 180 words a minute
        rate.add(words, 5_000)
    assert rate.estimate_wpm() == pytest.approx((1 * 120 + 2 * 144 + 3 * 180) / 6)


def test_only_the_last_ten_count() -> None:
    rate = SpeakingRate("en")
    for _ in range(5):
        rate.add(20, 5_000)
    for _ in range(10):
        rate.add(10, 5_000)
    assert rate.estimate_wpm() == pytest.approx(120)


@pytest.mark.parametrize(("words", "duration_ms"), [(2, 499), (1, 1_000), (6, 1_000), (0, 1_000), (5, 0)])
def test_too_short_or_implausible_utterances_are_left_out(words: int, duration_ms: int) -> None:
    rate = SpeakingRate("en-US")
    rate.add(words, duration_ms)
    assert rate.estimate_wpm() is None


def test_a_language_without_a_band_has_no_rate() -> None:
    rate = SpeakingRate("zh-CN")
    rate.add(10, 4_000)
    assert rate.estimate_wpm() is None


@pytest.mark.parametrize(
    ("wpm", "speed"), [(142.4, 0.8), (267.0, 1.5), (204.7, 1.15), (100, 0.8), (300, 1.5)]
)
def test_speed_is_linear_between_the_profile_s_ends(wpm: float, speed: float) -> None:
    assert SpeedProfile().speed_for(wpm) == pytest.approx(speed)


@given(st.floats(0, 1_000))
def test_speed_never_leaves_the_profile(wpm: float) -> None:
    assert 0.8 <= SpeedProfile().speed_for(wpm) <= 1.5
