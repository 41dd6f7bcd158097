"""Twilio's signature on webhooks and on the media handshake, checked against the address Twilio uses.

Forwarded headers are never believed: whoever can set one could choose the signed URL (B091).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from twilio.request_validator import RequestValidator

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


class Form(Protocol):
    """A webhook's form: names may come twice (`starlette.datastructures.MultiDict` is one)."""

    def __iter__(self) -> Iterator[str]:
        """The names."""
        ...

    def getlist(self, key: str, /) -> list[str]:
        """All values of a name."""
        ...


class NoForm:
    """The form of a request that has none: a handshake."""

    def __iter__(self) -> Iterator[str]:
        """No names."""
        return iter(())

    def __len__(self) -> int:
        return 0

    def getlist(self, _key: str, /) -> list[str]:
        """No values."""
        return []


@dataclass(frozen=True, slots=True)
class Origin:
    """Where Twilio reaches us: `http_base` without a slash at the end; the WebSocket's follows from it."""

    http_base: str

    @property
    def ws_base(self) -> str:
        """`wss://…` for `https://…`; `ws://…` for `http://…`, which is only ever a loopback address."""
        return "ws" + self.http_base.removeprefix("http")


class SignatureChecker:
    """Checks requests against `public_url`; without one, against a loopback Host on a loopback bind address.

    `auth_token` empty or `None`: all of the main account is refused. `also`: tokens that are accepted beside it.
    `subaccounts`: tokens by AccountSid; what claims to be of one of these must be signed with its own. A handshake
    names no account: its `start` does, which must be that of the webhook before.
    """

    def __init__(
        self,
        auth_token: str | None,
        public_url: str | None,
        bind_host: str = "127.0.0.1",
        *,
        also: Iterable[str] = (),
        subaccounts: Mapping[str, str] | None = None,
    ) -> None:
        self._validators = [RequestValidator(token) for token in (auth_token, *also) if token]
        self._of_account = {sid: [RequestValidator(token)] for sid, token in (subaccounts or {}).items()}
        self._origin = Origin(public_url.rstrip("/")) if public_url else None
        self._local = _is_loopback(bind_host)

    def origin(self, host: str) -> Origin | None:
        """Where a request with this `Host` header counts as coming through; `None`: nothing to trust."""
        if self._origin is not None:
            return self._origin
        if self._local and _is_loopback(_host_of(host)):
            return Origin(f"http://{host}")
        return None

    def check_post(self, target: str, host: str, form: Form, signature: str) -> bool:
        """A webhook. `target` is path and query as received; `signature` the `X-Twilio-Signature` header."""
        origin = self.origin(host)
        if origin is None:
            return False
        accounts = form.getlist("AccountSid")
        signers = self._of_account.get(accounts[0], self._validators) if accounts else self._validators
        return _is_valid(signers, origin.http_base + target, form, signature)

    def check_handshake(self, target: str, host: str, signature: str) -> bool:
        """The media WebSocket's handshake: signed over the `wss://` URL, no parameters (B096)."""
        origin = self.origin(host)
        if origin is None:
            return False
        base = origin.ws_base
        urls = [base + target]
        if base.startswith("wss://") and not re.match(r"wss://[^/]*:\d+(/|$)", base):
            # Twilio's validator knows that :443 may be written for https, but not for wss.
            urls.append(re.sub(r"^(wss://[^/]+)", r"\1:443", base) + target)
        signers = [*self._validators, *(one for own in self._of_account.values() for one in own)]
        return any(_is_valid(signers, url, NoForm(), signature) for url in urls)


def _is_valid(signers: Iterable[RequestValidator], url: str, form: Form, signature: str) -> bool:
    return bool(signature) and any(signer.validate(url, form, signature) for signer in signers)


def _host_of(header: str) -> str:
    match = _HOST.fullmatch(header)
    if match is None:
        return ""
    return match["v6"] or match["name"] or ""


def _is_loopback(host: str) -> bool:
    if host.casefold() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
