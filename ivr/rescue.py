"""The second way, for calls of this process: back after a stream that broke, and out after the end.

Twilio documents what runs after a stream that *we* close; that the same runs after a broken one is only inferred. So a
`stream-error` callback is waited out, and if neither the continue webhook nor a new stream has come, we send the call
there ourselves. Never while a stream runs (B063). The same after an end of ours: a close that never arrived leaves the
caller in silence.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from ivr.secondway import SecondWay
from memory import errors as faults
from memory.calls import CallStatus
from memory.store import Store

WAIT_S = 3.0
"""Twilio asks the continue URL within a second, if it does."""
END_WAIT_S = 8.0
"""An end is written before the stream is closed, which may take 2 s."""

log = structlog.get_logger()


class Rescue:
    """One wait for each call at most."""

    def __init__(
        self, store: Store, way: SecondWay, is_live: Callable[[str], bool], wait_s: float = WAIT_S
    ) -> None:
        self._store = store
        self._way = way
        self._is_live = is_live
        self._wait_s = wait_s
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def stream_broke(self, call_sid: str) -> None:
        """A `stream-error` came for this call. Repeated ones count once."""
        self._wait(call_sid, self._bring_back(call_sid))

    def finished(self, call_sid: str) -> None:
        """The call has come to its end here: unless Twilio asks what is next, it is told."""
        self._wait(call_sid, self._see_out(call_sid))

    def came_back(self, call_sid: str) -> None:
        """The continue webhook came, here, or the call is over: nothing is left to do."""
        task = self._waiting.get(call_sid)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop waiting."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _wait(self, call_sid: str, work: Coroutine[Any, Any, None]) -> None:
        if not self._way.is_open or call_sid in self._waiting:
            work.close()
            return
        task = asyncio.create_task(work, name=f"rescue-{call_sid}")
        self._waiting[call_sid] = task
        task.add_done_callback(lambda _: self._waiting.pop(call_sid, None))

    async def _bring_back(self, call_sid: str) -> None:
        try:
            before = await self._epoch_if_active(call_sid)
            if before is None:
                return
            await asyncio.sleep(self._wait_s)
            if await self._epoch_if_active(call_sid) != before or self._is_live(call_sid):
                return
        except faults.MemoryFault as error:
            log.warning("call_not_brought_back", call_sid=call_sid, error=str(error))
            return
        await self._way.bring_back(call_sid)

    async def _see_out(self, call_sid: str) -> None:
        await asyncio.sleep(END_WAIT_S)
        try:
            if self._is_live(call_sid) or await self._epoch_if_active(call_sid) is not None:
                return  # that end was of the past: the call goes on, here or elsewhere
        except faults.MemoryFault as error:
            log.warning("call_not_seen_out", call_sid=call_sid, error=str(error))
            return
        await self._way.hang_up(call_sid)

    async def _epoch_if_active(self, call_sid: str) -> int | None:
        row = await self._store.get_call(call_sid)
        return row.epoch if row is not None and row.status is CallStatus.ACTIVE else None
