"""One pacing tick for all calls of a worker: a timer wake-up costs more than a call's work in it."""

import asyncio
from collections.abc import Callable
from time import monotonic

import structlog

TICK_MS = 20

log = structlog.get_logger()


class MonotonicClock:
    """`ivr.ports.Clock` on the machine's monotonic clock."""

    def now_ms(self) -> float:
        """Milliseconds since an arbitrary start."""
        return monotonic() * 1_000


class Pacer:
    """Calls every subscriber each 20 ms, by absolute times: lateness does not add up."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._subscribers: set[Callable[[float], None]] = set()
        self._awake = asyncio.Event()

    def subscribe(self, on_tick: Callable[[float], None]) -> Callable[[], None]:
        """Have `on_tick(now_ms)` called; it must be quick and not raise. Returns how to stop it."""
        self._subscribers.add(on_tick)
        self._awake.set()
        return lambda: self._subscribers.discard(on_tick)

    async def run(self) -> None:
        """Tick until cancelled; sleeps while nobody listens."""
        due_ms = self._clock.now_ms()
        while True:
            if not self._subscribers:
                self._awake.clear()
                await self._awake.wait()
                due_ms = self._clock.now_ms()
            due_ms += TICK_MS
            now_ms = self._clock.now_ms()
            if due_ms < now_ms - 10 * TICK_MS:  # the machine stood still: no burst of ticks for the past
                due_ms = now_ms
            await asyncio.sleep(max(0.0, due_ms - now_ms) / 1_000)
            self._tick()

    def _tick(self) -> None:
        now_ms = self._clock.now_ms()
        for on_tick in tuple(self._subscribers):
            try:
                on_tick(now_ms)
            except Exception:  # one call's bug must not stop the others' audio
                log.exception("tick_failed")
