"""One-time stream tokens: what the voice webhook decided, signed, so that any worker can take the stream
without a database. Pure: nonce and time are arguments.
"""

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from enum import StrEnum

import msgspec

LIFETIME_S = 60
MAX_TOKEN_CHARS = 499
"""Twilio takes `<Parameter>` values below 500 characters."""

_LABEL = b"callthread stream token v1"
_MAC_BYTES = 32


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """What a token allows: one stream for this business and caller until `expires_at` (Unix time, s)."""

    business_id: str
    nonce: str
    expires_at: int
    caller: str | None = None
    to_number: str = ""
    account_sid: str = ""
    """The webhook's; the stream must be of the same."""
    is_attested: bool = False
    """The caller's network vouches for the number."""


class RefusalReason(StrEnum):
    """Why a token was refused (a closed set: it labels a metric)."""

    MISSING = "missing"
    MALFORMED = "malformed"
    FORGED = "forged"
    EXPIRED = "expired"
    SPENT = "spent"
    ACCOUNT = "account"
    """The stream is of another account than the webhook was."""


class TokenRefused(msgspec.Struct, frozen=True):
    """A token that opens nothing."""

    reason: RefusalReason


_decoder = msgspec.json.Decoder(Grant)


class StreamTokens:
    """Mints and verifies with a key derived from `secret`, Twilio's auth token; without one none is valid.

    `also`: what else verifies, while one auth token takes the place of another and workers know them in either order.
    """

    def __init__(self, secret: str | None, lifetime_s: int = LIFETIME_S, *, also: Iterable[str] = ()) -> None:
        self._keys = [hmac.digest(s.encode(), _LABEL, hashlib.sha256) for s in (secret, *also) if s]
        self._lifetime_s = lifetime_s

    def mint(
        self,
        call_sid: str,
        business_id: str,
        *,
        nonce: str,
        now: float,
        caller: str | None = None,
        to_number: str = "",
        account_sid: str = "",
        is_attested: bool = False,
    ) -> str:
        """A token for one stream of this call. `now` is Unix time in s; `nonce` must not come twice.

        Raises: `ValueError` without a secret, or when the result is too long for a `<Parameter>`.
        """
        if not self._keys:
            raise ValueError("no secret to sign stream tokens with")
        expires_at = int(now) + self._lifetime_s
        grant = Grant(business_id, nonce, expires_at, caller, to_number, account_sid, is_attested)
        body = msgspec.json.encode(grant)
        token = _to_text(self._mac(self._keys[0], call_sid, body) + body)
        if len(token) > MAX_TOKEN_CHARS:
            raise ValueError("stream token too long: shorten the business's id")
        return token

    def verify(self, token: str, call_sid: str, now: float) -> Grant | TokenRefused:
        """The grant, if we signed it for this call and it is not expired; it may be spent already."""
        if not token:
            return TokenRefused(RefusalReason.MISSING)
        raw = _from_text(token)
        if len(raw) <= _MAC_BYTES:
            return TokenRefused(RefusalReason.MALFORMED)
        mac, body = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        if not any(hmac.compare_digest(mac, self._mac(key, call_sid, body)) for key in self._keys):
            return TokenRefused(RefusalReason.FORGED)
        try:
            grant = _decoder.decode(body)
        except ValueError:
            return TokenRefused(RefusalReason.MALFORMED)
        return grant if now < grant.expires_at else TokenRefused(RefusalReason.EXPIRED)

    @staticmethod
    def _mac(key: bytes, call_sid: str, body: bytes) -> bytes:
        # The length keeps "CA1" + "2…" apart from "CA12" + "…".
        sid = call_sid.encode(errors="surrogatepass")
        return hmac.digest(key, len(sid).to_bytes(4) + sid + body, hashlib.sha256)


def _to_text(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _from_text(text: str) -> bytes:
    """The bytes of base64url text without padding; empty for anything else, other spellings included."""
    if len(text) > MAX_TOKEN_CHARS or not text.isascii():
        return b""
    try:
        raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return b""
    return raw if _to_text(raw) == text else b""
