"""Requests to businesses' systems: to public addresses only, bounded in time and size, and followed nowhere.

The address is checked as it is connected to: a name that resolves otherwise a moment later gains nothing.
"""

import asyncio
import ipaddress
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp

MAX_BYTES = 65_536
CONNECTIONS = 50
RETRY_PAUSE_S = 0.25
"""Before the second attempt; twice as long before the next."""
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class SendFailed(Exception):
    """No usable answer. `reason` is a word for logs: it holds nothing of the request."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request, complete; `url` has passed the file's checks, its host is among those allowed."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes
    timeout_s: float


def is_public(address: Address) -> bool:
    """Whether an address is the public Internet's; one that carries another inside is judged by that too."""
    if not address.is_global or address.is_multicast:
        return False
    inner: list[Address | None] = []
    if isinstance(address, ipaddress.IPv6Address):
        teredo = address.teredo or (None, None)
        inner = [address.ipv4_mapped, address.sixtofour, *teredo]
        if address in _NAT64:
            inner.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return all(is_public(each) for each in inner if each is not None)


def _checked_socket(info: tuple[Any, ...]) -> socket.socket:
    """A socket for an address that is about to be connected to. Raises: `OSError` for one that is not public."""
    family, kind, protocol, _, where = info
    if not is_public(ipaddress.ip_address(where[0].partition("%")[0])):
        raise PrivateAddress("not a public address")
    return socket.socket(family, kind, protocol)


class PrivateAddress(OSError):
    """A name led into a private network."""


class OutgoingHttp:
    """Sends requests. `private_hosts`: names that may lead to private addresses, for development.

    Use it as a context manager, in the event loop that it works in.
    """

    def __init__(self, private_hosts: Iterable[str] = ()) -> None:
        self._private = frozenset(host.casefold() for host in private_hosts)
        self._public_session: aiohttp.ClientSession | None = None
        self._private_session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._public_session = _session(_checked_socket)
        self._private_session = _session(None)
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in (self._public_session, self._private_session):
            if session is not None:
                await session.close()

    async def send(self, request: Outgoing, retries: int = 0) -> bytes:
        """The body of a 2xx answer. Raises: `SendFailed`."""
        for attempt in range(retries + 1):
            try:
                return await self._once(request)
            except SendFailed as failed:
                if attempt == retries or (failed.status and failed.status not in RETRIED):
                    raise
            await asyncio.sleep(RETRY_PAUSE_S * 2**attempt)
        raise AssertionError("the last attempt answers or raises")

    async def _once(self, request: Outgoing) -> bytes:
        host = (urlsplit(request.url).hostname or "").casefold()
        session = self._private_session if host in self._private else self._public_session
        if session is None:
            raise SendFailed("closed")
        try:
            async with (
                asyncio.timeout(request.timeout_s),
                session.request(
                    request.method,
                    request.url,
                    headers=request.headers,
                    data=request.body or None,
                    allow_redirects=False,
                ) as answer,
            ):
                if not 200 <= answer.status < 300:
                    raise SendFailed(f"status {answer.status}", answer.status)
                return await _bounded(answer.content)
        except TimeoutError as error:
            raise SendFailed("timeout") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SendFailed(_reason(error)) from error


def _session(factory: Callable[[tuple[Any, ...]], socket.socket] | None) -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(limit=CONNECTIONS, use_dns_cache=False, socket_factory=factory)
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        auto_decompress=False,
        headers={"User-Agent": "callthread", "Accept-Encoding": "identity"},
    )


async def _bounded(content: aiohttp.StreamReader) -> bytes:
    body = bytearray()
    async for chunk in content.iter_chunked(8_192):
        body += chunk
        if len(body) > MAX_BYTES:
            raise SendFailed("answer too large", 200)
    return bytes(body)


def _reason(error: Exception) -> str:
    """A word: the text of such an error holds the URL, and with it what a caller said."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, PrivateAddress) or "not a public address" in str(seen):
            return "private address"
        seen = getattr(seen, "os_error", None) or seen.__cause__
    return type(error).__name__
