"""Opening hours: weekly ranges, holidays and dates of a business's own, told for an instant in its time zone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo

import holidays
from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from callflows.fields import closest, fault
from callflows.part import Part

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_MIN = 24 * 60
_RANGE = re.compile(r"(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})")
_RANGE_HINT = "like 09:00-17:30; several with commas; `closed`; 22:00-02:00 goes on after midnight"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Open from one minute of the day to another, the end exclusive; an end above 1,440 is on the next day."""

    start_min: int
    end_min: int

    def __str__(self) -> str:
        end = self.end_min if self.end_min <= _DAY_MIN else self.end_min - _DAY_MIN
        return f"{_clock(self.start_min)}-{_clock(end)}"


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"


def _span(text: str) -> Span:
    match = _RANGE.fullmatch(text.strip())
    numbers = [int(part) for part in match.groups()] if match else []
    if not numbers or numbers[1] > 59 or numbers[3] > 59:
        raise fault("not a range of hours", _RANGE_HINT)
    start_min, end_min = numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3]
    if start_min >= _DAY_MIN or end_min > _DAY_MIN:
        raise fault("a day has 24 hours", "write 00:00-24:00 for the whole day")
    if start_min == end_min:
        raise fault("this range is empty", "write 00:00-24:00 for the whole day, or `closed`")
    return Span(start_min, end_min if end_min > start_min else end_min + _DAY_MIN)


def _spans(value: Any) -> tuple[Span, ...]:
    if isinstance(value, str):
        value = [] if value.strip() == "closed" else value.split(",")
    if not isinstance(value, list | tuple) or not all(isinstance(each, str | Span) for each in value):
        raise fault("not a range of hours", _RANGE_HINT)
    spans = sorted(each if isinstance(each, Span) else _span(each) for each in value)
    if any(before.end_min > after.start_min for before, after in pairwise(spans)):
        raise fault("these hours overlap", "join them, or move one")
    return tuple(spans)


def _days(text: str) -> str:
    if not days_of(text):
        raise fault("not a day of the week", "like mon, mon-fri or sat,sun")
    return text


def days_of(text: str) -> tuple[int, ...]:
    """The weekdays (Monday is 0) that `mon-fri` or `sat, sun` names; none if it is not of that form."""
    found: list[int] = []
    for part in text.lower().split(","):
        first, dash, last = (word.strip() for word in part.partition("-"))
        ends = [day for word in (first, last if dash else first) for day in _day(word)]
        if len(ends) != 2:
            return ()
        length = (ends[1] - ends[0]) % 7
        found += [(ends[0] + step) % 7 for step in range(length + 1)]
    return tuple(found)


def _day(word: str) -> list[int]:
    names = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    return [no for no, name in enumerate(names) if len(word) >= 3 and name.startswith(word)]


def _date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise fault("not a date", "like 2026-12-24") from None


_SPANS_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
Spans = Annotated[
    tuple[Span, ...],
    BeforeValidator(_spans),
    PlainSerializer(lambda spans: [str(span) for span in spans], return_type=list[str]),
    WithJsonSchema(_SPANS_SCHEMA),
]
"""The ranges of one day; none: closed."""
Days = Annotated[str, AfterValidator(_days)]
IsoDate = Annotated[str, AfterValidator(_date)]


class Holidays(Part):
    """Public holidays of a country or a part of it, by the `holidays` package."""

    country: str = Field(max_length=8, description="ISO 3166 code: US, DE.")
    subdivision: str = Field("", max_length=8, description="ISO 3166-2 part of it: MA, BY.")
    hours: Spans = Field((), description="Hours on holidays; closed when left out.")

    @model_validator(mode="after")
    def _exists(self) -> Self:
        supported = holidays.list_supported_countries()
        if self.country not in supported:
            raise fault("no holidays are known for this country", closest(self.country, list(supported)))
        if self.subdivision and self.subdivision not in supported[self.country]:
            known = closest(self.subdivision, list(supported[self.country]))
            raise fault("no holidays are known for this part of the country", known)
        return self


class Hours(Part):
    """One schedule. What is more special wins: a date of its own, then a holiday, then the week."""

    weekly: dict[Days, Spans] = Field(min_length=1, max_length=7, description="mon-fri: 09:00-17:00.")
    holidays: Holidays | None = None
    dates: dict[IsoDate, Spans] = Field({}, max_length=400, description='"2026-12-24": 09:00-12:00.')

    @model_validator(mode="after")
    def _no_overlap(self) -> Self:
        given: dict[int, str] = {}
        for key in self.weekly:
            for day in days_of(key):
                if day in given:
                    raise fault(f"{DAYS[day]} is given twice", "give each day once", ("weekly", key))
                given[day] = key
        week = sorted(self._week())
        if not week:
            return self
        first, key = week[0]
        wrapped = [*week, (Span(first.start_min + 7 * _DAY_MIN, 0), key)]
        for (before, _), (after, key) in pairwise(wrapped):
            if before.end_min > after.start_min:
                hint = "hours that go on after midnight run into these"
                raise fault("these hours overlap", hint, ("weekly", key))
        return self

    def _week(self) -> Iterator[tuple[Span, str]]:
        """Every range of the week, with the key that it stands under."""
        for key, spans in self.weekly.items():
            for day in days_of(key):
                for span in spans:
                    yield Span(span.start_min + day * _DAY_MIN, span.end_min + day * _DAY_MIN), key

    def spans_on(self, day: date) -> tuple[Span, ...]:
        """The ranges that begin on a date."""
        own = self.dates.get(day.isoformat())
        if own is not None:
            return own
        if self.holidays is not None and day in _calendar(self.holidays.country, self.holidays.subdivision):
            return self.holidays.hours
        return next((s for key, s in self.weekly.items() if day.weekday() in days_of(key)), ())

    def is_open(self, now: datetime, zone: ZoneInfo) -> bool:
        """Whether an instant lies within the hours. `now` must have a zone; ends are exclusive."""
        today = now.astimezone(zone).date()
        instant = now.astimezone(UTC)
        return any(start <= instant < end for start, end in self._instants((today - _ONE_DAY, today), zone))

    def next_open(self, now: datetime, zone: ZoneInfo, days: int = 14) -> datetime | None:
        """The first opening after an instant, in UTC; None if there is none within so many days."""
        today = now.astimezone(zone).date()
        starts = self._instants((today + timedelta(days=day) for day in range(days + 1)), zone)
        return min((start for start, _ in starts if start > now.astimezone(UTC)), default=None)

    def _instants(self, days: Iterable[date], zone: ZoneInfo) -> Iterator[tuple[datetime, datetime]]:
        for day in days:
            for span in self.spans_on(day):
                # Of an hour that comes twice: from the first to the second.
                yield _instant(day, span.start_min, zone, fold=0), _instant(day, span.end_min, zone, fold=1)


_ONE_DAY = timedelta(days=1)


def _instant(day: date, minutes: int, zone: ZoneInfo, *, fold: int) -> datetime:
    # Wall clock, not elapsed time: 09:00 is 09:00 on a day of 23 hours too.
    wall = datetime(day.year, day.month, day.day, fold=fold) + timedelta(minutes=minutes)
    return wall.replace(tzinfo=zone, fold=fold).astimezone(UTC)


@cache
def _calendar(country: str, subdivision: str) -> "holidays.HolidayBase":
    return holidays.country_holidays(country, subdiv=subdivision or None)


@dataclass(frozen=True, slots=True)
class Override:
    """Somebody said by hand that a schedule is open, or closed, until a time (with a zone)."""

    is_open: bool
    until: datetime


def open_by(
    name: str,
    schedules: Mapping[str, Hours],
    overrides: Mapping[str, Override],
    now: datetime | None,
    zone: str,
) -> bool:
    """Whether a schedule is open now; an override that has not expired decides. A time not known: closed."""
    if now is None or name not in schedules:
        return False
    by_hand = overrides.get(name)
    if by_hand is not None and now < by_hand.until:
        return by_hand.is_open
    return schedules[name].is_open(now, ZoneInfo(zone))
