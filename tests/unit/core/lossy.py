"""A world whose line loses and delays frames, and whose model detects turns by energy on the audio it is given.

The line is as Twilio's is thought to be: over a hole timestamps jump and nothing is numbered; what is late comes in a
burst. Lost audio is given to the model as silence, as far as the core wants it inserted. Transcripts are what was
said, whole, whatever was lost of it.
"""

from collections.abc import Callable
from typing import Any

from callflows.model import Business, Orchestration
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import ULAW_SILENCE
from tests.unit.core.harness import SPEECH, START_MS, VAD_MS, Answer, World, clinic


def orchestrated(mode: Orchestration | str) -> Business:
    """The clinic, under an orchestration."""
    return clinic("start: main", f"orchestration: {mode}\nstart: main")


class LossyWorld(World):
    """`speaks` in place of `says`; `lose` and `stall` change the line from now on."""

    def __init__(self, *answers: Answer, mode: Orchestration | str = "joint", **more: Any) -> None:
        self.words_after_ms = 300.0
        """How long after a turn its words come."""
        self._silence_ms = 500
        self._voiced_ms = self._silent_ms = self._position_ms = 0.0
        self._is_speech = False
        self._said: list[str] = []
        self._lost_until_ms = self._stalled_until_ms = 0.0
        self._slot = 0
        self._late: list[ev.LineFrame] = []
        self.heard: list[tuple[float, ev.Event]] = []
        """What the model told of the caller's voice, and when, ms since the start of the call."""
        super().__init__(*answers, business=orchestrated(mode), **more)

    # -- the test's hands ---------------------------------------------------------------------------------------

    def speaks(self, words: str, lasting_ms: float = 1_000) -> None:
        """The caller speaks from now on."""
        self._said.append(words)
        self._talks_until_ms = self.now_ms + lasting_ms

    def lose(self, lasting_ms: float) -> None:
        """All frames from now on are lost, for so long."""
        self._lost_until_ms = self.now_ms + lasting_ms

    def stall(self, lasting_ms: float) -> None:
        """Frames from now on are late: they come together after so long."""
        self._stalled_until_ms = self.now_ms + lasting_ms

    def run_until(self, is_so: Callable[[], object], at_most_ms: float = 20_000) -> float:
        """Let time pass until something is so; returns how long it took."""
        began_ms = self.now_ms
        while not is_so():
            assert self.now_ms - began_ms < at_most_ms, "it never came so"
            self.run(20)
        return self.now_ms - began_ms

    def audible_ms(self) -> list[float]:
        """When replies to the caller became audible, ms since the start of the call."""
        greeting = 1
        began = [at for at, ulaw in self.phone.played if int.from_bytes(ulaw[2:4]) == 0]
        return [at - START_MS for at in began][greeting:]

    def silences(self) -> list[int]:
        """D_VAD as the model was told, in order."""
        return [update.config.silence_ms for update in self.of(do.UpdateSession)]

    # -- the line -----------------------------------------------------------------------------------------------

    def _frame(self) -> None:
        if not self._is_line_up:
            return
        byte = bytes([SPEECH]) if self.now_ms < self._talks_until_ms else ULAW_SILENCE
        timestamp_ms, self._slot = self._slot * 20, self._slot + 1
        if self.now_ms >= self._lost_until_ms:
            self._frames += 1
            self._late.append(ev.LineFrame(self._frames + 1, self._frames, timestamp_ms, byte * 160))
        if self.now_ms >= self._stalled_until_ms:
            late, self._late = self._late, []
            for frame in late:
                self.happen(frame)
        self._at(self.now_ms + 20, ev.Tick(), "frame")

    # -- the model's ear ----------------------------------------------------------------------------------------

    def _carry_out(self, command: do.Command) -> None:
        super()._carry_out(command)
        match command:
            case do.UpdateSession(config):
                self._silence_ms = config.silence_ms
            case do.Hear(ulaw, missing_ms):
                self._hear(missing_ms, voiced=False)
                self._hear(len(ulaw) / 8, voiced=ulaw[0] == SPEECH)

    def _hear(self, lasting_ms: float, *, voiced: bool) -> None:
        for _ in range(int(lasting_ms // 20)):
            self._position_ms += 20
            self._voiced_ms = self._voiced_ms + 20 if voiced else 0.0
            self._silent_ms = 0.0 if voiced else self._silent_ms + 20
            if not self._is_speech and self._voiced_ms >= VAD_MS:
                self._begin()
            elif self._is_speech and self._silent_ms >= self._silence_ms:
                self._end()

    def _begin(self) -> None:
        self._is_speech = True
        self._items += 1
        start_ms = max(0, int(self._position_ms) - VAD_MS - self.setup.tuning.prefix_ms)
        self._tell(ev.SpeechStarted(f"v{self._items}", start_ms))

    def _tell(self, event: ev.Event, after_ms: float = 0.0) -> None:
        self.heard.append((self.now_ms + after_ms - START_MS, event))
        self._at(self.now_ms + after_ms, event, "vad")

    def _end(self) -> None:
        self._is_speech = False
        item = f"v{self._items}"
        words, self._said = " ".join(self._said), []
        self._tell(ev.SpeechStopped(item, int(self._position_ms)))
        self._tell(ev.TurnCommitted(item))
        self._tell(ev.TranscriptDone(item, words), self.words_after_ms)
