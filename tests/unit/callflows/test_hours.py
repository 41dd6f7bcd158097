"""Opening hours at fixed instants: over DST changes, midnight and holidays, in the business's own zone."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from callflows.hours import Hours, Override, days_of, open_by
from tests.unit.callflows.examples import unhurried

NEW_YORK, SYDNEY = ZoneInfo("America/New_York"), ZoneInfo("Australia/Sydney")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def hours(weekly: dict[str, object], **more: object) -> Hours:
    return Hours.model_validate({"weekly": weekly, **more})


@pytest.mark.parametrize(
    ("instant", "is_open"),
    [
        ("2026-03-06T13:30Z", False),
        ("2026-03-09T13:30Z", True),
        ("2026-10-30T13:30Z", True),
        ("2026-11-02T13:30Z", False),
        ("2026-11-02T21:59Z", True),
        ("2026-11-02T22:00Z", False),
    ],
)
def test_b065_hours_follow_the_zones_rules_over_dst(instant: str, is_open: bool) -> None:
    assert hours({"mon-fri": "09:00-17:00"}).is_open(at(instant), NEW_YORK) is is_open


@pytest.mark.parametrize(
    ("instant", "is_open"),
    [
        ("2026-12-25T04:59Z", True),
        ("2026-12-25T05:00Z", False),
        ("2026-12-26T04:59Z", False),
        ("2026-12-26T05:00Z", True),
    ],
)
def test_b068_a_holiday_is_the_business_s_own_day(instant: str, is_open: bool) -> None:
    always = hours({"mon-sun": "00:00-24:00"}, holidays={"country": "US"})
    assert always.is_open(at(instant), NEW_YORK) is is_open


def test_b068_new_year_in_sydney() -> None:
    always = hours({"mon-sun": "00:00-24:00"}, holidays={"country": "AU", "subdivision": "NSW"})
    assert not always.is_open(at("2025-12-31T13:00Z"), SYDNEY)
    assert always.is_open(at("2025-12-31T12:59Z"), SYDNEY)


def test_holidays_of_a_part_of_a_country_and_hours_of_their_own() -> None:
    patriots = at("2026-04-20T15:00Z")
    assert not hours({"mon": "09:00-17:00"}, holidays={"country": "US", "subdivision": "MA"}).is_open(
        patriots, NEW_YORK
    )
    assert hours({"mon": "09:00-17:00"}, holidays={"country": "US"}).is_open(patriots, NEW_YORK)
    short = {"country": "US", "subdivision": "MA", "hours": "10:00-12:00"}
    assert hours({"mon": "09:00-17:00"}, holidays=short).is_open(patriots, NEW_YORK)


def test_a_date_of_its_own_wins_over_holiday_and_week() -> None:
    own = hours(
        {"mon-sun": "09:00-17:00"},
        holidays={"country": "US"},
        dates={"2026-12-25": "20:00-21:00", "2026-12-28": "closed"},
    )
    assert own.is_open(at("2026-12-26T01:30Z"), NEW_YORK)
    assert not own.is_open(at("2026-12-25T16:00Z"), NEW_YORK)
    assert not own.is_open(at("2026-12-28T16:00Z"), NEW_YORK)


def test_hours_over_midnight_belong_to_the_day_they_begin() -> None:
    night = hours({"fri": "22:00-02:00"})
    inside = ["2026-03-07T03:00Z", "2026-03-07T06:59Z"]
    outside = ["2026-03-07T02:59Z", "2026-03-07T07:00Z", "2026-03-06T05:00Z"]
    assert [night.is_open(at(i), NEW_YORK) for i in inside] == [True, True]
    assert [night.is_open(at(o), NEW_YORK) for o in outside] == [False, False, False]


def test_several_ranges_a_day() -> None:
    split = hours({"mon": "09:00-12:00, 13:00-17:30"})
    told = [
        split.is_open(at(f"2026-01-05T{t}:00-05:00"), NEW_YORK) for t in ("11:59", "12:00", "13:00", "17:30")
    ]
    assert told == [True, False, True, False]


def test_the_hour_that_comes_twice_and_the_one_that_never_comes() -> None:
    assert hours({"sun": "01:00-02:00"}).is_open(at("2026-11-01T05:30Z"), NEW_YORK)
    assert hours({"sun": "01:00-02:00"}).is_open(at("2026-11-01T06:30Z"), NEW_YORK)
    assert not hours({"sun": "01:00-02:00"}).is_open(at("2026-11-01T07:00Z"), NEW_YORK)
    assert hours({"sun": "02:30-04:00"}).is_open(at("2026-03-08T07:30Z"), NEW_YORK)


@pytest.mark.parametrize(
    ("weekly", "message"),
    [
        ({"mon": "9-17"}, "not a range of hours"),
        ({"mon": "09:00-09:00"}, "this range is empty"),
        ({"mon": "09:00-25:00"}, "a day has 24 hours"),
        ({"mon": "09:61-10:00"}, "not a range of hours"),
        ({"mon": "09:00-12:00, 11:00-13:00"}, "these hours overlap"),
        ({"mon": "20:00-04:00", "tue": "03:00-05:00"}, "these hours overlap"),
        ({"sun": "20:00-04:00", "mon": "03:00-05:00"}, "these hours overlap"),
        ({"mon-wed": "09:00-10:00", "tue": "11:00-12:00"}, "tue is given twice"),
        ({"someday": "09:00-10:00"}, "not a day of the week"),
        ({}, "at least 1 item"),
    ],
)
def test_faults(weekly: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        hours(weekly)


def test_unknown_countries_are_told() -> None:
    with pytest.raises(ValidationError, match="no holidays are known for this country"):
        hours({"mon": "closed"}, holidays={"country": "XX"})
    with pytest.raises(ValidationError, match="for this part of the country"):
        hours({"mon": "closed"}, holidays={"country": "US", "subdivision": "XX"})


def test_days() -> None:
    assert days_of("mon-wed") == (0, 1, 2)
    assert days_of("Sat, sunday") == (5, 6)
    assert days_of("fri-mon") == (4, 5, 6, 0)
    assert days_of("m") == days_of("mon-") == days_of("") == ()


def test_an_override_holds_until_it_expires() -> None:
    schedules = {"office": hours({"mon": "09:00-17:00"})}
    noon, later = at("2026-01-05T17:00Z"), at("2026-01-05T18:00Z")
    closed = {"office": Override(is_open=False, until=later)}
    assert open_by("office", schedules, {}, noon, "America/New_York")
    assert not open_by("office", schedules, closed, noon, "America/New_York")
    assert open_by("office", schedules, closed, later, "America/New_York")
    assert not open_by("office", schedules, {}, None, "America/New_York")


@unhurried
@given(st.datetimes(datetime(2024, 1, 1), datetime(2028, 1, 1)))
def test_open_all_week_is_never_closed(instant: datetime) -> None:
    assert hours({"mon-sun": "00:00-24:00"}).is_open(instant.replace(tzinfo=UTC), NEW_YORK)
