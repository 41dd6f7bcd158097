"""PINs: kept as scrypt hashes with a pepper that the database does not have."""

import asyncio
import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

import structlog
from pydantic import SecretStr

from ivr.errors import CallthreadError
from memory.errors import StorageUnavailable
from memory.model import Owner
from memory.store import Store

MIN_DIGITS, MAX_DIGITS = 6, 12
"""Six: three tries a call, and no number is ever locked out, so that guessing takes a hundred thousand calls."""
_COST, _BLOCK, _PARALLEL, _SALT_BYTES = 2**14, 8, 1, 16
"""scrypt's N, r and p as OWASP's cheat sheet gives them for 16 MB; about 50 ms here."""
_FORM = "scrypt1"

log = structlog.get_logger()


def check_form(pin: str) -> None:
    """Raises: `CallthreadError` for what cannot be a PIN."""
    if not (pin.isascii() and pin.isdecimal() and MIN_DIGITS <= len(pin) <= MAX_DIGITS):
        raise CallthreadError(f"a PIN has {MIN_DIGITS} to {MAX_DIGITS} digits")


def hash_pin(pin: str, pepper: str, salt: bytes | None = None) -> str:
    """The hash to be kept. Slow on purpose."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    peppered = hmac.digest(pepper.encode(), pin.encode(), hashlib.sha256)
    made = hashlib.scrypt(peppered, salt=salt, n=_COST, r=_BLOCK, p=_PARALLEL)
    return f"{_FORM}${b64encode(salt).decode()}${b64encode(made).decode()}"


def is_right(pin: str, stored: str, pepper: str) -> bool:
    """Whether the hash is of this PIN. Slow on purpose; False for a hash of another form."""
    form, _, rest = stored.partition("$")
    try:
        salt = b64decode(rest.partition("$")[0], validate=True)
    except ValueError:
        return False
    return form == _FORM and bool(salt) and hmac.compare_digest(hash_pin(pin, pepper, salt), stored)


class Pins:
    """Checks what callers enter. Without a pepper nobody is verified."""

    def __init__(self, store: Store, pepper: SecretStr | None) -> None:
        self._store = store
        self._pepper = pepper

    async def check(self, owner: Owner, pin: str) -> bool:
        """Whether this is the caller's PIN; False too when that cannot be found out."""
        if self._pepper is None or not owner.caller:
            return False
        try:
            stored = await self._store.pin_hash_of(owner)
        except StorageUnavailable:
            log.warning("pin_not_checked")
            return False
        if stored is None:
            return False
        return await asyncio.to_thread(is_right, pin, stored, self._pepper.get_secret_value())
