"""Dates and times in what callers say: English words, and figures."""

import re
from datetime import date, datetime, timedelta

from callflows.lexicon import ENGLISH, MONTHS, ORDINALS, TEENS, TENS, WEEKDAYS, in_words, plain, sum_of


def date_in(text: str, now: datetime | None, _: str) -> str | None:
    """ISO date; weekdays and dates without a year are the next ones from today on. Years from 1900 to 2099."""
    said = plain(text)
    iso = re.search(r"\b(\d{4}) (\d{1,2}) (\d{1,2})\b", said)
    if iso:
        return _day(int(iso[1]), int(iso[2]), int(iso[3]))
    if now is None:
        return None
    today = now.date()
    for words, days in (("day after tomorrow", 2), ("tomorrow", 1), ("today", 0)):
        if words in said:
            return (today + timedelta(days=days)).isoformat()
    month = next((no for no, name in enumerate(MONTHS, start=1) if re.search(rf"\b{name}\b", said)), 0)
    if month:
        return _next_date(said, month, today)
    weekday = next((no for no, name in enumerate(WEEKDAYS) if re.search(rf"\b{name}\b", said)), None)
    if weekday is None:
        return None
    ahead = (weekday - today.weekday()) % 7 or 7
    return (today + timedelta(days=ahead)).isoformat()


def _next_date(said: str, month: int, today: date) -> str | None:
    year, rest = _year(said)
    figure = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", rest)
    day = int(figure[1]) if figure else _ordinal(rest)
    if year or not day:
        return _day(year, month, day) if year else None
    this_year = _day(today.year, month, day)
    if this_year is not None and this_year >= today.isoformat():
        return this_year
    return _day(today.year + 1, month, day)


_DIGIT = "|".join(word for word, no in ENGLISH.items() if 0 < no < 10 and word not in ("a", "an"))
_YEAR = re.compile(
    rf"\b(?P<century>nineteen|twenty) (?P<rest>(?:oh|o) (?:{_DIGIT})|hundred"
    rf"|{'|'.join(TEENS)}|(?:{'|'.join(TENS)})(?: (?:{_DIGIT}))?)\b"
    rf"|\btwo thousand(?: and)?(?: (?P<after>{'|'.join((*TEENS, _DIGIT))}|(?:{'|'.join(TENS)})(?: (?:{_DIGIT}))?))?\b"
)
"""A year of this century or the last in words: nineteen eighty, twenty oh nine, two thousand and four."""


def _year(said: str) -> tuple[int, str]:
    """The year that is named, 0 for none, and what else is said."""
    if figures := re.search(r"\b((?:19|20)\d\d)\b", said):
        return int(figures[1]), said.replace(figures[1], " ")
    words = _YEAR.search(said)
    if words is None:
        return 0, said
    within = words["rest"] or words["after"] or ""
    year = 1_900 if words["century"] == "nineteen" else 2_000
    year += sum(ENGLISH.get(word, 0) for word in within.split())
    return year, f"{said[: words.start()]} {said[words.end() :]}"


def _ordinal(said: str) -> int:
    for no in range(31, 0, -1):
        word = (
            ORDINALS[no - 1]
            if no <= 20
            else ("thirtieth" if no == 30 else f"{'twenty' if no < 30 else 'thirty'} {ORDINALS[no % 10 - 1]}")
        )
        if re.search(rf"\b{word}\b", said):
            return no
    return int(in_words([w for w in said.split() if w in ENGLISH and w not in ("a", "an")]) or 0)


def _day(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


_HALVES = {"half past": 30, "quarter past": 15, "quarter to": -15}


def time_in(text: str, _: datetime | None, __: str) -> str | None:
    """ISO time HH:MM. An hour up to seven without am or pm is taken for the afternoon, as callers mean it."""
    said = re.sub(r"\b([ap])\.?\s?m\b\.?", r"\1m", text.casefold())
    if "noon" in said or "midday" in said:
        return "12:00"
    if "midnight" in said:
        return "00:00"
    half = next((words for words in _HALVES if words in said), "")
    clock = re.search(r"\b(\d{1,2})(?::(\d{2}))?\s?([ap]m)?\b", said)
    if clock and clock[0].strip():
        hour, minute = int(clock[1]), int(clock[2] or 0)
    else:
        hour, minute = _spoken_clock(plain(said.replace(half, " ") if half else said))
    half_min = _HALVES.get(half, 0)
    is_pm = "pm" in said or any(w in said for w in ("afternoon", "evening", "tonight"))
    is_am = (
        "am" in re.findall(r"\bam\b|\d(am)\b", said) or "morning" in said or bool(clock and clock[3] == "am")
    )
    if hour == 12 and is_am:
        hour = 0
    elif hour < 12 and (is_pm or (1 <= hour <= 7 and not is_am and not (clock and clock[2]))):
        hour += 12
    total = hour * 60 + minute + half_min
    return hour_minute(total // 60, total % 60) if hour >= 0 else None


def _spoken_clock(said: str) -> tuple[int, int]:
    """`three`, `nine thirty`, `ten fifteen` as hour and minute; (-1, 0) for none."""
    numbers = [w for w in said.split() if w in ENGLISH and w not in ("a", "an")]
    hour = ENGLISH.get(numbers[0], -1) if numbers else -1
    minute = sum_of(numbers[1:]) if len(numbers) > 1 else 0.0
    return (hour, int(minute)) if 0 <= hour <= 12 and minute is not None and minute < 60 else (-1, 0)


def hour_minute(hour: int, minute: int) -> str | None:
    return f"{hour:02}:{minute:02}" if 0 <= hour < 24 and 0 <= minute < 60 else None
