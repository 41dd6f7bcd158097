"""Which calls are alive: this process renews the leases of its own, and brings back, or drops, those of nobody.

A lease is the call's row, renewed each second by the worker that holds its epoch. One that has lapsed is taken by
whoever sees it first: the epoch goes up, so that every write of the old holder is refused, should it only have slept;
then the call is sent to the continue URL by REST. What does not come back counts as dropped, once REST has been asked.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog

from ivr.remembering import in_our_terms
from ivr.secondway import SecondWay
from memory import errors as faults
from memory.calls import CallStatus
from memory.model import EndedBy
from memory.store import Store

GONE_AFTER_S = 10.0
"""A stream that broke has this long to come back, here or at another worker, before its call counts as dropped."""
BEAT_S = 1.0
LAPSED_AFTER = timedelta(seconds=5)
"""Five beats missed: whoever carried the call is gone, or stopped, or cut off from the database."""
LOOK_EVERY, SWEEP_EVERY = 2, 10
"""In beats."""
STALE_AFTER = timedelta(seconds=15)
"""So long after a lapse nobody has brought it back."""
SWEEP_AFTER = timedelta(seconds=60)
"""Calls of nobody that no caller has asked about, and that could not be brought back."""
ASK_S = 0.8
TRIES = 3
"""So often a call that Twilio still has is sent to the continue URL before it is given up."""

log = structlog.get_logger()

Epoch = Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class Held:
    """A call with a stream here. `taken` is told when somebody else holds it by now."""

    epoch: Epoch
    taken: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Check:
    """A call that is expected back. `epoch`: of the stream that broke; a newer one makes the check void."""

    task: asyncio.Task[None]
    epoch: int | None
    by: EndedBy
    """Whose doing it is if it does not come back."""
    is_ours: bool
    """We have sent for it: meanwhile its lease is renewed, or another worker would take it, and we take it back."""


class Liveness:
    """Call `began`, then `left` or `over`, for each stream; `run` beats, looks and sweeps."""

    def __init__(self, store: Store, way: SecondWay) -> None:
        self._store = store
        self._way = way
        self._live: dict[str, Held] = {}
        self._checks: dict[str, Check] = {}
        self._beats = 0
        self._steady_beats = 0
        """Beats in a row that came in time and reached the database."""

    def is_live(self, call_sid: str) -> bool:
        """Whether a stream of this call runs here."""
        return call_sid in self._live

    def began(self, call_sid: str, epoch: Epoch, taken: Callable[[], None] = lambda: None) -> None:
        """A stream of this call runs here."""
        self._live[call_sid] = Held(epoch, taken)
        self.came_back(call_sid)

    def left(self, call_sid: str, epoch: int | None) -> None:
        """The stream is over, the call perhaps not."""
        self._live.pop(call_sid, None)
        self._expect(call_sid, epoch, EndedBy.TWILIO)

    def over(self, call_sid: str) -> None:
        """The call is over, and that is written."""
        self._live.pop(call_sid, None)

    def told_over(self, call_sid: str) -> None:
        """Twilio says that the call is over: unless it comes all the same, it counts as dropped."""
        check = self._checks.get(call_sid)
        self._expect(call_sid, None, EndedBy.CALLER if check is None else check.by)

    def _expect(self, call_sid: str, epoch: int | None, by: EndedBy) -> None:
        """Unless a newer stream of this call comes, it counts as dropped after `GONE_AFTER_S`."""
        self.came_back(call_sid)
        self._check(call_sid, epoch, TRIES, by, at_once=False)

    def came_back(self, call_sid: str) -> None:
        """Twilio asked about the call, so it lives."""
        check = self._checks.pop(call_sid, None)
        if check is not None:
            check.task.cancel()

    async def settle(self, business_id: str, caller: str | None) -> None:
        """This number calls anew: its calls that broke off are dropped now, but for those that Twilio still has.

        Somebody else may call from the same number at the same time. Where Twilio cannot be asked, the call counts as
        dropped; should it come back all the same, it goes on (`Store.revive`). Raises: `StorageUnavailable`.
        """
        if not caller:
            return
        async with in_our_terms():
            if self._checks:
                rows = await self._store.list_calls(business_id, caller=caller, limit=10)
                awaited = [row.call_sid for row in rows if row.call_sid in self._checks]
                for call_sid in await self._gone(awaited):
                    if (check := self._checks.get(call_sid)) is not None:
                        self.came_back(call_sid)
                        await self._drop(call_sid, check.epoch, check.by)
            stale = await self._store.stale_calls(business_id, caller, STALE_AFTER)
            if gone := await self._gone(stale):
                await self._store.drop_stale(STALE_AFTER, business_id=business_id, only=gone)

    async def _gone(self, call_sids: Sequence[str]) -> list[str]:
        """Those that Twilio does not have any more. All are asked for at once: a caller waits."""
        there = await asyncio.gather(*map(self._is_there, call_sids))
        return [call_sid for call_sid, is_there in zip(call_sids, there, strict=True) if not is_there]

    async def _is_there(self, call_sid: str) -> bool:
        """Whether Twilio still has the call; not if it cannot be asked, or is slow."""
        try:
            async with asyncio.timeout(ASK_S):
                return await self._way.is_over(call_sid) is False
        except TimeoutError:
            return False

    async def run(self) -> None:
        """Beat, look and sweep until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            slept_from = loop.time()
            await asyncio.sleep(BEAT_S)
            if loop.time() - slept_from > BEAT_S + 1:
                self._steady_beats = 0  # we stood still ourselves: everybody may have
            await self._turn()

    async def _turn(self) -> None:
        self._beats += 1
        try:
            await self._beat()
            self._steady_beats += 1
            if self._beats % LOOK_EVERY == 0 and self._may_take():
                await self._take_lapsed()
            if self._beats % SWEEP_EVERY == 0:
                for call_sid in await self._store.drop_stale(SWEEP_AFTER):
                    log.warning("call_of_nobody_dropped", call_sid=call_sid)
        except faults.StorageUnavailable:
            self._steady_beats = 0
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
        """One statement for all calls; one of which nobody knows, erased meanwhile, is passed over."""
        ours = {sid: check.epoch for sid, check in self._checks.items() if check.is_ours}
        ours |= {sid: held.epoch() for sid, held in self._live.items()}
        claimed = {sid: epoch for sid, epoch in ours.items() if epoch is not None}
        for call_sid in await self._store.renew_all(claimed):
            held = self._live.get(call_sid)
            # Not a newer stream that began here.
            if held is not None and held.epoch() == claimed[call_sid]:
                held.taken()

    def _may_take(self) -> bool:
        """After an outage of the database every lease has lapsed, and their holders renew them first."""
        return self._way.is_open and self._steady_beats * BEAT_S >= LAPSED_AFTER.total_seconds()

    async def _take_lapsed(self) -> None:
        for call_sid, epoch in await self._store.lapsed(LAPSED_AFTER):
            if self.is_live(call_sid) or call_sid in self._checks:
                continue
            taken = await self._store.take_lapsed(call_sid, epoch, LAPSED_AFTER)
            if taken is not None:
                log.warning("call_taken_from_nobody", call_sid=call_sid)
                self._check(call_sid, taken, TRIES, EndedBy.WORKER, at_once=True)

    def _check(self, call_sid: str, epoch: int | None, tries: int, by: EndedBy, *, at_once: bool) -> None:
        """Await the call, `at_once` after having sent it back to us."""
        work = self._drop_later(call_sid, epoch, tries, by, at_once=at_once)
        self._checks[call_sid] = Check(asyncio.create_task(work), epoch, by, is_ours=at_once)

    async def _drop_later(
        self, call_sid: str, epoch: int | None, tries: int, by: EndedBy, *, at_once: bool
    ) -> None:
        if at_once:
            await self._way.bring_back(call_sid)
        await asyncio.sleep(GONE_AFTER_S)
        is_over = await self._way.is_over(call_sid)
        del self._checks[call_sid]
        try:
            if is_over is False and await self._is_awaited(call_sid, epoch):
                if tries > 1:
                    # Who calls anew from its number is not to drop it meanwhile.
                    await self._store.renew(call_sid)
                    self._check(call_sid, epoch, tries - 1, by, at_once=True)
                    return
                await self._way.hang_up(call_sid)
            await self._drop(call_sid, epoch, by)
        except faults.StorageUnavailable as error:  # then the sweep finds it
            log.warning("drop_not_noted", call_sid=call_sid, error=str(error))
        except faults.MemoryFault:
            log.exception("drop_not_noted", call_sid=call_sid)

    async def _is_awaited(self, call_sid: str, epoch: int | None) -> bool:
        """Whether no newer stream holds the call, here or elsewhere."""
        row = await self._store.get_call(call_sid)
        return (
            not self.is_live(call_sid)
            and row is not None
            and row.status is CallStatus.ACTIVE
            and row.epoch == epoch
        )

    async def _drop(self, call_sid: str, epoch: int | None, by: EndedBy | None) -> None:
        if self.is_live(call_sid):
            return
        # A newer stream holds the call; or it was refused at its webhook and is in no database.
        with contextlib.suppress(faults.StaleEpoch, faults.UnknownCall):
            if await self._store.end_call(call_sid, CallStatus.DROPPED, epoch, by=by):
                log.info("call_dropped", call_sid=call_sid, by=by)
