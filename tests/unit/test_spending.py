"""A call's meter, by hand, and the month it counts against."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from ivr.spending import Meter, month_start
from memory.model import Charge, ChargeKind


def charge(usd: float = 0.064) -> Charge:
    return Charge("one", ChargeKind.SPEECH, "gpt-realtime-2.1", usd, datetime.now(UTC))


def test_the_charge_that_reaches_the_ceiling_is_told_once() -> None:
    meter = Meter(0.10)
    assert [meter.add(charge()) for _ in range(4)] == [False, True, False, False]
    assert meter.is_spent


def test_without_a_ceiling_nothing_is_ever_spent() -> None:
    meter = Meter(None)
    assert not any(meter.add(charge(1e6)) for _ in range(3))
    assert not meter.is_spent


@pytest.mark.parametrize("left", [0.0, -1.0])
def test_a_call_may_begin_with_nothing_left(left: float) -> None:
    meter = Meter(left)
    assert meter.is_spent
    assert not meter.add(charge())


def test_a_month_begins_at_midnight_of_the_zone() -> None:
    zone = ZoneInfo("America/New_York")
    start = month_start(datetime(2026, 11, 30, 13, 5, tzinfo=zone))
    assert start.isoformat() == "2026-11-01T00:00:00-04:00"  # still in summer time on that day
