"""A call's meter, by hand, and the month it counts against."""

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from ivr.core.commands import ReportTurn
from ivr.core.events import Usage
from ivr.core.latency import Latency
from ivr.remembering import Prices
from ivr.spending import Meter, month_start

PRICES = Prices("gpt-realtime-2.1", "gpt-realtime-whisper")


def turn(output_audio_tokens: int = 1_000, heard_ms: float = 0.0) -> ReportTurn:
    """A thousand tokens of the reply's audio cost 6.4 cents."""
    return ReportTurn(1, Latency(), Usage(output_audio_tokens=output_audio_tokens), heard_ms)


def test_the_turn_that_reaches_the_ceiling_is_told_once() -> None:
    meter = Meter(PRICES, 0.10)
    assert [meter.add(turn()) for _ in range(4)] == [False, True, False, False]
    assert meter.is_spent


def test_transcription_counts_too() -> None:
    """A minute is 1.7 cents."""
    assert Meter(PRICES, 0.0169).add(turn(0, 60_000))
    assert not Meter(PRICES, 0.0171).add(turn(0, 60_000))


def test_without_a_ceiling_nothing_is_ever_spent() -> None:
    meter = Meter(PRICES, None)
    assert not any(meter.add(turn(10**9)) for _ in range(3))
    assert not meter.is_spent


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_a_call_may_begin_with_nothing_left(left: float) -> None:
    meter = Meter(PRICES, left)
    assert meter.is_spent
    assert not meter.add(turn())


def test_a_month_begins_at_midnight_of_the_zone() -> None:
    zone = ZoneInfo("America/New_York")
    start = month_start(datetime(2026, 11, 30, 13, 5, tzinfo=zone))
    assert start.isoformat() == "2026-11-01T00:00:00-04:00"  # still in summer time on that day
