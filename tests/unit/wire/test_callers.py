"""Who is somebody, and who is nobody."""

import pytest

from ivr.wire.callers import MAX_ADDRESS_CHARS, caller_of, is_attested
from ivr.wire.tokens import Grant, StreamTokens

NUMBER = "+15551230012"

WITHHELD = [
    "",
    " ",
    None,
    "anonymous",
    "Anonymous",
    "ANONYMOUS",
    "Restricted",
    "restricted",
    "Unavailable",
    "Unknown",
    "Private",
    "+266696687",
    "266696687",
    "+7378742833",
    "7378742833",
    "+17378742833",
    "17378742833",
    "+86282452253",
    "86282452253",
    "+2562533",
    "2562533",
    "+8656696",
    "8656696",
    " +266696687 ",
]


@pytest.mark.parametrize("from_", WITHHELD)
def test_b083_a_withheld_caller_is_nobody(from_: str | None) -> None:
    assert caller_of(from_, None) is None
    assert caller_of(from_, "TN-Validation-Passed-A") is None


@pytest.mark.parametrize(
    "from_",
    [
        "+1555",
        "+0123456789",
        "+12345678901234567",
        "+999999999999",
        "15551230012",
        "+1 555 123 0012",
        "+1555123001²",
        "+1555123٠٠١٢",
        "Ana <+15551230012>",
        "+15551230012\n+1",
    ],
)
def test_what_is_no_e164_number_is_nobody(from_: str) -> None:
    assert caller_of(from_, None) is None


@pytest.mark.parametrize("from_", ["+15551230012", "+442079460000", "+493012345678", "+33123456789"])
def test_a_number_is_somebody(from_: str) -> None:
    assert caller_of(from_, None) == from_
    assert caller_of(f" {from_} ") == from_


@pytest.mark.parametrize(
    ("stir", "known"),
    [
        ("TN-Validation-Passed-A", True),
        ("TN-Validation-Passed-C-Diverted", True),
        ("No-TN-Validation", True),
        ("", True),
        (None, True),
        ("TN-Validation-Failed", False),
        ("TN-Validation-Failed-A-Diverted-Passthrough", False),
    ],
)
def test_a_forged_number_is_nobody(stir: str | None, known: bool) -> None:
    assert (caller_of("+15551230012", stir) is not None) is known


def test_only_a_plain_a_is_attested() -> None:
    assert is_attested("TN-Validation-Passed-A", NUMBER)
    for other in ("TN-Validation-Passed-A-Diverted", "TN-Validation-Passed-B", "No-TN-Validation", "", None):
        assert not is_attested(other, NUMBER)


def test_an_address_is_never_attested() -> None:
    for caller in ("sip:+15551230012@example.com", "client:ana", "", None):
        assert not is_attested("TN-Validation-Passed-A", caller)


@pytest.mark.parametrize(
    ("from_", "called", "caller"),
    [
        ("6175550140", "+16175550199", "+16175550140"),
        ("16175550140", "+16175550199", "+16175550140"),
        ("01116175550140", "+16175550199", "+16175550140"),
        ("02079460000", "+442079460001", "+442079460000"),
        ("442079460000", "+442079460001", "+442079460000"),
        ("030123456", "+493012345678", "+4930123456"),
        ("0016175550140", "+493012345678", "+16175550140"),
        ("612345678", "+34911234567", "+34612345678"),
        # Without the digit a number begins with there, it may be a foreign one that lacks its plus.
        ("15112345678", "+493012345678", None),
        ("2079460000", "+442079460001", None),
        ("6175550140", "+442079460001", None),
        ("02079460000", "+16175550199", None),
        # Nobody knows the country.
        ("6175550140", "", None),
        ("6175550140", "sip:us@example.com", None),
        # Withheld, in disguise.
        ("00266696687", "+493012345678", None),
        ("011266696687", "+16175550199", None),
    ],
)
def test_a_number_without_a_plus_is_one_of_the_called_numbers_country(
    from_: str, called: str, caller: str | None
) -> None:
    assert caller_of(from_, None, called) == caller


def test_a_number_has_one_spelling() -> None:
    assert caller_of("+4402079460000") == caller_of("+442079460000") == "+442079460000"
    assert caller_of("+390612345678") == "+390612345678"  # Italy's zero is part of the number


@pytest.mark.parametrize(
    ("from_", "caller"),
    [
        # A SIP endpoint of a Twilio domain, one elsewhere, and a client of the Voice SDKs.
        ("sip:alice@example.com", "sip:alice@example.com"),
        ("client:joey", "client:joey"),
        ("SIP:alice@EXAMPLE.com;transport=udp", "sip:alice@example.com"),
        ("sip:Alice@example.com", "sip:Alice@example.com"),  # RFC 3261, 19.1.4: names differ by case
        ("sips:alice@example.com", "sips:alice@example.com"),
        ("sip:alice@example.com:5070?x=y", "sip:alice@example.com:5070"),
        ("sip:alice@[2001:db8::1]", "sip:alice@[2001:db8::1]"),
        ("sip:+15551230012@evil.example", "sip:+15551230012@evil.example"),
        ("sip:+15551230012;phone-context=x@evil.example", "sip:+15551230012@evil.example"),
        ("client:+15551230012", "client:+15551230012"),
        ("Client:sip:alice@example.com", "client:sip:alice@example.com"),
        ("sip:anonymous@anonymous.invalid", None),
        ("sip:alice@anonymous.invalid", None),
        ("sip:Anonymous@example.com", None),
        ("sip:+266696687@example.com", None),
        ("client:Anonymous", None),
        ("sip:example.com", None),
        ("sip:@example.com", None),
        ("sip:alice:secret@example.com", None),
        ("client:", None),
        ("client:ana maria", None),
        ("client:\u0661\u0662\u0663", None),
        ("tel:+15551230012", None),
        ("whatsapp:+15551230012", None),
        (f"client:{'x' * 200}", None),
    ],
)
def test_an_address_is_itself_and_never_a_number(from_: str, caller: str | None) -> None:
    assert caller_of(from_, None, "+15551230099") == caller


def test_a_forged_address_is_nobody() -> None:
    assert caller_of("sip:+15551230012@example.com", "TN-Validation-Failed-A") is None


def test_the_longest_address_fits_into_a_token() -> None:
    caller = caller_of("client:" + "x" * (MAX_ADDRESS_CHARS - len("client:")))
    tokens = StreamTokens("secret")
    token = tokens.mint(
        "CA" + "0" * 32,
        "a-business-of-a-long-name",
        nonce="n" * 16,
        now=1.8e9,
        caller=caller,
        to_number=NUMBER,
        account_sid="AC" + "0" * 32,
        is_attested=False,
    )
    grant = tokens.verify(token, "CA" + "0" * 32, 1.8e9)
    assert isinstance(grant, Grant)
    assert grant.caller == caller is not None
