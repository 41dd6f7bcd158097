"""One simulated call in which one recording is said over one network: `CallCore` as in a call, time made up.

The line, its losses and delays, Twilio's playout and marks, the worker's pacing tick and the model are simulated; what
decides is the service's own core. The clock starts with the recording: what is said at 1 s is sent at 1 s.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from callflows import engine
from callflows.model import Business
from ivr.bench.turns_data import Recording, Trace
from ivr.bench.turns_ear import Ear
from ivr.bench.turns_model import OURS, AskedReply, Model, Timing
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.units import FRAME_MS, ulaw_ms
from ivr.pacing import TICK_MS
from memory.model import Window

AFTER_MS = 15_000
"""So long after the recording's end an answer is waited for; the caller is silent."""
FIRST_TIMESTAMP_MS = 135
_TICK_PHASE_MS = 7.0
"""The worker's tick is in no step with the caller's frames."""


@dataclass(frozen=True, slots=True)
class Said:
    """A reply that became audible: when, and where the sound ended that it took for the end of the turn."""

    boundary_ms: float
    audible_ms: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call. `delay_ms` is `None` if the end of the turn was never answered."""

    false: tuple[Said, ...]
    delay_ms: float | None
    discarded_usd: float
    decisions: int

    @property
    def has_false(self) -> bool:
        """A reply became audible before the last word ended."""
        return bool(self.false)

    def network_false(self, clean: "Outcome") -> bool:
        """Whether a false interruption came of the network: `clean`, the call without loss, has none in that pause."""
        return any(not any(_overlap(one, other) for other in clean.false) for one in self.false)


def _overlap(one: Said, other: Said) -> bool:
    return one.boundary_ms < other.audible_ms and other.boundary_ms < one.audible_ms


@dataclass(frozen=True, slots=True)
class Way:
    """The caller's frames that arrive: number and time, in order; up to the end of the wait."""

    numbers: tuple[int, ...]
    arrive_ms: tuple[float, ...]
    lost: tuple[bool, ...]
    """By number."""

    @classmethod
    def of(cls, recording: Recording, trace: Trace | None, offset: int, *, goes_on: bool = False) -> "Way":
        """Over the trace from its frame `offset` on (no trace: nothing is lost or late). The hop is TCP: a late
        frame holds up those behind it. Losses end with the recording, unless the trace `goes_on`.
        """
        numbers, times, lost, last_ms = [], [], [], 0.0
        for number in range(len(recording.frames) + AFTER_MS // FRAME_MS):
            due_ms = float((number + 1) * FRAME_MS)
            is_over = number >= len(recording.frames) and not goes_on
            lost.append(trace is not None and not is_over and trace.network.loses(offset + number))
            if lost[-1]:
                continue
            if trace is not None:
                due_ms += trace.network.delay_of(offset + number)
            last_ms = max(last_ms, due_ms)
            numbers.append(number)
            times.append(last_ms)
        return cls(tuple(numbers), tuple(times), tuple(lost))

    def received(self) -> "Way":
        """The same behind a receiver that conceals what is lost while nothing arrives: a frame each 20 ms."""
        if not any(self.lost):
            return self
        every = range(len(self.lost))
        return replace(
            self, numbers=tuple(every), arrive_ms=tuple(float((no + 1) * FRAME_MS) for no in every)
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """A recording, what was heard of it so far, and how its words reach us."""

    recording: Recording
    ear: Ear


@dataclass(frozen=True, slots=True)
class Manner:
    """A policy: what is different about the call. `receives`: a usual receiver stands before us, which conceals what is
    lost while nothing arrives and passes on nothing but sound.
    """

    prepare: Callable[[CallSetup], CallSetup]
    receives: bool = False
    timing: Timing = OURS


class World:
    """One call. `run` it once."""

    def __init__(self, caller: Caller, way: Way, business: Business, manner: Manner, chance: Random) -> None:
        self._recording, self._ear = caller.recording, caller.ear
        self._way = way.received() if manner.receives else way
        self._received = caller.ear.received(way.lost) if manner.receives and any(way.lost) else None
        setup = manner.prepare(CallSetup("bench", business, engine.start(business), ""))
        self._core = CallCore(setup, 0.0)
        self._model = Model(caller.recording, self._core.config(), manner.timing, chance, self._later)
        self._listener = caller.ear.listen()
        self._now_ms = 0.0
        self._ticked_ms = 0.0
        self._due: list[tuple[float, int, ev.Event]] = []
        self._order = 0
        self._number = -1
        self._plays_until_ms = 0.0
        self._speaking: AskedReply | None = None
        self._marks: set[str] = set()
        self._handlers: dict[type, Callable[..., None]] = {
            do.Hear: self._hear,
            do.StartReply: lambda order: self._model.start(order, self._now_ms),
            do.CancelReply: lambda order: self._model.cancel(order.reply_id),
            do.UpdateSession: lambda order: self._model.update(order.config),
            do.SendMedia: self._play,
            do.SendMark: self._mark,
            do.SendClear: self._clear,
            do.Recall: lambda order: self._later(
                manner.timing.recall_ms, ev.Recalled(order.turn_no, Window())
            ),
        }

    def run(self) -> Outcome:
        """Until the end of the turn was answered, or nobody answers."""
        self._receive(ev.ModelReady("bench"))
        numbers, times = self._way.numbers, self._way.arrive_ms
        at, speech_over = 0, bisect_left(numbers, len(self._recording.frames))
        while at < len(times):
            if at >= speech_over and self._answer() is not None:
                break
            due_ms = self._due[0][0] if self._due else times[at]
            tick_ms = self._tick_ms(min(due_ms, times[at]))
            if tick_ms is not None:
                self._now_ms = self._ticked_ms = tick_ms
                self._receive(ev.Tick())
            elif due_ms < times[at] or (self._due and due_ms == times[at]):
                self._now_ms, _, event = heapq.heappop(self._due)
                if self._model.wants(event) and self._is_out(event):
                    self._receive(event)
            else:
                self._now_ms, self._number = times[at], numbers[at]
                self._receive(self._frame(at))
                at += 1
        return self._outcome()

    # -- time ----------------------------------------------------------------------------------------------------

    def _tick_ms(self, before_ms: float) -> float | None:
        """When the worker's tick has something to do, if that is before the next event (`ivr.call`, `ivr.pacing`)."""
        deadline_ms = self._core.next_deadline(self._now_ms)
        if deadline_ms is None or deadline_ms >= before_ms:
            return None
        earliest_ms = max(deadline_ms, self._now_ms, self._ticked_ms + TICK_MS)
        steps = -(-(earliest_ms - _TICK_PHASE_MS) // TICK_MS)
        tick_ms = _TICK_PHASE_MS + steps * TICK_MS
        return tick_ms if tick_ms < before_ms else None

    def _later(self, after_ms: float, event: ev.Event) -> None:
        self._order += 1
        heapq.heappush(self._due, (self._now_ms + after_ms, self._order, event))

    def _receive(self, event: ev.Event) -> None:
        if isinstance(event, ev.ReplyAudio):
            self._speaking = self._model.replies[event.reply_id]
        for command in self._core.receive(event, self._now_ms):
            handler = self._handlers.get(type(command))
            if handler is not None:  # what is written to the journal is nobody's business here
                handler(command)

    # -- the line ------------------------------------------------------------------------------------------------

    def _frame(self, at: int) -> ev.LineFrame:
        """Timestamps leap over what was lost; the counters do not (`ivr.phone.network`)."""
        return ev.LineFrame(
            at + 3, at + 1, FIRST_TIMESTAMP_MS + self._number * FRAME_MS, self._ear.frame(self._number)
        )

    def _hear(self, order: do.Hear) -> None:
        number = self._number
        if self._received is None:
            self._model.hear(number, self._listener.hear(number, order.missing_ms))
        else:
            self._model.hear(number, self._received[number], is_lost=self._way.lost[number])

    def _play(self, order: do.SendMedia) -> None:
        starts_ms = max(self._now_ms, self._plays_until_ms)
        self._plays_until_ms = starts_ms + ulaw_ms(order.ulaw)
        reply = self._speaking
        if reply is not None and reply.first_audible_ms is None:
            reply.first_audible_ms = starts_ms

    def _mark(self, order: do.SendMark) -> None:
        self._marks.add(order.name)
        self._later(self._plays_until_ms - self._now_ms, ev.LineMark(order.name))

    def _clear(self, _: do.SendClear) -> None:
        """Twilio plays no more, and returns the marks that are out."""
        for name in sorted(self._marks):
            self._later(0, ev.LineMark(name))
        self._plays_until_ms = self._now_ms

    def _is_out(self, event: ev.Event) -> bool:
        """A mark comes back once: at its time, or at a clear."""
        if not isinstance(event, ev.LineMark):
            return True
        is_out = event.name in self._marks
        self._marks.discard(event.name)
        return is_out

    # -- what came of it -----------------------------------------------------------------------------------------

    def _answer(self) -> AskedReply | None:
        """The reply to all that was said, once it is audible."""
        if self._model.is_hearing_speech:
            return None
        items = len(self._model.items)
        return next((r for r in self._audible() if r.is_answer and r.after_items == items), None)

    def _audible(self) -> list[AskedReply]:
        return [r for r in self._model.replies.values() if r.first_audible_ms is not None]

    def _outcome(self) -> Outcome:
        final, end_ms = self._answer(), self._recording.speech_end_ms
        audible = [Said(r.boundary_ms, r.first_audible_ms or 0.0) for r in self._audible()]
        others = [r for r in self._model.replies.values() if r.is_answer and r is not final]
        delay_ms = None
        if final is not None and final.first_audible_ms is not None and final.first_audible_ms >= end_ms:
            delay_ms = final.first_audible_ms - end_ms
        return Outcome(
            false=tuple(said for said in audible if said.audible_ms < end_ms),
            delay_ms=delay_ms,
            discarded_usd=sum(r.usd for r in others),
            decisions=sum(r.is_decision for r in others),
        )


def call(caller: Caller, way: Way, business: Business, manner: Manner, chance: Random) -> Outcome:
    """Simulate one call."""
    return World(caller, way, business, manner, chance).run()


without_loss = partial(Way.of, trace=None, offset=0)
"""The way of a recording on a perfect line."""
