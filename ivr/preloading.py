"""Reads a caller's pages when their call is announced, so that its first recall finds them in the process."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from memory.model import Owner
from memory.service import Memory

EXPECTED_S = 60.0
"""So long after the webhook the stream is awaited; what was read is dropped then, if no call of theirs is live."""


class Preloading:
    """A caller's pages are kept while a call of theirs is expected or live here, and dropped with the last."""

    def __init__(self, memory: Memory, expected_s: float = EXPECTED_S) -> None:
        self._memory = memory
        self._expected_s = expected_s
        self._tasks: set[asyncio.Task[None]] = set()

    def expect(self, owner: Owner) -> None:
        """A call of theirs was announced. Comes back at once."""
        if not owner.caller:
            return
        self._memory.callers.hold(owner)
        asyncio.get_running_loop().call_later(self._expected_s, self._memory.callers.release, owner)
        self._warm(owner)

    @contextmanager
    def live(self, owner: Owner) -> Iterator[None]:
        """A call of theirs runs here, whoever answered its webhook."""
        self._memory.callers.hold(owner)
        if owner.caller:
            self._warm(owner)
        try:
            yield
        finally:
            self._memory.callers.release(owner)

    async def close(self) -> None:
        """Nothing is read any more."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _warm(self, owner: Owner) -> None:
        task = asyncio.get_running_loop().create_task(self._memory.warm(owner))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
