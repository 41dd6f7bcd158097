"""PINs: what is kept of them tells nobody what they are."""

import pytest

from ivr.errors import CallthreadError
from ivr.pins import check_form, hash_pin, is_right


def test_a_hash_is_of_one_pin_and_one_pepper() -> None:
    stored = hash_pin("123456", "pepper")
    assert is_right("123456", stored, "pepper")
    assert not is_right("123457", stored, "pepper")
    assert not is_right("123456", stored, "another pepper")
    assert "123456" not in stored
    assert hash_pin("123456", "pepper") != stored, "each has a salt of its own"


@pytest.mark.parametrize("stored", ["", "scrypt1", "scrypt1$$", "scrypt1$!!$x", "bcrypt$AAAA$AAAA", "x" * 99])
def test_what_is_no_hash_is_right_for_nobody(stored: str) -> None:
    assert not is_right("123456", stored, "pepper")


@pytest.mark.parametrize("pin", ["", "12345", "1" * 13, "12345a", "１２３４５６"])
def test_what_cannot_be_a_pin(pin: str) -> None:
    with pytest.raises(CallthreadError, match="6 to 12 digits"):
        check_form(pin)
    check_form("123456")
