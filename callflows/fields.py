"""The kinds of value a flow file holds: each checks itself and says how to mend what is wrong."""

import re
import zoneinfo
from collections.abc import Container
from datetime import timedelta
from difflib import get_close_matches
from typing import Annotated, Any

import phonenumbers
from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    StringConstraints,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

_PHONE_CHARACTERS = re.compile(r"\+[0-9 ().\-]{4,30}")
_DURATION = re.compile(r"(?:(\d{1,3})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?")
_ZONE = re.compile(r"[A-Za-z0-9_+\-]{1,32}(?:/[A-Za-z0-9_+\-]{1,32}){0,2}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:-([A-Za-z]{4}))?(?:-([A-Za-z]{2}|[0-9]{3}))?")
_LONGEST_RESUME = timedelta(days=30)


def fault(message: str, hint: str = "", at: tuple[str, ...] = ()) -> PydanticCustomError:
    """An error pydantic carries to the parser with the place it belongs to.

    `at`: the key further down that is at fault, where a part is judged as a whole.
    """
    return PydanticCustomError("flow", "{message}", {"message": message, "hint": hint, "at": at})


def closest(word: str, known: list[str]) -> str:
    """A hint naming the known word nearest to `word`, or all of them when none is near."""
    near = get_close_matches(word, known, n=1, cutoff=0.7)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"known: {', '.join(sorted(known)[:20])}" if known else ""


def e164(text: str) -> str | None:
    """`text` as E.164, or None if it is not a complete international number that can exist."""
    if not _PHONE_CHARACTERS.fullmatch(text):
        return None
    try:
        number = phonenumbers.parse(text, None)
    except phonenumbers.NumberParseException:
        return None
    if not phonenumbers.is_valid_number(number):
        return None
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _phone(text: str) -> str:
    number = e164(text)
    if number is None:
        raise fault("not a telephone number in international form", 'like "+16175550123", in quotes')
    return number


def _zone(text: str) -> str:
    try:
        if _ZONE.fullmatch(text):
            zoneinfo.ZoneInfo(text)
            return text
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        pass  # a folder's name ("America") is an OSError
    near = get_close_matches(text, sorted(zoneinfo.available_timezones()), n=1, cutoff=0.7)
    raise fault("not a time zone", f"did you mean `{near[0]}`?" if near else "like America/New_York")


def language_tag(text: str) -> str:
    """The tag in its usual form. Raises: pydantic's error with a hint."""
    match = _LANGUAGE.fullmatch(text)
    if not match:
        raise fault("not a language tag", "like en-US")
    language, script, region = match.groups()
    parts = (language.lower(), script.title() if script else "", region.upper() if region else "")
    return "-".join(part for part in parts if part)


def parse_duration(text: str) -> timedelta | None:
    """A duration as `1h30m` or `45s`; units d, h, m, s in that order. None if it is not one."""
    match = _DURATION.fullmatch(text)
    if not match or not text:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def duration_text(length: timedelta) -> str:
    """The shortest text `parse_duration` reads back as `length` (whole seconds)."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def _duration(value: Any) -> timedelta:
    length = value if isinstance(value, timedelta) else parse_duration(str(value))
    if length is None:
        raise fault("not a duration", "like 2h, 30m or 1h30m")
    if not timedelta(0) < length <= _LONGEST_RESUME:
        raise fault("must be longer than nothing and at most 30 days", "to switch it off: greeting: never")
    return length


def _name(text: str, info: ValidationInfo) -> str:
    # Names that only we make, of nodes in flows within the flow, come as the context: no file can hold them.
    made: Container[str] = info.context or ()
    if text not in made and not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", text):
        hint = "small letters, digits and _, starting with a letter, at most 40: like front_desk"
        braces = "braces are filled in where words are said only; an exit can lead to what differs"
        raise fault("not a usable name", braces if re.fullmatch(r"\{\w+\}", text) else hint)
    return text


def _slug(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", text) or len(text) > 63:
        raise fault(
            "not a usable id", "small letters, digits and single hyphens, at most 63: like harbor-dental"
        )
    return text


def _voice(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_.\-]{1,64}", text):
        raise fault("not a voice's name", "like marin")
    return text


def _model(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._:/\-]{0,99}", text):
        raise fault("not a model's name", "like gpt-realtime-2.1-mini")
    return text


def _email(text: str) -> str:
    # Enough to tell a slip of the finger; whether somebody reads there, only a message can tell.
    if not re.fullmatch(r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+", text):
        raise fault("not an e-mail address", "like office@example.com")
    return text


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _resume_text(text: str) -> str:
    if re.search(r"[{}]", text.replace("{topic}", "")):
        raise fault("only {topic} may stand in braces here", "write {topic} where the last topic belongs")
    return text


Email = Annotated[str, StringConstraints(max_length=254), AfterValidator(_email)]
PhoneNumber = Annotated[
    str, AfterValidator(_phone), WithJsonSchema({"type": "string", "pattern": r"^\+[0-9 ().\-]{4,30}$"})
]
"""E.164 once read; spaces, dots, hyphens and brackets may be written."""
TimeZone = Annotated[str, AfterValidator(_zone)]
Language = Annotated[str, AfterValidator(language_tag)]
Voice = Annotated[str, AfterValidator(_voice)]
ModelName = Annotated[str, AfterValidator(_model)]
Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": "^[a-z][a-z0-9_]{0,39}$"})
]
"""The name of a node, an exit or a transfer target; short enough to be part of a function's name."""
Slug = Annotated[
    str,
    AfterValidator(_slug),
    WithJsonSchema({"type": "string", "pattern": "^[a-z0-9]+(?:[-_][a-z0-9]+)*$", "maxLength": 63}),
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(duration_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^(\d{1,3}d)?(\d{1,4}h)?(\d{1,5}m)?(\d{1,6}s)?$"}),
]
Spoken = Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_096), AfterValidator(_one_line)]
"""Text to be said word for word. 4,096 characters: what TwiML `<Say>` takes. May be empty."""
SpokenNow = Annotated[Spoken, StringConstraints(min_length=1)]
Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), AfterValidator(_one_line)
]
"""A short description for the speech model, on one line. 200: all of them together must fit its limit."""
Fact = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2_000), AfterValidator(_one_line)
]
Topic = Annotated[str, StringConstraints(strip_whitespace=True, max_length=120), AfterValidator(_one_line)]
Prose = Annotated[str, StringConstraints(strip_whitespace=True, max_length=100_000)]
"""Instructions to the speech model; line breaks are kept."""
ResumeText = Annotated[Spoken, AfterValidator(_resume_text)]
