"""The bench's own WebSocket ends against each other and against the library's, without sockets."""

import asyncio
from typing import cast

from websockets.client import ClientProtocol
from websockets.frames import Frame
from websockets.http11 import Response
from websockets.uri import parse_uri

from ivr.bench.websocket import WebSocketEnd


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closed = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closed = True


def opened(end: WebSocketEnd) -> tuple[ClientProtocol, Wire]:
    """The library's client, with its handshake done."""
    client, wire = ClientProtocol(parse_uri("ws://127.0.0.1:1/media")), Wire()
    end.connection_made(cast(asyncio.Transport, wire))
    client.send_request(client.connect())
    request = b"".join(client.data_to_send())
    end.data_received(request[:50])
    assert not end.is_open
    end.data_received(request[50:])
    client.receive_data(wire.written)
    (response,) = client.events_received()
    assert isinstance(response, Response)
    assert response.status_code == 101
    wire.written = b""
    return client, wire


async def test_messages_of_all_lengths_arrive_whole_however_they_are_cut() -> None:
    got: list[bytes] = []
    end = WebSocketEnd(lambda _, message: got.append(message))
    client, _ = opened(end)
    messages = [bytes([65 + no]) * size for no, size in enumerate((0, 1, 125, 126, 2_000, 70_000))]
    for message in messages:
        client.send_text(message)
    data = b"".join(client.data_to_send())
    for at in range(0, len(data), 777):
        end.data_received(data[at : at + 777])
    assert got == messages


async def test_the_library_reads_what_is_sent_and_pings_are_answered() -> None:
    end = WebSocketEnd(lambda _, __: None)
    client, wire = opened(end)
    for size in (3, 300, 70_000):
        end.send(b"x" * size)
    client.send_ping(b"here?")
    end.data_received(b"".join(client.data_to_send()))
    client.receive_data(wire.written)
    frames = [event for event in client.events_received() if isinstance(event, Frame)]
    assert [len(frame.data) for frame in frames] == [3, 300, 70_000, 5]


async def test_a_close_is_answered_and_nothing_is_sent_after_it() -> None:
    end = WebSocketEnd(lambda _, __: None)
    client, wire = opened(end)
    client.send_close(1000)
    end.data_received(b"".join(client.data_to_send()))
    assert wire.closed
    end.connection_lost(None)
    wire.written = b""
    end.send(b"late")
    assert wire.written == b""
    assert end.closed.done()
