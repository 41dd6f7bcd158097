"""A WebSocket end that costs little, for the bench's peers: whole text messages only, no extensions (RFC 6455).

It is measuring equipment: what the server under test costs must not drown in what its peers cost.
"""

import asyncio
import base64
import hashlib
import os
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TEXT, _CLOSE, _PING = 0x81, 0x88, 0x89
_PONG = 0x8A
_NO_MASK = b"\0\0\0\0"
"""A client masks; with this key the payload stays as it is."""


class PeerError(Exception):
    """The other side is not the WebSocket server that was expected."""


def _length(size: int, masked: bool) -> bytes:
    flag = 0x80 if masked else 0
    if size < 126:
        return bytes((flag | size,))
    if size < 65_536:
        return bytes((flag | 126,)) + size.to_bytes(2, "big")
    return bytes((flag | 127,)) + size.to_bytes(8, "big")


class WebSocketEnd(asyncio.Protocol):
    """One connection after or during its handshake. `on_message(end, payload)` gets each text message."""

    is_client = False

    def __init__(self, on_message: Callable[["WebSocketEnd", bytes], None]) -> None:
        self._on_message = on_message
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self.is_open = False
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        self.is_open = False
        if not self.closed.done():
            self.closed.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self._data = self._data + data if self._data else data
        if not self.is_open and not self._handshake():
            return
        at = 0
        while (end := self._frame(at)) > at:
            at = end
        self._data = self._data[at:]

    def send(self, message: bytes) -> None:
        """Send a text message; nothing once the connection is over."""
        self._send(_TEXT, message)

    def close(self) -> None:
        """Say goodbye and hang up."""
        self._send(_CLOSE, (1000).to_bytes(2, "big"))
        if self._transport is not None:
            self._transport.close()

    def _send(self, head: int, payload: bytes) -> None:
        if not self.is_open or self._transport is None:
            return
        mask = _NO_MASK if self.is_client else b""
        self._transport.write(bytes((head,)) + _length(len(payload), self.is_client) + mask + payload)

    def _handshake(self) -> bool:
        """Answer the client's request, once it is whole."""
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end:
            return False
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        key = next((value.strip() for name, _, value in lines if name.lower() == b"sec-websocket-key"), b"")
        if self._transport is None or not key:
            return False
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())  # noqa: S324 - RFC 6455
        self._transport.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        self._data = rest
        self.is_open = True
        self.opened()
        return True

    def opened(self) -> None:
        """The handshake is done."""

    def _frame(self, at: int) -> int:
        """Handle the frame that begins at `at`; returns where it ends, or `at` if it is not complete."""
        data = self._data
        if len(data) < at + 2:
            return at
        size, body = data[at + 1] & 0x7F, at + 2
        if size >= 126:
            wide = 2 if size == 126 else 8
            if len(data) < body + wide:
                return at
            size, body = int.from_bytes(data[body : body + wide], "big"), body + wide
        mask = data[body : body + 4] if data[at + 1] & 0x80 else b""
        body += len(mask)
        if len(data) < body + size:
            return at
        payload = data[body : body + size]
        self._take(data[at], _unmask(payload, mask) if mask else payload)
        return body + size

    def _take(self, head: int, payload: bytes) -> None:
        if head == _TEXT:
            self._on_message(self, payload)
        elif head == _PING:
            self._send(_PONG, payload)
        elif head == _CLOSE:
            self.close()


def _unmask(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "big") ^ int.from_bytes(key, "big")).to_bytes(size, "big")


class WebSocketCaller(WebSocketEnd):
    """The client's end; `open_socket` makes it."""

    is_client = True

    def __init__(self, on_message: Callable[[WebSocketEnd, bytes], None]) -> None:
        super().__init__(on_message)
        self.accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        super().connection_lost(exc)
        if not self.accepted.done():
            self.accepted.set_exception(PeerError("hung up during the handshake"))

    def _handshake(self) -> bool:
        head, end, rest = self._data.partition(b"\r\n\r\n")
        if not end or self.accepted.done():
            return False
        status = head.partition(b"\r\n")[0].decode("latin-1")
        if " 101 " not in f"{status} ":
            self.accepted.set_exception(PeerError(f"refused: {status}"))
            return False
        self._data = rest
        self.is_open = True
        self.accepted.set_result(None)
        return True


async def open_socket(
    url: str, on_message: Callable[[WebSocketEnd, bytes], None], headers: dict[str, str]
) -> WebSocketCaller:
    """Connect to a `ws://` URL. Raises: `OSError`, `PeerError`."""
    parts = urlsplit(url)
    loop = asyncio.get_running_loop()
    transport, end = await loop.create_connection(
        lambda: WebSocketCaller(on_message), parts.hostname or "", parts.port or 80
    )
    lines = {
        "Host": parts.netloc,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Version": "13",
        **headers,
    }
    request = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    transport.write(f"GET {parts.path or '/'} HTTP/1.1\r\n{request}\r\n".encode("latin-1"))
    await end.accepted
    return end
