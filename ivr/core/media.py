"""The core's view of both audio streams: what to give to the model, and what to send to the line."""

from collections import deque

from ivr.core.arrivals import Arrivals, NetworkState
from ivr.core.commands import Hear
from ivr.core.events import LineFrame
from ivr.core.tape import InputTape
from ivr.core.units import ulaw_ms

WAITING_MAX_MS = 5_000
"""How much of what the caller says is kept while no model session is ready; the oldest goes first (B008)."""


class InboundMedia:
    """Frames in, `Hear` commands out, once a session is ready; until then they wait."""

    def __init__(self, silence_ms: int) -> None:
        self._arrivals = Arrivals()
        self.expect_silence(silence_ms)
        self._waiting: deque[Hear] = deque()
        self._waiting_ms = 0.0
        self._is_ready = False
        self.tape = InputTape()

    def receive(self, frame: LineFrame, now_ms: float) -> list[Hear]:
        """What the model is to hear because of this frame."""
        arrival = self._arrivals.receive(frame, now_ms)
        if not arrival.usable:
            return []
        hear = Hear(frame.ulaw, arrival.missing_ms)
        if self._is_ready:
            self.tape.append(hear.ulaw, hear.missing_ms)
            return [hear]
        self._wait(hear)
        return []

    def ready(self) -> list[Hear]:
        """A session is ready: everything that waited, in order."""
        self._is_ready = True
        self.tape.restart()
        waited = list(self._waiting)
        self._waiting.clear()
        self._waiting_ms = 0.0
        for hear in waited:
            self.tape.append(hear.ulaw, hear.missing_ms)
        return waited

    def expect_silence(self, silence_ms: int) -> None:
        """D_VAD changed: what is inserted for one hole must stay below it, or it would end the turn by itself."""
        self._arrivals.max_insert_ms = max(0, silence_ms - 100)

    def lost(self) -> None:
        """The session is gone: keep what comes."""
        self._is_ready = False

    def network(self, now_ms: float, window_ms: float) -> NetworkState:
        """The environmental state (paper): what the network did to the audio lately."""
        return self._arrivals.snapshot(now_ms, window_ms)

    def _wait(self, hear: Hear) -> None:
        self._waiting.append(hear)
        self._waiting_ms += ulaw_ms(hear.ulaw)
        while self._waiting_ms > WAITING_MAX_MS:
            self._waiting_ms -= ulaw_ms(self._waiting.popleft().ulaw)
