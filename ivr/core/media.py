"""The core's view of both audio streams: what to give to the model, and what to send to the line."""

from collections import deque

from ivr.core.arrivals import AS_EXPECTED, Arrivals
from ivr.core.commands import Hear
from ivr.core.events import LineFrame
from ivr.core.network import NetworkState, Reception
from ivr.core.silence import Silence
from ivr.core.tape import InputTape
from ivr.core.units import ULAW_SILENCE, ms_to_ulaw_bytes, ulaw_ms

WAITING_MAX_MS = 5_000
"""How much of what the caller says is kept until the first model session is ready; the oldest goes first (B008)."""
AGAIN_MAX_MS = 30_000
"""The same between two sessions, with what the last one did not understand. Longer turns are rare, and a session that
is to be had comes within 20 s."""
AGAIN_BYTES = ms_to_ulaw_bytes(200)


class InboundMedia:
    """Frames in, `Hear` commands out, once a session is ready; until then they wait."""

    def __init__(self, silence_ms: int, longest_insert_ms: int) -> None:
        """`longest_insert_ms` bounds what is inserted for one hole, however long the silence that ends a turn."""
        self._arrivals = Arrivals()
        self._longest_insert_ms = longest_insert_ms
        self.expect_silence(silence_ms)
        self._session_from_ms = 0.0
        """Where the present session's audio begins on the clock of `Arrivals.audio_ms`."""
        self._waiting: deque[Hear] = deque()
        self._waiting_ms = 0.0
        self._waiting_max_ms = WAITING_MAX_MS
        self._is_ready = False
        self.tape = InputTape()
        self.silence = Silence()

    def receive(self, frame: LineFrame, now_ms: float, *, muted: bool = False) -> Hear | None:
        """What the model is to hear now because of this frame; muted, neither it nor the tape hears anything."""
        arrival = self._arrivals.receive(frame, now_ms)
        if arrival is not AS_EXPECTED and not arrival.usable:
            return None
        hear = Hear(ULAW_SILENCE * len(frame.ulaw) if muted else frame.ulaw, arrival.missing_ms)
        if self._is_ready:
            self.tape.append(hear.ulaw, hear.missing_ms)
        self.silence.frame(arrival, self.tape.length_ms(), ulaw_ms(frame.ulaw), now_ms)
        if self._is_ready:
            return hear
        self._wait(hear)
        return None

    def ready(self) -> list[Hear]:
        """A session is ready: everything that waited, in order."""
        self._is_ready = True
        self.tape.restart()
        self._session_from_ms = self._arrivals.audio_ms - self._waiting_ms
        waited = list(self._waiting)
        self._waiting.clear()
        self._waiting_ms = 0.0
        self.tape.keep_from(0.0)
        for hear in waited:
            self.tape.append(hear.ulaw, hear.missing_ms)
        self.silence.restart(self.tape.length_ms())
        return waited

    def expect_silence(self, silence_ms: int) -> None:
        """D_VAD changed: what is inserted for one hole must stay below it, or it would end the turn by itself."""
        self._arrivals.max_insert_ms = min(max(0, silence_ms - 100), self._longest_insert_ms)

    def lost(self, again_from_ms: float) -> None:
        """The session is gone: keep what comes, behind what it was told from `again_from_ms` on (its audio)."""
        if not self._is_ready:
            return
        self._is_ready = False
        self._waiting_max_ms = AGAIN_MAX_MS
        ulaw = self.tape.cut(again_from_ms, self.tape.length_ms())
        for at in range(0, len(ulaw), AGAIN_BYTES):
            self._wait(Hear(ulaw[at : at + AGAIN_BYTES]))

    def network(self, now_ms: float, window_ms: float) -> NetworkState:
        """The environmental state (paper): what the network did to the audio lately."""
        return self._arrivals.snapshot(now_ms, window_ms)

    @property
    def reception(self) -> Reception:
        """What the network did to the audio of the whole call."""
        return self._arrivals.reception

    def stream_ms(self, session_ms: float) -> float:
        """The model's clock (audio given to the present session) → the caller's: holes have their true length."""
        return self._arrivals.audio_to_stream_ms(self._session_from_ms + session_ms)

    def _wait(self, hear: Hear) -> None:
        self._waiting.append(hear)
        self._waiting_ms += _hear_ms(hear)
        while self._waiting_ms > self._waiting_max_ms:
            self._waiting_ms -= _hear_ms(self._waiting.popleft())


def _hear_ms(hear: Hear) -> float:
    return hear.missing_ms + ulaw_ms(hear.ulaw)
