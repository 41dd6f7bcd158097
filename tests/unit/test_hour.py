"""A call of an hour, core and media path, in simulated time: loss, stalls, interruptions; and nothing piles up."""

import gc
import heapq
import random
import tracemalloc
from dataclasses import dataclass, field

import pytest

from callflows import engine
from ivr.audio.inbound import Inbound
from ivr.audio.outbound import Outbound
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.units import ulaw_ms
from memory.model import Window
from tests.unit.core.harness import clinic

STEP_MS = 500
"""Frames of 500 ms, so that the hour does not take a minute; turns come one in 20 s."""
FRAME = bytes((31 * n) % 97 for n in range(8 * STEP_MS))
TURN_MS = 20_000
HOUR_MS = 3_600_000
SPOKEN = bytes(2 * 24 * 200)
"""200 ms of a reply, PCM16 24 kHz."""
MINUTE_MS = 60_000
MIB = 1024 * 1024


@dataclass
class Hour:
    """One call with everything around it played by hand."""

    core: CallCore
    now_ms: float = 0.0
    inbound: Inbound = field(default_factory=Inbound)
    outbound: Outbound = field(default_factory=Outbound)
    chance: random.Random = field(default_factory=lambda: random.Random(11))
    counts: dict[type, int] = field(default_factory=dict)
    _due: list[tuple[float, int, ev.Event]] = field(default_factory=list)
    _order: int = 0
    _line_ends_ms: float = 0.0

    def run(self, until_ms: float) -> None:
        while self.now_ms < until_ms:
            number = int(self.now_ms // STEP_MS)
            if number % (TURN_MS // STEP_MS) == 20:
                self._turn(number)
            if self.chance.random() >= 0.03 and not 1_000 <= number % 1_800 < 1_003:
                frame = ev.LineFrame(number + 2, number + 1, 135 + STEP_MS * number, FRAME)
                self._happen(frame)
            while self._due and self._due[0][0] <= self.now_ms:
                self._happen(heapq.heappop(self._due)[2])
            self._happen(ev.Tick())
            self.now_ms += STEP_MS

    def _turn(self, number: int) -> None:
        """The caller speaks for 3 s; every third time they speak again over the reply."""
        for item, after_ms in ((f"u{number}", 0), (f"v{number}", 5_500))[: 1 + (number % 3 == 1)]:
            start_ms, at_ms = int(self.inbound.fed_ms) + after_ms, self.now_ms + after_ms
            self._at(at_ms, ev.SpeechStarted(item, start_ms))
            self._at(at_ms + 3_000, ev.SpeechStopped(item, start_ms + 3_000))
            self._at(at_ms + 3_000, ev.TurnCommitted(item))
            self._at(at_ms + 3_200, ev.TranscriptDone(item, f"question {number}"))

    def _at(self, at_ms: float, event: ev.Event) -> None:
        self._order += 1
        heapq.heappush(self._due, (at_ms, self._order, event))

    def _happen(self, event: ev.Event) -> None:
        if isinstance(event, ev.ModelReady):
            self.inbound = Inbound()  # a session counts from zero
        for command in self.core.receive(event, self.now_ms):
            self.counts[type(command)] = self.counts.get(type(command), 0) + 1
            self._carry_out(command)

    def _carry_out(self, command: do.Command) -> None:
        match command:
            case do.Hear(ulaw, missing_ms):
                self.inbound.frame(ulaw, missing_ms)
            case do.SendMedia(ulaw):
                self._line_ends_ms = max(self._line_ends_ms, self.now_ms) + ulaw_ms(ulaw)
            case do.SendMark(name):
                self._at(self._line_ends_ms + 40, ev.LineMark(name))
            case do.SendClear():
                self._line_ends_ms = self.now_ms
            case do.ReopenModel(delay_ms):
                self._at(self.now_ms + delay_ms + 300, ev.ModelReady("s2"))
            case do.Recall(turn_no):
                self._at(self.now_ms + 30, ev.Recalled(turn_no, Window()))
            case do.StartReply(reply_id):
                self._reply(reply_id)

    def _reply(self, reply_id: str) -> None:
        """Five seconds of speech, twice as fast as it is heard."""
        self.outbound.drop()
        for part in range(25):
            at_ms = self.now_ms + 300 + 100 * part
            self._at(at_ms, ev.ReplyText(reply_id, "some words "))
            self._at(at_ms, ev.ReplyAudio(reply_id, self.outbound.feed(SPOKEN)))
        self._at(self.now_ms + 2_900, ev.ReplyDone(reply_id, ev.ReplyStatus.COMPLETED))


@pytest.fixture
def hour() -> Hour:
    business = clinic("max_call_minutes: 5", "max_call_minutes: 120")
    hour = Hour(CallCore(CallSetup("CA1", business, engine.start(business), "Hello."), 0.0))
    hour._happen(ev.ModelReady("s1"))
    return hour


def test_an_hour_long_call_leaks_nothing(hour: Hour) -> None:
    held: dict[int, int] = {}
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for minute in range(20, 61, 20):
            hour.run(minute * MINUTE_MS)
            gc.collect()
            held[minute] = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert not hour.core.is_over
    assert hour.counts[do.ReopenModel] == 1  # before the hour that a provider gives a session
    assert hour.counts[do.CommitExchange] > 180
    assert hour.counts[do.SendClear] > 50
    assert hour.core.reception.lost_ms > 90_000
    assert max(held.values()) < MIB * 3 / 4, held  # of which frames this long take 0.2 MiB in the filters
    # What is bounded may still fill up: holes and stalls, 256 of each.
    assert held[60] <= held[20] + MIB / 16, held
