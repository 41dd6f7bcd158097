"""Which calls are alive: those of this process are kept fresh; those that nobody carries any more count as dropped."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import structlog

from ivr.remembering import in_our_terms
from memory import errors as faults
from memory.calls import CallStatus
from memory.store import Store

GONE_AFTER_S = 10.0
"""A stream that broke has this long to come back, here or at another worker, before its call counts as dropped."""
BEAT_S = 5.0
STALE_AFTER = timedelta(seconds=15)
"""Three beats missed: whoever carried the call is gone."""
SWEEP_AFTER = timedelta(seconds=60)
"""Calls of nobody that no caller has asked about: a worker was killed, or stopped and nobody took over."""

log = structlog.get_logger()

Epoch = Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class Check:
    """A call that is expected back. `epoch`: of the stream that broke; a newer one makes the check void."""

    task: asyncio.Task[None]
    epoch: int | None


class Liveness:
    """Call `began`, then `left` or `over`, for each stream; `run` beats and sweeps."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._live: dict[str, Epoch] = {}
        self._checks: dict[str, Check] = {}

    def is_live(self, call_sid: str) -> bool:
        """Whether a stream of this call runs here."""
        return call_sid in self._live

    def began(self, call_sid: str, epoch: Epoch) -> None:
        """A stream of this call runs here."""
        self._live[call_sid] = epoch
        self.came_back(call_sid)

    def left(self, call_sid: str, epoch: int | None) -> None:
        """The stream is over, the call perhaps not."""
        self._live.pop(call_sid, None)
        self.expect_back(call_sid, epoch)

    def over(self, call_sid: str) -> None:
        """The call is over, and that is written."""
        self._live.pop(call_sid, None)

    def expect_back(self, call_sid: str, epoch: int | None = None) -> None:
        """Unless a newer stream of this call comes, it counts as dropped after `GONE_AFTER_S`."""
        self.came_back(call_sid)
        self._checks[call_sid] = Check(asyncio.create_task(self._drop_later(call_sid, epoch)), epoch)

    def came_back(self, call_sid: str) -> None:
        """Twilio asked about the call, so it lives."""
        check = self._checks.pop(call_sid, None)
        if check is not None:
            check.task.cancel()

    async def settle(self, business_id: str, caller: str | None) -> None:
        """This caller calls anew: their calls that broke off will not come back, so they are dropped now.

        Raises: `StorageUnavailable`.
        """
        if not caller:
            return
        async with in_our_terms():
            if self._checks:
                for row in await self._store.list_calls(business_id, caller=caller, limit=10):
                    check = self._checks.get(row.call_sid)
                    if check is not None:
                        self.came_back(row.call_sid)
                        await self._drop(row.call_sid, check.epoch)
            await self._store.drop_stale(STALE_AFTER, business_id=business_id, caller=caller)

    async def run(self) -> None:
        """Beat and sweep until cancelled."""
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                await self._beat()
                for call_sid in await self._store.drop_stale(SWEEP_AFTER):
                    log.warning("call_of_nobody_dropped", call_sid=call_sid)
            except faults.StorageUnavailable:
                log.warning("liveness_without_database")
            except faults.MemoryFault:
                log.exception("liveness_failed")

    async def close(self) -> None:
        """Stop waiting. What was expected back may go on at another worker; if not, that one sweeps it up."""
        checks, self._checks = list(self._checks.values()), {}
        for check in checks:
            check.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await check.task

    async def _beat(self) -> None:
        for call_sid, epoch_of in tuple(self._live.items()):
            epoch = epoch_of()
            if epoch is not None:
                with contextlib.suppress(faults.StaleEpoch, faults.UnknownCall):
                    await self._store.touch(call_sid, epoch)

    async def _drop_later(self, call_sid: str, epoch: int | None) -> None:
        await asyncio.sleep(GONE_AFTER_S)
        del self._checks[call_sid]
        try:
            await self._drop(call_sid, epoch)
        except faults.StorageUnavailable as error:  # then the sweep finds it
            log.warning("drop_not_noted", call_sid=call_sid, error=str(error))
        except faults.MemoryFault:
            log.exception("drop_not_noted", call_sid=call_sid)

    async def _drop(self, call_sid: str, epoch: int | None) -> None:
        if self.is_live(call_sid):
            return
        # A newer stream holds the call; or it was refused at its webhook and is in no database.
        with contextlib.suppress(faults.StaleEpoch, faults.UnknownCall):
            if await self._store.end_call(call_sid, CallStatus.DROPPED, epoch):
                log.info("call_dropped", call_sid=call_sid)
