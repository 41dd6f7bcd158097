"""Stream tokens: bound to a call, short-lived, not to be made by anybody else."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.wire.tokens import MAX_TOKEN_CHARS, Grant, RefusalReason, StreamTokens, TokenRefused

TOKENS = StreamTokens("secret")
NOW = 1_800_000_000.25


def mint(tokens: StreamTokens = TOKENS, call_sid: str = "CA1", **kwargs: str) -> str:
    business_id = kwargs.pop("business_id", "bloom")
    is_attested = bool(kwargs.pop("attested", ""))
    return tokens.mint(call_sid, business_id, nonce="n1", now=NOW, is_attested=is_attested, **kwargs)


def test_a_token_gives_back_what_was_granted() -> None:
    token = mint(caller="+15551230012", to_number="+15550009999")
    grant = TOKENS.verify(token, "CA1", NOW + 59)
    assert grant == Grant("bloom", "n1", int(NOW) + 60, "+15551230012", "+15550009999")
    assert TOKENS.verify(mint(), "CA1", NOW) == Grant("bloom", "n1", int(NOW) + 60, None, "")


def test_it_fits_a_parameter_and_a_url() -> None:
    token = mint(business_id="b" * 64, caller="+123456789012345", to_number="+123456789012345")
    assert len(token) < 500
    assert set(token) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    with pytest.raises(ValueError, match="too long"):
        mint(business_id="b" * 500)


def test_b093_a_token_opens_only_its_own_call_and_only_for_a_minute() -> None:
    token = mint()
    assert TOKENS.verify(token, "CA2", NOW) == TokenRefused(RefusalReason.FORGED)
    assert TOKENS.verify(token, "", NOW) == TokenRefused(RefusalReason.FORGED)
    assert TOKENS.verify(token, "CA1", NOW + 60) == TokenRefused(RefusalReason.EXPIRED)
    assert TOKENS.verify("", "CA1", NOW) == TokenRefused(RefusalReason.MISSING)
    assert TOKENS.verify("made up", "CA1", NOW) == TokenRefused(RefusalReason.MALFORMED)
    assert TOKENS.verify("A" * 200, "CA1", NOW) == TokenRefused(RefusalReason.FORGED)


def test_another_secret_or_none_opens_nothing() -> None:
    assert StreamTokens("other").verify(mint(), "CA1", NOW) == TokenRefused(RefusalReason.FORGED)
    for nothing in (None, ""):
        assert StreamTokens(nothing).verify(mint(), "CA1", NOW) == TokenRefused(RefusalReason.FORGED)
        with pytest.raises(ValueError, match="no secret"):
            mint(StreamTokens(nothing))


def test_b097_any_worker_with_the_same_secret_verifies() -> None:
    assert isinstance(StreamTokens("secret").verify(mint(StreamTokens("secret")), "CA1", NOW), Grant)


def test_the_secret_itself_does_not_sign() -> None:
    token = base64.urlsafe_b64decode(mint() + "==")
    assert b"secret" not in token


@given(st.integers(0, 200), st.integers(1, 255))
def test_no_changed_byte_passes(position: int, change: int) -> None:
    raw = bytearray(base64.urlsafe_b64decode(mint() + "=" * (-len(mint()) % 4)))
    raw[position % len(raw)] ^= change
    token = base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode()
    assert TOKENS.verify(token, "CA1", NOW) == TokenRefused(RefusalReason.FORGED)


@given(st.text(max_size=600))
def test_nothing_makes_the_check_raise(token: str) -> None:
    assert isinstance(TOKENS.verify(token, "CA1", NOW), TokenRefused)


def test_one_spelling_only() -> None:
    token = mint()
    for other in (token + "=", token + "\n", token[:-1], " " + token, token + "A" * MAX_TOKEN_CHARS):
        assert isinstance(TOKENS.verify(other, "CA1", NOW), TokenRefused)


def test_while_auth_tokens_turn_over_both_open_and_the_first_signs() -> None:
    """Two workers, one configured before the rotation and one in the middle of it, in either order."""
    old, between, new = (
        StreamTokens("old"),
        StreamTokens("old", also=["new"]),
        StreamTokens("new", also=["old"]),
    )
    for minting in (old, between, new):
        for verifying in (between, new):
            assert isinstance(verifying.verify(mint(minting), "CA1", NOW), Grant)
    assert old.verify(mint(new), "CA1", NOW) == TokenRefused(RefusalReason.FORGED)
    assert StreamTokens("new", also=[""]).verify(mint(old), "CA1", NOW) == TokenRefused(RefusalReason.FORGED)
