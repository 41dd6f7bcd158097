"""uvicorn's WebSocket with the way past ASGI, against the library's client, without sockets."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

from ivr.adapters.direct_socket import DIRECT, MAX_UNREAD_BYTES, DirectSocket


class Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.unread = 0
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Ends:
    """A client of the library's, and our server's end with an app that listens directly for as long as it may."""

    def __init__(self, max_size: int = 65_536) -> None:
        self.came: list[str] = []
        """`direct:` or `asgi:` and the message, in the order they came."""
        self.wire = Wire()
        self.client = ClientProtocol(parse_uri("ws://127.0.0.1:1/media"))
        self.is_direct = True
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            ws_max_size=max_size,
            ws_per_message_deflate=False,
            log_config=None,
            proxy_headers=False,
        )
        config.load()
        self.socket = DirectSocket(config, ServerState(), {})
        self.over = asyncio.Event()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        direct: DirectSocket = scope["extensions"][DIRECT]
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            if self.is_direct:
                direct.listen(lambda text: self.came.append(f"direct:{text}"))
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.came.append(f"over:{message['code']}")
                self.over.set()
                return
            self.came.append(f"asgi:{message.get('text') or message['bytes']}")

    def feed(self, pieces: int = 10_000_000) -> None:
        """Give the server what the client has sent, in pieces of so many bytes."""
        data = b"".join(self.client.data_to_send())
        for at in range(0, len(data), pieces):
            self.socket.data_received(data[at : at + pieces])

    def heard(self) -> list[Frame]:
        """What the client got since it was last asked."""
        self.client.receive_data(self.wire.written)
        self.wire.written = b""
        return [event for event in self.client.events_received() if isinstance(event, Frame)]


@asynccontextmanager
async def connected(max_size: int = 65_536) -> AsyncIterator[Ends]:
    ends = Ends(max_size)
    ends.socket.connection_made(ends.wire)
    ends.client.send_request(ends.client.connect())
    ends.feed()
    await asyncio.sleep(0.01)
    ends.heard()
    try:
        yield ends
    finally:
        ends.socket.connection_lost(None)
        await asyncio.wait_for(ends.over.wait(), 5)


@pytest.mark.parametrize("pieces", [1, 7, 100, 10_000_000])
async def test_messages_come_directly_and_in_order_however_they_are_cut(pieces: int) -> None:
    messages = [chr(65 + no) * size for no, size in enumerate((1, 125, 126, 2_000, 65_535, 3))] + ["ä€😀"]
    async with connected() as ends:
        for message in messages:
            ends.client.send_text(message.encode())
        ends.feed(pieces)
        assert ends.came == [f"direct:{message}" for message in messages]


async def test_pings_are_answered_between_messages() -> None:
    async with connected() as ends:
        ends.client.send_text(b"before")
        ends.client.send_ping(b"there?")
        ends.client.send_text(b"behind")
        ends.feed(3)
        assert ends.came == ["direct:before", "direct:behind"]
        assert [(frame.opcode, bytes(frame.data)) for frame in ends.heard()] == [(Opcode.PONG, b"there?")]


async def test_what_is_not_one_frame_of_text_goes_asgi_s_way_and_what_follows_it_too() -> None:
    async with connected() as ends:
        ends.client.send_text(b"one ", fin=False)
        ends.client.send_continuation(b"message", fin=True)
        ends.client.send_text(b"next")
        ends.client.send_binary(b"\x00")
        ends.feed()
        await asyncio.sleep(0.01)
        assert ends.came == ["asgi:one message", "asgi:next", "asgi:b'\\x00'"]
        ends.client.send_text(b"directly again")
        ends.feed()
        assert ends.came[-1] == "direct:directly again"


async def test_nothing_is_taken_while_messages_wait() -> None:
    async with connected() as ends:
        ends.is_direct = False
        ends.client.send_binary(b"\x00")
        ends.client.send_text(b"waits")
        ends.feed()
        ends.socket.listen(lambda text: ends.came.append(f"too early:{text}"))
        ends.client.send_text(b"too")
        ends.feed()
        await asyncio.sleep(0.01)
        assert ends.came == ["asgi:b'\\x00'", "asgi:waits", "asgi:too"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x82\0\0\0\0\xff\xff", 1007),  # not UTF-8
        (b"\x81\x02hi", 1002),  # not masked
        (b"\x81\xff" + (70_000).to_bytes(8, "big") + bytes(4), 1009),
        (b"\x83\x80\0\0\0\0", 1002),  # an opcode that there is not
    ],
)
@pytest.mark.parametrize("pieces", [1, 100])
async def test_a_broken_frame_ends_the_connection(data: bytes, code: int, pieces: int) -> None:
    async with connected() as ends:
        ends.client.send_text(b"before")
        ends.feed()
        for at in range(0, len(data), pieces):
            if not ends.wire.closed:
                ends.socket.data_received(data[at : at + pieces])
        assert ends.wire.closed
        ends.heard()
        assert ends.client.close_rcvd is not None
        assert ends.client.close_rcvd.code == code
        await asyncio.wait_for(ends.over.wait(), 5)
        assert ends.came == ["direct:before", f"over:{code}"]


async def test_a_client_too_eager_to_wait_for_the_answer_is_heard() -> None:
    ends = Ends()
    ends.socket.connection_made(ends.wire)
    ends.client.send_request(ends.client.connect())
    ends.feed()
    eager = b"\x81\x82\0\0\0\0hi"
    ends.socket.data_received(eager[:3])
    ends.socket.data_received(eager[3:] + eager)
    await asyncio.sleep(0.01)
    assert ends.came == ["asgi:hi", "asgi:hi"]
    ends.socket.connection_lost(None)
    await asyncio.wait_for(ends.over.wait(), 5)


async def test_what_is_written_is_read_until_the_peer_stops_reading() -> None:
    async with connected() as ends:
        messages = [b"x", b"y" * 300, b"z" * 70_000]
        assert all(ends.socket.write(message) for message in messages)
        assert [bytes(frame.data) for frame in ends.heard()] == messages
        ends.wire.unread = MAX_UNREAD_BYTES + 1
        assert not ends.socket.write(b"too much")
        assert ends.wire.written == b""


async def test_writing_after_a_close_is_no_error() -> None:
    async with connected() as ends:
        ends.client.send_close(1000)
        ends.feed()
        ends.wire.written = b""
        assert ends.socket.write(b"late")
        assert ends.wire.written == b""
