"""The caller's line: a Twilio media WebSocket as `ports.CallerLink`."""

import asyncio
from collections.abc import Callable
from contextvars import copy_context
from typing import Protocol

import structlog
from starlette.websockets import WebSocket, WebSocketDisconnect

from ivr.adapters.direct_socket import DIRECT
from ivr.core.commands import LineCommand
from ivr.core.events import LineClosed, LineEvent, LineFrame, LineStopped
from ivr.observe import Metrics
from ivr.wire.twilio import Bad, BadReason, Connected, Encoder, Message, StartInfo, decode

START_TIMEOUT_S = 5.0
CLOSE_TIMEOUT_S = 2.0
MAX_BEFORE_START = 20
POLICY_VIOLATION = 1008
NO_CODE = 1006

# What sending to a peer that is gone raises: starlette's own type, its RuntimeError after a close of ours, and
# the server's OSError.
GONE = (WebSocketDisconnect, RuntimeError, OSError)

log = structlog.get_logger(__name__)


class WaitingRoom:
    """Counts sockets that have shown no token yet, so that idle ones cannot pile up (B093)."""

    def __init__(self, limit: int = 64) -> None:
        self.limit = limit
        self.waiting = 0

    def enter(self) -> bool:
        """Take a place; `False` when all are taken."""
        if self.waiting >= self.limit:
            return False
        self.waiting += 1
        return True

    def leave(self) -> None:
        """Give the place back."""
        self.waiting -= 1


async def close_quietly(ws: WebSocket, code: int) -> None:
    """Close the socket; a peer that is gone, or a socket closed before, is no error. Takes 2 s at most."""
    try:
        async with asyncio.timeout(CLOSE_TIMEOUT_S):
            await ws.close(code)
    except (*GONE, TimeoutError):
        log.debug("socket_already_closed", code=code)


async def read_start(ws: WebSocket, metrics: Metrics, timeout_s: float = START_TIMEOUT_S) -> StartInfo | None:
    """`connected` and `start` from an accepted socket; `None`, and closed (1008), when they do not come."""
    try:
        async with asyncio.timeout(timeout_s):
            start = await _until_start(ws, metrics)
    except TimeoutError:
        start = None
    if start is None:
        await close_quietly(ws, POLICY_VIOLATION)
    return start


async def _until_start(ws: WebSocket, metrics: Metrics) -> StartInfo | None:
    for _ in range(MAX_BEFORE_START):
        match await _receive(ws):
            case StartInfo() as start:
                return start
            case LineClosed() | LineStopped():
                return None
            case Connected():
                pass
            case Bad(reason):
                metrics.bad_frames.labels(reason).inc()
            case _:  # media, marks or digits of a stream that has not begun
                metrics.bad_frames.labels(BadReason.ORDER).inc()
    return None


async def _receive(ws: WebSocket) -> Message | LineClosed:
    try:
        message = await ws.receive()
    except RuntimeError:  # the disconnect was read before
        return LineClosed(NO_CODE)
    if message["type"] == "websocket.disconnect":
        code = message.get("code") or NO_CODE
        return LineClosed(
            NO_CODE if code == 1005 else code
        )  # 1005: the server's word for "there was no code"
    text = message.get("text")
    return decode(text if text is not None else message.get("bytes") or b"")


class Direct(Protocol):
    """What the link needs of the connection beside ASGI's `receive`: see `DirectSocket`."""

    def listen(self, take: Callable[[str], None]) -> None:
        """Give text messages to `take` as they come, once none waits to be received."""
        ...

    def write(self, text: bytes) -> bool:
        """Send text (UTF-8) at once; nothing on a connection that is over. `False`: the peer does not read."""
        ...


class TwilioCallerLink:
    """`ports.CallerLink` over a socket of `DirectSocket`'s whose `start` was read and whose token was accepted."""

    def __init__(self, ws: WebSocket, start: StartInfo, metrics: Metrics) -> None:
        self.start = start
        self._ws = ws
        self._direct: Direct = ws.scope["extensions"][DIRECT]
        self._metrics = metrics
        self._encoder = Encoder(start.stream_sid)
        self._deaf = False
        self._bad_messages = 0
        self._closing: asyncio.Task[None] | None = None

    async def listen(self, receive: Callable[[LineEvent], None]) -> None:
        """Everything the line says, each as it comes; returns after `LineClosed`. For one listener, once."""
        # What comes directly is to be logged, and to start tasks, as this call's.
        run, frames_in = copy_context().run, self._metrics.frames_in

        def take(text: str) -> None:
            message = decode(text)
            if type(message) is LineFrame:
                frames_in.count += 1
                run(receive, message)
            else:
                run(self._take, message, receive)

        while not self._deaf:
            self._direct.listen(take)
            self._take(await _receive(self._ws), receive)

    def send(self, command: LineCommand) -> None:
        """Write at once, as far as the peer reads; dropped when it is gone or the link is closing."""
        if self._deaf or self._closing is not None or self._direct.write(self._encoder.encode(command)):
            return
        log.warning("line_not_read")
        self._closing = asyncio.create_task(self._shut(POLICY_VIOLATION))

    async def close(self, code: int = 1000) -> None:
        """Close behind what was written; 2 s at most. Idempotent; goes on if the waiter is cancelled."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._shut(code))
        await asyncio.shield(self._closing)

    async def _shut(self, code: int) -> None:
        if self._bad_messages:
            log.warning("bad_messages", count=self._bad_messages)
        await close_quietly(self._ws, code)

    def _take(self, message: Message | LineClosed, receive: Callable[[LineEvent], None]) -> None:
        match message:
            case LineFrame():
                self._metrics.frames_in.count += 1
                receive(message)
            case Bad(reason):
                self._count_bad(reason)
            case StartInfo() | Connected():  # once a connection only, and that was read before
                self._count_bad(BadReason.ORDER)
            case LineClosed():
                self._deaf = True
                receive(message)
            case _:
                receive(message)

    def _count_bad(self, reason: BadReason) -> None:
        self._bad_messages += 1
        self._metrics.bad_frames.labels(reason).inc()
        if self._bad_messages == 1:
            log.warning("bad_message", reason=reason)
