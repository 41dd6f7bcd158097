"""The pacing tick of a worker's calls, shared by many: a timer wake-up costs more than a call's work in it."""

import asyncio
from collections.abc import Callable
from time import monotonic

import structlog

TICK_MS = 20
PHASES = 4
SHARED_BY = 8
"""So many calls share a wake-up before the next phase is used: a wake-up costs as much as the work of some calls."""

OnTick = Callable[[float], None]
log = structlog.get_logger()


class MonotonicClock:
    """`ivr.ports.Clock` on the machine's monotonic clock."""

    def now_ms(self) -> float:
        """Milliseconds since an arbitrary start."""
        return monotonic() * 1_000


class Pacer:
    """Calls every subscriber each 20 ms, by absolute times: lateness does not add up.

    Many calls are spread over the 20 ms, so that none waits behind all the others; few share a wake-up.
    """

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._phases: tuple[set[OnTick], ...] = tuple(set() for _ in range(PHASES))
        self._awake = asyncio.Event()

    def subscribe(self, on_tick: OnTick) -> Callable[[], None]:
        """Have `on_tick(now_ms)` called; it must be quick and not raise. Returns how to stop it."""
        roomy = (phase for phase in self._phases if len(phase) < SHARED_BY)
        phase = next(roomy, None) or min(self._phases, key=len)
        phase.add(on_tick)
        self._awake.set()
        return lambda: phase.discard(on_tick)

    async def run(self) -> None:
        """Tick until cancelled; sleeps while nobody listens."""
        due_ms, no = self._clock.now_ms(), 0
        while True:
            if not any(self._phases):
                self._awake.clear()
                await self._awake.wait()
                due_ms = self._clock.now_ms()
            due_ms, no = due_ms + TICK_MS / PHASES, (no + 1) % PHASES
            if not self._phases[no]:
                continue
            now_ms = self._clock.now_ms()
            if due_ms < now_ms - 10 * TICK_MS:  # the machine stood still: no burst of ticks for the past
                due_ms = now_ms
            await asyncio.sleep(max(0.0, due_ms - now_ms) / 1_000)
            self._tick(self._phases[no])

    def _tick(self, phase: set[OnTick]) -> None:
        now_ms = self._clock.now_ms()
        for on_tick in tuple(phase):
            try:
                on_tick(now_ms)
            except Exception:  # one call's bug must not stop the others' audio
                log.exception("tick_failed")
