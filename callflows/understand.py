"""What callers say or press, as typed values. By rules, for slots that have a form; free talk is the model's.

English is understood fully; of German, French and Spanish: digits, yes and no, e-mail and figures.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any, Literal

import phonenumbers

from callflows.lexicon import DIGIT_WORDS, FILLERS, MAX_CHARS, NO, YES, number_in, plain
from callflows.when import date_in, hour_minute, time_in

Kind = Literal["text", "number", "money", "date", "time", "phone", "email", "yes_no", "choice", "digits"]

DAYS_OF_YEAR = 365


def understood(kind: Kind, text: str, now: datetime | None, region: str) -> Any:
    """The value of that kind in what was said, or None. Dates and times are ISO text, money has two decimals."""
    if len(text) > MAX_CHARS:
        return None
    return _READERS[kind](text, now, region)


def keyed(kind: Kind, keys: str, region: str) -> Any:
    """The value of that kind in pressed keys (without the terminator), or None. `*` is the decimal point."""
    if kind == "yes_no":
        return {"1": True, "2": False}.get(keys)
    if kind == "digits":
        return keys if keys.isdecimal() else None
    if kind == "phone":
        return _phone(keys, None, region)
    if kind == "time":
        return hour_minute(int(keys[:-2]), int(keys[-2:])) if re.fullmatch(r"\d{3,4}", keys) else None
    if kind in ("number", "money"):
        match = re.fullmatch(r"(\d{1,12})(?:\*(\d{1,2}))?", keys)
        return _amount(kind, float(f"{match[1]}.{match[2] or 0}")) if match else None
    return None


KEYED_KINDS = ("yes_no", "digits", "phone", "time", "number", "money", "choice")


def _amount(kind: str, value: float) -> Any:
    if kind == "money":
        return f"{value:.2f}"
    return int(value) if value.is_integer() else value


def yes_no(text: str) -> bool | None:
    """Whether a yes or a no was said; None for neither or both."""
    words = set(plain(text).split())
    is_yes, is_no = bool(words & YES), bool(words & NO)
    return (
        is_yes
        if is_yes != is_no
        else (False if words & {"not", "no"} and words & {"right", "correct"} else None)
    )


def _number(text: str, _: datetime | None, __: str) -> Any:
    value = number_in(text)
    return None if value is None else _amount("number", value)


def _money(text: str, _: datetime | None, __: str) -> Any:
    """`$12.50`, `12 dollars 50`, `twelve dollars and fifty cents`."""
    said = text.casefold()
    parts = re.split(r"\b(?:dollars?|euros?|pounds?|bucks)\b", said, maxsplit=1)
    value = number_in(re.sub(r"[$€£]", " ", parts[0]))
    cents = number_in(parts[1]) if len(parts) > 1 and parts[1].strip(" .,!?") else 0.0
    if value is None or cents is None or not 0 <= cents < 100 or value < 0:
        return None
    return _amount("money", value + cents / 100)


def _digits(text: str, _: datetime | None, __: str) -> Any:
    """Digits one by one; `double five` is two. Words that are no digit make it none, but for fillers."""
    found, times = "", 1
    for word in plain(text).split():
        if word in ("double", "triple"):
            times = 2 if word == "double" else 3
        elif word.isdecimal() or word in DIGIT_WORDS:
            found += (word if word.isdecimal() else DIGIT_WORDS[word]) * times
            times = 1
        elif word not in FILLERS:
            return None
    return found or None


def _phone(text: str, _: datetime | None, region: str) -> Any:
    digits = _digits(text.replace("+", " "), None, region)
    if digits is None:
        return None
    for candidate, home in ((f"+{digits}", None), (digits, region)):
        if "+" in candidate and "+" not in text:
            continue
        try:
            number = phonenumbers.parse(candidate, home)
        except phonenumbers.NumberParseException:
            continue
        if phonenumbers.is_valid_number(number):
            return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    return None


_MAIL = re.compile(r"[a-z0-9][a-z0-9._%+\-]{0,63}@(?:[a-z0-9](?:[a-z0-9\-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}")


def _email(text: str, _: datetime | None, __: str) -> Any:
    """An address as written, or as said: `ana dot li at example dot com`."""
    said = f" {text.casefold()} "
    for pattern, sign in _MAIL_WORDS:
        said = re.sub(pattern, sign, said)
    found = _MAIL.findall(said)
    return found[0] if len(found) == 1 else None


_MAIL_WORDS = (
    (r"\s+(?:at|arroba|arobase)\s+", "@"),
    (r"\s+(?:dot|punkt|punto|point)\s+", "."),
    (r"\s+(?:underscore)\s+", "_"),
    (r"\s+(?:dash|hyphen|minus)\s+", "-"),
)


def _text(text: str, _: datetime | None, __: str) -> Any:
    return " ".join(text.split()) or None


def _choice(_: str, __: datetime | None, ___: str) -> Any:
    return None  # a choice's words are its node's


_READERS: Mapping[str, Callable[[str, datetime | None, str], Any]] = {
    "text": _text,
    "number": _number,
    "money": _money,
    "date": date_in,
    "time": time_in,
    "phone": _phone,
    "email": _email,
    "yes_no": lambda text, _, __: yes_no(text),
    "choice": _choice,
    "digits": _digits,
}


def sounds(value: Any, kind: Kind | None, language: str, now: datetime | None = None) -> str:
    """A value as it is read back: digits one by one, dates in words in English, in figures elsewhere.

    A date that is not of the year from `now` on is told with its year: a date of birth, say.
    """
    if isinstance(value, bool):
        return _YES_NO_WORDS.get(language.split("-")[0], ("yes", "no"))[0 if value else 1]
    text = str(value)
    if kind in ("digits", "phone"):
        return " ".join(text.removeprefix("+"))
    if kind == "date":
        day = date.fromisoformat(text)
        if not language.startswith("en"):
            return f"{day.day}.{day.month}.{day.year}"
        if now is not None and not 0 <= (day - now.date()).days < DAYS_OF_YEAR:
            return f"{day:%B} {day.day}, {day.year}"
        return f"{day:%A, %B} {day.day}"
    if kind == "time" and language.startswith("en"):
        hour, minute = int(text[:2]), text[3:]
        past = "" if minute == "00" else f" {minute}"
        return f"{hour % 12 or 12}{past} {'am' if hour < 12 else 'pm'}"
    return text


_YES_NO_WORDS = {"de": ("ja", "nein"), "fr": ("oui", "non"), "es": ("sí", "no"), "en": ("yes", "no")}
