"""Who is calling: `From` → an E.164 number, a `sip:` or `client:` address as itself, or nobody."""

import re

import phonenumbers
from phonenumbers import CountryCodeSource, PhoneMetadata

# Names Twilio gives to callers who withheld their number, and the same spelled on a keypad: ANONYMOUS,
# RESTRICTED (with and without country code), UNAVAILABLE, BLOCKED, UNKNOWN. Twilio's documents; B083.
_WITHHELD_NAMES = frozenset(
    {"anonymous", "restricted", "unavailable", "unknown", "private", "blocked", "withheld"}
)
_WITHHELD_DIGITS = frozenset({"266696687", "7378742833", "17378742833", "86282452253", "2562533", "8656696"})

_E164 = re.compile(r"\+[1-9][0-9]{6,14}")
_DIALLED = re.compile(r"[0-9]{6,18}")
_CLIENT = re.compile(r"(?i:client):([!-~]+)")
_SIP = re.compile(
    r"((?i:sips?)):([!-9;-?A-~]+)@([A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([;?][!-~]*)?"
)
MAX_ADDRESS_CHARS = 128
"""Of a `sip:` or `client:` address: it travels in the stream's token."""
_NANP = 1
_WHOLE = (CountryCodeSource.FROM_NUMBER_WITH_PLUS_SIGN, CountryCodeSource.FROM_NUMBER_WITH_IDD)


def caller_of(from_: str | None, stir: str | None = None, called: str = "") -> str | None:
    """Who calls, as their memory is kept: an E.164 number, a `sip:…` or `client:…` address, or `None`: nobody.

    `stir` is `StirVerstat`: a number whose network says it is forged belongs to nobody. `called`, in E.164, says in
    which country a number without a plus was dialled. Numbers are checked to be possible, not assigned: assignment
    data ages, and a caller whom the network delivered is there. A number within an address is whatever the far side
    wrote there, so an address is never anybody's number.
    """
    told = (from_ or "").strip()
    if is_withheld(told) or is_forged(stir):
        return None
    if ":" in told:
        return _address(told)
    if _E164.fullmatch(told):
        return _number(told, None)
    return _number(told, _region_of(called)) if _DIALLED.fullmatch(told) else None


def is_withheld(from_: str) -> bool:
    """Whether `From` stands for a caller who shows no number."""
    name = from_.strip().casefold()
    return not name or name in _WITHHELD_NAMES or name.removeprefix("+") in _WITHHELD_DIGITS


def is_forged(stir: str | None) -> bool:
    """Whether the network's signature for this number is wrong (any `TN-Validation-Failed…`)."""
    return (stir or "").strip().casefold().startswith("tn-validation-failed")


def is_attested(stir: str | None, caller: str | None) -> bool:
    """Whether the network vouches that this caller may use this number: a plain A, nothing after it.

    It vouches for numbers only: an address is never attested.
    """
    return (caller or "").startswith("+") and (stir or "").strip() == "TN-Validation-Passed-A"


def _number(told: str, region: str | None) -> str | None:
    """In E.164, each number in one spelling only."""
    try:
        parsed = phonenumbers.parse(told, region, keep_raw_input=True)
    except phonenumbers.NumberParseException:
        return None
    if parsed.country_code_source in _WHOLE:
        is_sure = phonenumbers.is_possible_number(parsed)
    else:
        is_sure = phonenumbers.is_valid_number(parsed) and _is_dialled_so(told, parsed, region)
    number = phonenumbers.format_number(parsed, phonenumbers.PhoneNumberFormat.E164)
    return number if is_sure and not is_withheld(number) else None


def _is_dialled_so(told: str, parsed: phonenumbers.PhoneNumber, region: str | None) -> bool:
    """Whether it is a number as it is dialled in the region.

    Without the digit that begins one there it may as well be a foreign number that lacks its plus.
    """
    if parsed.country_code_source == CountryCodeSource.FROM_NUMBER_WITHOUT_PLUS_SIGN:
        return True
    metadata = PhoneMetadata.metadata_for_region(region) if region is not None else None
    prefix = metadata.national_prefix if metadata is not None else None
    return not prefix or parsed.country_code == _NANP or told.startswith(prefix)


def _region_of(called: str) -> str | None:
    try:
        parsed = phonenumbers.parse(called)
    except phonenumbers.NumberParseException:
        return None
    region = phonenumbers.region_code_for_number(parsed)
    return region or phonenumbers.region_code_for_country_code(parsed.country_code or 0)


def _address(told: str) -> str | None:
    """An address in one spelling only: of SIP, without what says how to reach it."""
    if len(told) > MAX_ADDRESS_CHARS:
        return None
    if client := _CLIENT.fullmatch(told):
        return None if is_withheld(client[1]) else f"client:{client[1]}"
    sip = _SIP.fullmatch(told)
    if sip is None:
        return None
    scheme, user, host, port = sip[1].lower(), sip[2].partition(";")[0], sip[3].lower(), sip[4] or ""
    if is_withheld(user) or host.endswith(".invalid"):  # RFC 3323: whoever is at anonymous.invalid hides
        return None
    return f"{scheme}:{user}@{host}{port}"
