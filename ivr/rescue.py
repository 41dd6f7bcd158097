"""The second way back for a call whose stream broke: a REST redirect to the continue URL.

Twilio documents what runs after a stream that *we* close; that the same runs after a broken one is only inferred. So a
`stream-error` callback is waited out, and if neither the continue webhook nor a new stream has come, we send the call
there ourselves. Never while a stream runs (B063).
"""

import asyncio
from collections.abc import Callable

import structlog

from ivr.errors import TelephonyError
from ivr.ports import Telephony
from ivr.web.voice import CONTINUE_PATH
from ivr.wire.twiml import say_and_redirect
from memory import errors as faults
from memory.calls import CallStatus
from memory.store import Store

WAIT_S = 3.0
"""Twilio asks the continue URL within a second, if it does."""

log = structlog.get_logger()


class Rescue:
    """`public_url` None: Twilio could not be told where to; then there is no second way."""

    def __init__(
        self,
        store: Store,
        telephony: Telephony,
        public_url: str | None,
        is_live: Callable[[str], bool],
        wait_s: float = WAIT_S,
    ) -> None:
        self._store = store
        self._telephony = telephony
        self._url = f"{public_url}{CONTINUE_PATH}?n=1" if public_url else None
        self._is_live = is_live
        self._wait_s = wait_s
        self._waiting: dict[str, asyncio.Task[None]] = {}

    def stream_broke(self, call_sid: str) -> None:
        """A `stream-error` came for this call. Repeated ones count once."""
        if self._url is not None and call_sid not in self._waiting:
            task = asyncio.create_task(self._bring_back(call_sid, self._url), name=f"rescue-{call_sid}")
            self._waiting[call_sid] = task
            task.add_done_callback(lambda _: self._waiting.pop(call_sid, None))

    def came_back(self, call_sid: str) -> None:
        """The continue webhook came, here: nothing is left to do."""
        task = self._waiting.get(call_sid)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop waiting."""
        tasks = list(self._waiting.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _bring_back(self, call_sid: str, url: str) -> None:
        try:
            before = await self._epoch_if_active(call_sid)
            if before is None:
                return
            await asyncio.sleep(self._wait_s)
            if await self._epoch_if_active(call_sid) != before or self._is_live(call_sid):
                return
            await self._telephony.update(call_sid, say_and_redirect("", url))
            log.info("call_brought_back", call_sid=call_sid)
        except (faults.MemoryFault, TelephonyError) as error:
            log.warning("call_not_brought_back", call_sid=call_sid, error=str(error))

    async def _epoch_if_active(self, call_sid: str) -> int | None:
        row = await self._store.get_call(call_sid)
        return row.epoch if row is not None and row.status is CallStatus.ACTIVE else None
