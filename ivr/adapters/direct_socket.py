"""uvicorn's WebSocket with a way past ASGI, for a stream of many small messages.

By ASGI each message pauses and resumes the socket (two system calls), crosses a queue and wakes a task; what is sent
does the same the other way round. Handshake, pings, faults and closing stay uvicorn's.
"""

from collections.abc import Callable
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request
from websockets.protocol import State

from ivr.adapters.frames import apply_mask, text_frame

DIRECT = "callthread.direct"
"""The extension of the ASGI scope that holds the connection's `DirectSocket`."""

MAX_UNREAD_BYTES = 128 * 1024
"""Playback is paced 320 ms ahead, some 8 KB: with so much waiting here the peer has stopped reading."""

_WHOLE_TEXT = 0x81
_HEAD_BYTES, _LONG_HEAD_BYTES, _MASK_BYTES = 2, 4, 4
_LONG, _VERY_LONG = 126, 127
_BODY, _LONG_BODY = _HEAD_BYTES + _MASK_BYTES, _LONG_HEAD_BYTES + _MASK_BYTES
"""Where a masked frame's payload begins."""
_LONG_TEXT = bytes((_WHOLE_TEXT, 0x80 | _LONG))


class DirectSocket(WebSocketsSansIOProtocol):
    """One connection. `listen` and `write` are for the time between `accept` and `close`."""

    _take: Callable[[str], None] | None = None
    _rest = b""
    """The beginning of a frame whose end has not come."""
    _is_parsed_by_uvicorn = False

    def listen(self, take: Callable[[str], None]) -> None:
        """Give text messages to `take` as they come, in order; `receive` gives what is left, and the end.

        No effect while messages wait to be received; and over with the next that is not one whole frame of text:
        then `receive` gets it, and all that follow, until this is called again. `take` must not raise.
        """
        if self.queue.empty():
            self._take = take

    def write(self, text: bytes) -> bool:
        """Send text (UTF-8) at once; nothing on a connection that is over. `False`: the peer does not read."""
        if self.transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            return False
        # A peer that resets is gone before the protocol is told, and uvloop's transport raises then.
        if self.conn.state is State.OPEN and not self.transport.is_closing():
            self.transport.write(text_frame(text))
        return True

    def handle_connect(self, event: Request) -> None:
        """Called by uvicorn: the handshake came."""
        super().handle_connect(event)
        if not self.close_sent:
            cast(dict[str, Any], self.scope["extensions"])[DIRECT] = self

    def send_receive_event_to_app(self) -> None:
        """Called by uvicorn: a message goes ASGI's way."""
        self._take = None
        super().send_receive_event_to_app()

    def data_received(self, data: bytes) -> None:
        """Called by the loop. uvicorn gets whole frames only, so that each can be looked at before it is parsed."""
        if self._take is not None and not (self._rest or self._is_parsed_by_uvicorn) and _is_one_text(data):
            self._frame(data)  # nearly all
            return
        if not self.handshake_complete or self._is_parsed_by_uvicorn:
            # The first data is the request. A peer that cannot wait for the answer is left to uvicorn for good.
            self._is_parsed_by_uvicorn = self.handshake_initiated
            super().data_received(data)
            return
        data = self._rest + data if self._rest else data
        begin = 0
        while (end := _frame_end(data, begin)) and not self.transport.is_closing():
            self._frame(data[begin:end])
            begin = end
        self._rest = data[begin:]
        if len(self._rest) > _HEAD_BYTES and self._rest[1] & 0x7F == _VERY_LONG:
            # Larger than any message of ours: refused by uvicorn from its head alone.
            self._is_parsed_by_uvicorn, rest, self._rest = True, self._rest, b""
            super().data_received(rest)

    def _frame(self, frame: bytes) -> None:
        if self._take is not None and frame[0] == _WHOLE_TEXT and frame[1] & 0x80:
            body = _LONG_BODY if frame[1] & 0x7F == _LONG else _BODY
            payload = apply_mask(frame[body:], frame[body - _MASK_BYTES : body])
            try:
                text = str(payload, "utf-8")
            except UnicodeDecodeError:
                pass  # uvicorn says goodbye
            else:
                self._take(text)
                return
        super().data_received(frame)


def _is_one_text(data: bytes) -> bool:
    """A masked frame of text, long as those of sound are, and nothing else."""
    return data[:2] == _LONG_TEXT and len(data) == _LONG_BODY + int.from_bytes(data[2:4], "big")


def _frame_end(data: bytes, begin: int) -> int:
    """Where the frame that begins at `begin` ends; 0 if that has not come, or is more than 64 KB away."""
    have = len(data) - begin
    if have < _HEAD_BYTES:
        return 0
    size = data[begin + 1] & 0x7F
    head = _HEAD_BYTES + (_MASK_BYTES if data[begin + 1] & 0x80 else 0)
    if size == _VERY_LONG:
        return 0
    if size == _LONG:
        if have < _LONG_HEAD_BYTES:
            return 0
        size = int.from_bytes(data[begin + 2 : begin + 4], "big")
        head += _LONG_HEAD_BYTES - _HEAD_BYTES
    return begin + head + size if have >= head + size else 0
