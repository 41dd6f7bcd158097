"""Who is calling: `From` → an E.164 number, or nobody."""

import re

import phonenumbers

# Names Twilio gives to callers who withheld their number, and the same spelled on a keypad: ANONYMOUS,
# RESTRICTED (with and without country code), UNAVAILABLE, BLOCKED, UNKNOWN. Twilio's documents; B083.
_WITHHELD_NAMES = frozenset(
    {"anonymous", "restricted", "unavailable", "unknown", "private", "blocked", "withheld"}
)
_WITHHELD_DIGITS = frozenset({"266696687", "7378742833", "17378742833", "86282452253", "2562533", "8656696"})

_E164 = re.compile(r"\+[1-9][0-9]{6,14}")


def caller_of(from_: str | None, stir: str | None = None) -> str | None:
    """The caller's number in E.164; `None` for withheld, `sip:`, `client:` and impossible numbers.

    `stir` is `StirVerstat`: a number whose network says it is forged belongs to nobody. Numbers are checked
    to be possible, not assigned: assignment data ages, and a caller whom the network delivered is there.
    """
    number = (from_ or "").strip()
    if is_withheld(number) or not _E164.fullmatch(number) or is_forged(stir):
        return None
    try:
        parsed = phonenumbers.parse(number)
    except phonenumbers.NumberParseException:
        return None
    return number if phonenumbers.is_possible_number(parsed) else None


def is_withheld(from_: str) -> bool:
    """Whether `From` stands for a caller who shows no number."""
    name = from_.strip().casefold()
    return not name or name in _WITHHELD_NAMES or name.removeprefix("+") in _WITHHELD_DIGITS


def is_forged(stir: str | None) -> bool:
    """Whether the network's signature for this number is wrong (any `TN-Validation-Failed…`)."""
    return (stir or "").strip().casefold().startswith("tn-validation-failed")


def is_attested(stir: str | None) -> bool:
    """Whether the network vouches that this caller may use this number: a plain A, nothing after it."""
    return (stir or "").strip() == "TN-Validation-Passed-A"
