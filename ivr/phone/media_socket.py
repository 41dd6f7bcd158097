"""The media socket of one stream, and its traffic: one reader, one writer, neither waits for the other."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

HANDSHAKE_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 2.0
MAX_UNSENT = 1_500
"""Messages waiting for a service that does not read: 30 s of audio, then the oldest is lost (31930)."""

MAX_RECEIVED_BYTES = 1 << 24


@dataclass(frozen=True)
class _Close:
    reset: bool


@dataclass(frozen=True)
class SocketEvents:
    """Whom to tell. After `refused` or `closed` nothing more is told."""

    opened: Callable[[], None]
    refused: Callable[[str], None]
    received: Callable[[str | bytes], None]
    closed: Callable[[int], None]
    overflowed: Callable[[], None]


class MediaSocket:
    """`run` lives as long as the connection; `send` and `close` only queue."""

    def __init__(self, address: str, signature: str, events: SocketEvents) -> None:
        self._address = address
        self._headers = {"X-Twilio-Signature": signature, "User-Agent": "TwilioMediaStreams/simulated"}
        self._events = events
        self._outbox: asyncio.Queue[str | _Close] = asyncio.Queue()
        self._connection: ClientConnection | None = None

    def send(self, text: str) -> None:
        """Queue a message."""
        if self._outbox.qsize() >= MAX_UNSENT:
            self._outbox.get_nowait()
            self._events.overflowed()
        self._outbox.put_nowait(text)

    def close(self, *, reset: bool) -> None:
        """Close after what is queued, or reset the connection now: no close frame, no goodbye."""
        if reset and self._connection is not None:
            _reset(self._connection)
        self._outbox.put_nowait(_Close(reset))

    async def run(self) -> None:
        """Connect, carry messages both ways until the connection is over."""
        try:
            self._connection = await connect(
                self._address,
                additional_headers=self._headers,
                compression=None,
                user_agent_header=None,
                ping_interval=None,
                proxy=None,
                open_timeout=HANDSHAKE_TIMEOUT_S,
                close_timeout=CLOSE_TIMEOUT_S,
                max_size=MAX_RECEIVED_BYTES,
            )
        except (InvalidHandshake, InvalidURI, OSError, TimeoutError) as error:
            self._events.refused(str(error) or type(error).__name__)
            return
        writer = asyncio.create_task(self._write(self._connection))
        self._events.opened()
        try:
            await self._read(self._connection)
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer
            await self._connection.close()

    async def _read(self, connection: ClientConnection) -> None:
        try:
            while True:
                self._events.received(await connection.recv())
        except ConnectionClosed as closed:
            self._events.closed(closed.rcvd.code if closed.rcvd is not None else 1006)

    async def _write(self, connection: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                item = await self._outbox.get()
                if isinstance(item, str):
                    await connection.send(item)
                elif item.reset:
                    _reset(connection)
                    return
                else:
                    await connection.close()
                    return


def _reset(connection: ClientConnection) -> None:
    """Let the kernel send RST instead of FIN, and drop what is unsent."""
    raw = connection.transport.get_extra_info("socket")
    if raw is not None:
        # ValueError: uvloop's socket of a connection that the peer has closed meanwhile.
        with contextlib.suppress(OSError, ValueError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.transport.abort()
