"""What the embedding process and its clients say to each other: msgpack behind a four-byte length, on a Unix socket."""

import asyncio
import struct

import msgspec

MESSAGE_BYTES_MAX = 16 * 1024 * 1024
_LENGTH = struct.Struct(">I")


class EmbedRequest(msgspec.Struct, frozen=True):
    """Texts to embed. `urgent`: a caller waits (a query); pages come after."""

    texts: list[str]
    urgent: bool = False


class EmbedReply(msgspec.Struct, frozen=True):
    """One vector a text, in order, or `error`."""

    model: str
    dimension: int
    vectors: list[list[float]] = []
    error: str = ""


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next message's bytes. Raises: `asyncio.IncompleteReadError` at the end, `ValueError` if it is too long."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length > MESSAGE_BYTES_MAX:
        raise ValueError(f"message of {length} bytes")
    return await reader.readexactly(length)


def frame(message: msgspec.Struct) -> bytes:
    """The message as it goes over the socket."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body
