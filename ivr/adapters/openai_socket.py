"""The SDK's connection, behind one border: bytes out, typed events in, and errors that are ours."""

import asyncio
import ssl
from typing import Any, cast
from urllib.parse import urlsplit

from openai import AsyncOpenAI, OpenAIError
from openai.resources.realtime.realtime import AsyncRealtimeConnection
from openai.types.websocket_connection_options import WebSocketConnectionOptions
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
)
from websockets.protocol import State

from ivr.adapters.frames import masked_text_frame
from ivr.errors import ModelUnavailable, ModelUnsuitable
from ivr.wire.realtime_in import MAX_EVENT_BYTES, Ignored, ServerEvent, Unreadable, decode

PING_INTERVAL_S = 1.0
PING_TIMEOUT_S = 2.0
CLOSE_TIMEOUT_S = 1.0
"""A peer that stalls is noticed 3 to 4 s later: a ping each second, two to answer it, one to take leave."""

_NO_CLOSE_FRAME = 1006
_REFUSED_FOR_GOOD = frozenset({1003, 3000, 4000})
"""Close codes that say we are not wanted: unsupported data, unauthorised, an API shape that is gone."""

_REFUSED_FOR_NOW = frozenset({408, 409, 425, 429})
_HINTS = {
    401: "check OPENAI_API_KEY",
    403: "check OPENAI_API_KEY and what it may use",
    404: "check the address and IVR_REALTIME_MODEL",
}


class SocketClosed(Exception):
    """The connection is over. `permanent`: the server will not have us; connecting again would not help."""

    def __init__(self, reason: str, *, permanent: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.permanent = permanent


def address(url: str) -> str:
    """A URL as it may be shown: no user, password or query."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}".rstrip("/")


class RealtimeSocket:
    """An open connection to a Realtime server."""

    def __init__(self, connection: AsyncRealtimeConnection) -> None:
        self._connection = connection

    async def send(self, message: bytes) -> None:
        """Write one message; waits while the peer does not read. Raises: `SocketClosed`."""
        try:
            # As text: a bytes argument would become a binary frame, which the protocol does not know.
            await self._connection.send_raw(str(message, "utf-8"))
        except ConnectionClosed as closed:
            raise _closed(closed) from closed

    def send_at_once(self, message: bytes) -> bool:
        """Write one message without waiting. `False`, and nothing written: the peer does not read, or is gone."""
        connection = self._connection._connection
        is_open = connection.protocol.state is State.OPEN and not connection.transport.is_closing()
        if connection.paused or not is_open:
            return False
        # Neither the SDK's queue for reconnects, which we do not use, nor the library's locks and waits.
        connection.transport.write(masked_text_frame(message))
        return True

    async def receive(self) -> ServerEvent | Ignored | Unreadable:
        """The next message. Raises: `SocketClosed`."""
        try:
            return decode(await self._connection.recv_bytes())
        except ConnectionClosed as closed:
            raise _closed(closed) from closed

    async def close(self) -> None:
        """Close, with the handshake if the peer takes part in it, within `CLOSE_TIMEOUT_S` and a half."""
        try:
            async with asyncio.timeout(1.5 * CLOSE_TIMEOUT_S):
                await self._connection.close()
        except TimeoutError:
            # A peer that reads nothing also blocks the close frame. The SDK offers no way to hang up.
            self._connection._connection.transport.abort()


def _closed(closed: ConnectionClosed) -> SocketClosed:
    if closed.rcvd is not None:
        code = closed.rcvd.code
        return SocketClosed(
            f"closed by the server ({code} {closed.rcvd.reason})".replace(" )", ")"),
            permanent=code in _REFUSED_FOR_GOOD,
        )
    if closed.sent is not None:
        return SocketClosed(
            f"connection given up ({closed.sent.code} {closed.sent.reason})".replace(" )", ")")
        )
    return SocketClosed(f"connection lost ({_NO_CLOSE_FRAME})")


def connection_options(url: str, tls: ssl.SSLContext | None) -> WebSocketConnectionOptions:
    """How the WebSocket is opened; our caller bounds the time. The SDK passes on what it has no name for."""
    options: dict[str, Any] = {
        # permessage-deflate costs eight times the CPU of an audio message and saves nothing on base64 speech.
        "compression": None,
        "max_size": MAX_EVENT_BYTES,
        "max_queue": 64,
        "open_timeout": None,
        "ping_interval": PING_INTERVAL_S,
        "ping_timeout": PING_TIMEOUT_S,
        "close_timeout": CLOSE_TIMEOUT_S,
    }
    if tls is not None:
        options["ssl"] = tls
    if urlsplit(url).hostname in {"127.0.0.1", "::1", "localhost"}:
        options["proxy"] = None
    return cast(WebSocketConnectionOptions, options)


async def connect(
    client: AsyncOpenAI, model: str, shown: str, options: WebSocketConnectionOptions
) -> RealtimeSocket:
    """Connect to `model` at the client's address, named `shown` in errors.

    Raises: `ModelUnavailable`, `ModelUnsuitable`.
    """
    try:
        manager = client.realtime.connect(model=model, websocket_connection_options=options)
        return RealtimeSocket(await manager.enter())
    except InvalidStatus as refused:
        raise _refused(refused.response.status_code, shown) from refused
    except InvalidMessage as gone:
        raise ModelUnavailable(f"{shown}: the connection broke while opening") from gone
    except (InvalidHandshake, InvalidURI) as wrong:
        raise ModelUnsuitable(f"{shown}: no WebSocket server ({type(wrong).__name__})") from wrong
    except OpenAIError as wrong:
        raise ModelUnsuitable(f"{shown}: {type(wrong).__name__}") from wrong
    except OSError as failed:
        fault = failed.strerror or type(failed).__name__
        raise ModelUnavailable(f"{shown}: cannot connect ({fault})") from failed


def _refused(status: int, shown: str) -> ModelUnavailable | ModelUnsuitable:
    hint = f" ({_HINTS[status]})" if status in _HINTS else ""
    if status >= 500 or status in _REFUSED_FOR_NOW:
        return ModelUnavailable(f"{shown}: refused for now, HTTP {status}")
    return ModelUnsuitable(f"{shown}: refused, HTTP {status}{hint}")
