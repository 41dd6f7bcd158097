"""What a simulated caller does, and when. Pure: the far side's talking and the time are arguments."""

from dataclasses import dataclass

from ivr.phone.mouth import check_keys
from ivr.phone.playback import FarSide


@dataclass(frozen=True)
class AfterReply:
    """Once the far side has said something new and been quiet for `gap_ms`; at last after `patience_ms`."""

    gap_ms: int = 700
    patience_ms: int = 30_000


@dataclass(frozen=True)
class At:
    """At this time since the call was answered, or as soon after it as the steps before are done."""

    at_ms: int


@dataclass(frozen=True)
class BargeIn:
    """While the far side is talking, `after_ms` into it; at last after `patience_ms` of waiting for that."""

    after_ms: int
    patience_ms: int = 30_000


@dataclass(frozen=True)
class Now:
    """As soon as the steps before are done."""


Timing = AfterReply | At | BargeIn | Now


@dataclass(frozen=True)
class Say:
    """Speak: µ-law audio of any length, and its words for the record."""

    ulaw: bytes
    text: str = ""
    when: Timing = AfterReply()


@dataclass(frozen=True)
class Dtmf:
    """Press keys: 0-9, *, #, A-D; `w` waits half a second. Raises ValueError for anything else."""

    digits: str
    when: Timing = AfterReply()

    def __post_init__(self) -> None:
        check_keys(self.digits)


@dataclass(frozen=True)
class Wait:
    """Do nothing for this long after the step before."""

    duration_ms: int


@dataclass(frozen=True)
class HangUp:
    """Put the phone down: the service gets `stop` and a status callback."""

    when: Timing = AfterReply()


@dataclass(frozen=True)
class DropLine:
    """The whole line vanishes: the socket is reset; no `stop`, no status callback, nothing more."""

    when: Timing = Now()


@dataclass(frozen=True)
class BreakStream:
    """The media socket is reset, the call lives on with the TwiML after `<Connect>` *(inferred)*."""

    when: Timing = Now()


Step = Say | Dtmf | Wait | HangUp | DropLine | BreakStream


@dataclass(frozen=True)
class CallScript:
    """Steps in order. When they are done the caller stays on the line, silent, until the far side ends it.

    drop_after_ms: the line drops (as DropLine) at this time since the answer, whatever the steps are at.
    hang_up_after_ms: the caller hangs up at this time since the answer, so that no call is for ever.
    """

    steps: tuple[Step, ...] = ()
    drop_after_ms: int | None = None
    hang_up_after_ms: int = 600_000


class ScriptRunner:
    """Which step is due. Steps begin one after the other; a Say or Dtmf lasts while the mouth is busy."""

    def __init__(self, script: CallScript) -> None:
        self._steps = list(script.steps)
        self._script = script
        self._waiting_since_ms = 0
        self._voiced_before_ms = 0
        self._speaking = False

    @property
    def finished(self) -> bool:
        return not self._steps and not self._speaking

    def next_step(self, now_ms: int, far: FarSide, mouth_busy: bool) -> Step | None:
        """The step to carry out at `now_ms` since the answer, if one is due. At most one a frame."""
        limit = self._limit(now_ms)
        if limit is not None:
            self._steps.clear()
            return limit
        if mouth_busy:
            return None
        if self._speaking:
            self._speaking = False
            self._done(now_ms, far)
        if not self._steps or not self._is_due(self._steps[0], now_ms, far):
            return None
        return self._begin(self._steps.pop(0), now_ms, far)

    def _limit(self, now_ms: int) -> Step | None:
        if self._script.drop_after_ms is not None and now_ms >= self._script.drop_after_ms:
            return DropLine()
        return HangUp() if now_ms >= self._script.hang_up_after_ms else None

    def _begin(self, step: Step, now_ms: int, far: FarSide) -> Step | None:
        if isinstance(step, Wait):
            # What was heard during a Wait still counts as the reply to what was said before it.
            self._waiting_since_ms = now_ms
            return None
        self._speaking = isinstance(step, Say | Dtmf)
        self._done(now_ms, far)
        return step

    def _done(self, now_ms: int, far: FarSide) -> None:
        self._waiting_since_ms = now_ms
        self._voiced_before_ms = far.voiced_ms

    def _is_due(self, step: Step, now_ms: int, far: FarSide) -> bool:
        waited_ms = now_ms - self._waiting_since_ms
        if isinstance(step, Wait):
            return waited_ms >= step.duration_ms
        return self._is_time(step.when, now_ms, waited_ms, far)

    def _is_time(self, when: Timing, now_ms: int, waited_ms: int, far: FarSide) -> bool:
        heard_new = far.voiced_ms > self._voiced_before_ms
        match when:
            case Now():
                return True
            case At(at_ms):
                return now_ms >= at_ms
            case AfterReply(gap_ms, patience_ms):
                return (heard_new and not far.busy and far.idle_ms >= gap_ms) or waited_ms >= patience_ms
            case BargeIn(after_ms, patience_ms):
                return (heard_new and far.busy and far.spurt_ms >= after_ms) or waited_ms >= patience_ms
