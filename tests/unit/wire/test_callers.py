"""Who is somebody, and who is nobody."""

import pytest

from ivr.wire.callers import caller_of, is_attested

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
        "sip:+15551230012@example.com",
        "client:ana",
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
    assert is_attested("TN-Validation-Passed-A")
    for other in ("TN-Validation-Passed-A-Diverted", "TN-Validation-Passed-B", "No-TN-Validation", "", None):
        assert not is_attested(other)
