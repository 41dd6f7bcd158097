"""When a turn that seems over may be answered: the local rule, and how long anybody may hold an answer back.

A silence that the network made is no end of a turn. Locally that is known without asking anybody: the silence is
the caller's once as much of it as ends a turn was *heard*, after the last hole that could have hidden a sound.
"""

from callflows.model import Orchestration
from ivr.core.deadlines import Deadline, Deadlines
from ivr.core.hearing import Hearing
from ivr.core.records import Turn
from ivr.core.setup import CallSetup
from ivr.core.silence import Silence
from ivr.core.threshold import Threshold
from ivr.core.turns import Reply

LOCAL = (Orchestration.LOCAL, Orchestration.JOINT)
HEALTHY_MS = 5_000
"""So long without trouble, and D_VAD is normal again (paper)."""
LATELY_MS = 1_000
"""The paper's window on the network."""


class Patience:
    """Answers questions about the present moment; sets deadlines so that there is a later one to ask in.

    A turn is held at most until its hard deadline, counted from its boundary, whoever holds it and why.
    """

    def __init__(self, setup: CallSetup, hearing: Hearing, silence: Silence, deadlines: Deadlines) -> None:
        self._mode = setup.business.orchestration
        self._tuning = setup.tuning
        self._hearing = hearing
        self._silence = silence
        self._deadlines = deadlines
        self._soft_ms = self._hard_ms = 0.0
        self.threshold = Threshold(setup.tuning.silence_ms, setup.silence_ms)

    @property
    def is_local(self) -> bool:
        """We judge boundaries ourselves, before anybody is asked."""
        return self._mode in LOCAL

    # -- a turn that seems over ---------------------------------------------------------------------------------

    def begin(self, turn: Turn) -> None:
        """A boundary: from here on the caller waits for us."""
        self._hard_ms = turn.closed_at_ms + self._tuning.defer_hard_ms
        self._soft_ms = turn.closed_at_ms + self._tuning.defer_soft_ms
        if self.is_local:
            self._deadlines.set(Deadline.OVERDUE, self._hard_ms)
        if self._mode is Orchestration.JOINT:
            self._deadlines.set(Deadline.RECONSIDER, self._soft_ms)

    def defer(self, now_ms: float) -> None:
        """The model holds the boundary for provisional."""
        self._soft_ms = now_ms + self._tuning.defer_soft_ms
        self._deadlines.set(Deadline.RECONSIDER, self._soft_ms)
        self._deadlines.set(Deadline.OVERDUE, max(self._hard_ms, self._soft_ms))

    def stop(self) -> None:
        """Nothing is held any more."""
        self._deadlines.clear(Deadline.RECONSIDER, Deadline.OVERDUE)

    def is_believed(self, now_ms: float) -> bool:
        """The boundary is one, as far as the line can tell: enough silence was heard, and we hear them still."""
        since_ms = self._hearing.silent_since_ms
        if since_ms is None:
            return True
        heard_ms = self._silence.heard_ms(since_ms)
        return heard_ms >= self.threshold.normal_ms and not self._silence.is_stalled(now_ms)

    def may_ask(self, now_ms: float) -> bool:
        """Ask for the answer. Jointly, what is still in doubt at the soft deadline is a question to the model."""
        if not self.is_local or self.is_overdue(now_ms) or self.is_believed(now_ms):
            return True
        return self._mode is Orchestration.JOINT and now_ms >= self._soft_ms

    def has_believed(self, reply: Reply, now_ms: float) -> bool:
        """Whether speech that goes on now proves us wrong: we had taken the turn for finished, or the model had."""
        match reply:
            case Reply.ASKED:
                return True
            case Reply.GATHERING:
                return self.may_ask(now_ms)
            case Reply.DEFERRED:  # the paper counts it; where we judge too, who waited was right to
                return not self.is_local
            case _:
                return False

    def may_defer(self, now_ms: float) -> bool:
        """Whether the model may still hold a turn that it is asked to answer now.

        Not once it has waited long enough. Jointly, not where the line was bad and the silence was heard all the
        same: the caller has finished, and what was lost does not come by waiting but by asking for it. What is left
        to the model is what only words tell: a sentence that breaks off on a good line, and a silence that could
        not be settled by the soft deadline.
        """
        if self.is_overdue(now_ms):
            return False
        is_good = now_ms - self._silence.healthy_since_ms(now_ms) >= LATELY_MS
        return self._mode is not Orchestration.JOINT or is_good or not self.is_believed(now_ms)

    def may_speak(self, now_ms: float) -> bool:
        """Let the answer be heard: the line may have gone bad since it was asked for."""
        if not self.is_local or self.is_overdue(now_ms):
            return True
        return self.is_believed(now_ms) and self._silence.is_hearing(now_ms)

    def may_reconsider(self, now_ms: float) -> bool:
        """A deferral is over: its soft deadline has passed and the line has recovered, or its hard one has."""
        has_recovered = self.is_believed(now_ms) and self._silence.is_hearing(now_ms)
        return now_ms >= self._soft_ms and (has_recovered or self.is_overdue(now_ms))

    def is_overdue(self, now_ms: float) -> bool:
        """The caller has waited as long as anybody may be made to."""
        return now_ms >= max(self._hard_ms, self._soft_ms)

    # -- D_VAD --------------------------------------------------------------------------------------------------

    def went_on(self, gap_ms: float, now_ms: float) -> bool:
        """Speech continued a turn that was being answered. Returns whether D_VAD changed."""
        if self._mode is Orchestration.OFF or not self.threshold.proved_short(gap_ms):
            return False
        self._deadlines.set(Deadline.RESTORE, now_ms + HEALTHY_MS)
        return True

    def watch(self, now_ms: float) -> None:
        """Whoever changed D_VAD, and not because the caller asked: it is normal again once the line is well."""
        if not (self.threshold.is_normal or self._deadlines.has(Deadline.RESTORE)):
            self._deadlines.set(Deadline.RESTORE, now_ms + HEALTHY_MS)

    def restore(self, now_ms: float) -> bool:
        """D_VAD back to normal, if the line has been healthy for long enough. Returns whether it changed."""
        healthy_ms = self._silence.healthy_since_ms(now_ms) + HEALTHY_MS
        if healthy_ms > now_ms:
            self._deadlines.set(Deadline.RESTORE, healthy_ms)
            return False
        return self.threshold.restore()
