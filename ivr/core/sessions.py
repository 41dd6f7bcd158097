"""The model sessions of one call, one after the other: how many failed in a row, how long nobody was there, and when
the present one has to be changed for a new one because the provider would end it.
"""

from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.setup import Tuning

ROLLOVER_AT, FORCED_AT = 55 / 60, 59 / 60
"""Of a session's life: from here on it is changed at the first quiet moment, and here whatever is going on. In the
60 minutes that OpenAI gives, four minutes in which a conversation has many quiet moments."""
ROLLOVER_STEP_MS = 100
"""How often it is looked whether the moment is quiet."""
STEADY_MS = 10_000
"""A session that held so long was there, even if nothing was asked of it: a later loss is a new trouble."""


class Sessions:
    """Sets `Deadline.ROLLOVER` and `Deadline.OUTAGE`; what they mean for the call is `CallCore`'s to do."""

    def __init__(self, tuning: Tuning, deadlines: Deadlines, now_ms: float) -> None:
        self._tuning = tuning
        self._deadlines = deadlines
        self._losses = 0
        self._trouble_from_ms = now_ms
        """When the first of the losses in a row came."""
        self._ready_at_ms: float | None = None
        self._forced_at_ms = 0.0
        deadlines.set(Deadline.OUTAGE, now_ms + tuning.outage_ms)

    @property
    def is_ready(self) -> bool:
        """A session is there to hear and speak."""
        return self._ready_at_ms is not None

    def ready(self, lifetime_ms: float, now_ms: float) -> None:
        """A session is ready, which the provider will end after `lifetime_ms`."""
        self._ready_at_ms = now_ms
        self._forced_at_ms = now_ms + FORCED_AT * lifetime_ms
        self._deadlines.clear(Deadline.OUTAGE)
        self._deadlines.set(Deadline.ROLLOVER, now_ms + ROLLOVER_AT * lifetime_ms)

    def answered(self) -> None:
        """A reply was completed: losses count in a row, and so does their time."""
        self._losses = 0

    def rolls_over(self, *, is_quiet: bool, now_ms: float) -> bool:
        """Whether the present session is to be changed now; else it is looked again soon."""
        if is_quiet or now_ms >= self._forced_at_ms:
            self._gone(now_ms)
            self._deadlines.set(Deadline.OUTAGE, now_ms + self._tuning.outage_ms)
            return True
        self._deadlines.set(Deadline.ROLLOVER, min(now_ms + ROLLOVER_STEP_MS, self._forced_at_ms))
        return False

    def lost(self, now_ms: float) -> int | None:
        """The session, or the attempt at one, is lost. Returns after how many ms to try again; `None`: no more."""
        self._gone(now_ms)
        if self._losses == 0:
            self._trouble_from_ms = now_ms
        self._losses += 1
        gives_up_ms = self._trouble_from_ms + self._tuning.outage_ms
        if self._losses >= self._tuning.max_sessions or now_ms >= gives_up_ms:
            return None
        self._deadlines.set(Deadline.OUTAGE, gives_up_ms)
        return int(min(4_000, 250 * 2 ** (self._losses - 1)))

    def _gone(self, now_ms: float) -> None:
        if self._ready_at_ms is not None and now_ms - self._ready_at_ms >= STEADY_MS:
            self._losses = 0
        self._ready_at_ms = None
        self._deadlines.clear(Deadline.ROLLOVER, Deadline.OUTAGE)
