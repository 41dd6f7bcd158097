"""What waits to be embedded: queries before pages, and those that wait together are encoded together."""

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from memory.embed_wire import EmbedRequest
from memory.errors import EncodingFailed

log = structlog.get_logger()

MICRO_BATCH_TEXTS = 8
"""As many as the model takes at once: eight short ones take five times as long as one, more gain nothing (measured)."""

Vector = TypeVar("Vector")


@dataclass(order=True)
class Waiting(Generic[Vector]):
    """One request: urgent ones first, then in order of arrival. `done` gets one vector a text."""

    rank: int
    number: int
    texts: list[str] = field(compare=False)
    done: asyncio.Future[list[Vector]] = field(compare=False)


class EmbedQueue(Generic[Vector]):
    """Requests in, micro-batches out. Of one event loop."""

    def __init__(self) -> None:
        self._queue: asyncio.PriorityQueue[Waiting[Vector]] = asyncio.PriorityQueue()
        self._numbers = itertools.count()

    async def ask(self, request: EmbedRequest) -> list[Vector]:
        """The vectors, once their turn has come. Raises: `EncodingFailed` with the fault's name."""
        done: asyncio.Future[list[Vector]] = asyncio.get_running_loop().create_future()
        rank = 0 if request.urgent else 1
        self._queue.put_nowait(Waiting(rank, next(self._numbers), request.texts, done))
        return await done

    async def serve(self, encode: Callable[[list[str]], Sequence[Vector]]) -> None:
        """Encode what comes, for ever, in a thread: `encode` gives one vector a text."""
        while True:
            batch = await self._next()
            if not await self._together(batch, encode) and len(batch) > 1:
                for one in batch:  # one bad text is told to who sent it, not to the others
                    await self._together([one], encode)

    async def _next(self) -> list[Waiting[Vector]]:
        first = await self._queue.get()
        batch, texts = [first], len(first.texts)
        while not self._queue.empty():
            following = self._queue.get_nowait()
            texts += len(following.texts)
            if following.rank != first.rank or texts > MICRO_BATCH_TEXTS:
                self._queue.put_nowait(following)  # its number keeps its place
                break
            batch.append(following)
        return batch

    async def _together(
        self, batch: list[Waiting[Vector]], encode: Callable[[list[str]], Sequence[Vector]]
    ) -> bool:
        try:
            vectors = iter(await asyncio.to_thread(encode, [text for one in batch for text in one.texts]))
        except Exception as fault:  # the requests' border: one bad text must not end the process
            log.exception("embedding_failed", requests=len(batch))
            if len(batch) == 1 and not batch[0].done.done():
                batch[0].done.set_exception(EncodingFailed(type(fault).__name__))
            return False
        for one in batch:
            own = list(itertools.islice(vectors, len(one.texts)))
            if not one.done.done():
                one.done.set_result(own)
        return True
