"""Our frames as the library reads them."""

import pytest
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.server import ServerProtocol
from websockets.uri import parse_uri

from ivr.adapters.frames import masked_text_frame, text_frame

SIZES = (0, 1, 125, 126, 1_327, 65_535, 65_536)


@pytest.mark.parametrize("size", SIZES)
def test_the_library_reads_what_we_write(size: int) -> None:
    payload = bytes(65 + no % 26 for no in range(size))
    client = ClientProtocol(parse_uri("ws://127.0.0.1:1/"), state=State.OPEN)
    server = ServerProtocol(state=State.OPEN)
    client.receive_data(text_frame(payload))
    server.receive_data(masked_text_frame(payload))
    for end in (client, server):
        (frame,) = end.events_received()
        assert isinstance(frame, Frame)
        assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, payload)


def test_no_two_masks_are_alike() -> None:
    assert len({masked_text_frame(b"x")[2:6] for _ in range(50)}) > 45
