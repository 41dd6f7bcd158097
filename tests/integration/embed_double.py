"""A stand-in for the embedding process: the same protocol on a real socket, vectors made of hashed words."""

import asyncio
import math
import tempfile
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from memory.embed import Embedder
from memory.embed_wire import EmbedReply, EmbedRequest, frame, read_frame

MODEL = "hashed-words"


def hashed(text: str, dimension: int) -> list[float]:
    """Texts that share words point in similar directions."""
    vector = [0.0] * dimension
    for word in text.lower().split():
        vector[zlib.crc32(word.strip(".,?!").encode()) % dimension] += 1.0
    length = math.hypot(*vector)
    return [value / length for value in vector]


class EmbedDouble:
    """Serves while open. `failures` requests are answered with an error first; `asked` are the texts it saw."""

    def __init__(self, dimension: int = 384, failures: int = 0, model: str = MODEL) -> None:
        self.model = model
        self.dimension = dimension
        self.failures = failures
        self.asked: list[str] = []

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Embedder]:
        with tempfile.TemporaryDirectory(prefix="embed-") as folder:
            path = Path(folder) / "s"
            async with await asyncio.start_unix_server(self._client, str(path)):
                yield Embedder(path, self.model, wait_s=5.0)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = msgspec.msgpack.decode(await read_frame(reader), type=EmbedRequest)
        self.asked += request.texts
        if self.failures > 0:
            self.failures -= 1
            reply = EmbedReply(self.model, self.dimension, error="RuntimeError")
        else:
            reply = EmbedReply(
                self.model, self.dimension, [hashed(text, self.dimension) for text in request.texts]
            )
        writer.write(frame(reply))
        await writer.drain()
        writer.close()
