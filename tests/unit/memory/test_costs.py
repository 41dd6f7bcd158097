"""Prices and token estimates, by hand."""

from dataclasses import dataclass

import pytest

from memory.costs import (
    PRICES,
    audio_tokens,
    estimate_usd,
    is_estimate,
    text_tokens,
    transcription_usd,
    word_count,
)


@dataclass(frozen=True)
class Usage:
    input_text_tokens: int = 0
    input_audio_tokens: int = 0
    cached_text_tokens: int = 0
    cached_audio_tokens: int = 0
    output_text_tokens: int = 0
    output_audio_tokens: int = 0


def test_a_reply_is_priced_by_kind_of_token() -> None:
    """1000 × 4 − 400 × 3.6 + 500 × 32 − 100 × 31.6 + 50 × 24 + 200 × 64 = 29,400 millionths."""
    usage = Usage(1_000, 500, 400, 100, 50, 200)
    assert estimate_usd(usage, "gpt-realtime-2.1") == pytest.approx(0.0294)
    assert estimate_usd(usage, "sandbox") == pytest.approx(0.0294)


def test_the_small_model_is_cheaper() -> None:
    """1000 × 0.6 + 500 × 10 + 200 × 20 = 9,600 millionths."""
    assert estimate_usd(Usage(1_000, 500, 0, 0, 0, 200), "gpt-realtime-2.1-mini") == pytest.approx(0.0096)


def test_more_cached_than_read_is_never_cheaper_than_cached() -> None:
    assert estimate_usd(Usage(input_text_tokens=100, cached_text_tokens=900), "sandbox") == pytest.approx(
        40e-6
    )


def test_an_unknown_model_is_an_estimate() -> None:
    usage = Usage(output_text_tokens=1_000)
    assert estimate_usd(usage, "someone-elses") == estimate_usd(usage, "gpt-realtime-2.1")
    assert is_estimate("someone-elses") and is_estimate("sandbox")
    assert not is_estimate("gpt-realtime-2.1")


def test_transcription_is_priced_by_the_minute() -> None:
    assert transcription_usd(90_000, "gpt-live-transcribe") == pytest.approx(0.0255)


def test_the_table_says_when_and_where_from() -> None:
    assert PRICES.date.year == 2026
    assert all(price.source for price in PRICES.models.values())
    assert all(price.source.startswith("an estimate") == price.estimate for price in PRICES.models.values())


@pytest.mark.parametrize(("words", "tokens"), [(0, 0), (1, 2), (3, 4), (100, 133), (101, 135)])
def test_words_cost_one_and_a_third(words: int, tokens: int) -> None:
    assert text_tokens(words) == tokens


@pytest.mark.parametrize(("audio_ms", "tokens"), [(0, 0), (20, 1), (1_000, 10), (60_000, 599)])
def test_a_second_of_audio_costs_ten(audio_ms: int, tokens: int) -> None:
    assert audio_tokens(audio_ms) == tokens


def test_a_text_without_spaces_has_words_too() -> None:
    assert word_count("no nuts, please") == 3
    assert word_count("明日の十時に") == 6
    assert word_count("  ") == 0
