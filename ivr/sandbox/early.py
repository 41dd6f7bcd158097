"""Words told while the user still speaks, for servers and scripts that are set to do so."""

from ivr.sandbox.brain import HearPlan
from ivr.sandbox.buffer import InputBuffer
from ivr.sandbox.events import TranscriptDelta
from ivr.sandbox.outbox import Listen, Outbox
from ivr.sandbox.pcm import layout, to_pcm16
from ivr.sandbox.shapes import AudioFormat

_MARK = "early:"


class EarlyWords:
    """Of the speech going on. Every `every_ms` of it: a script's next word, or what the ear makes of all so far.

    The ear is believed as far as two hearings in a row agree, and only one runs at a time; what is told is never
    taken back, though the transcript in the end may read otherwise.
    """

    def __init__(self, outbox: Outbox, every_ms: float) -> None:
        self._outbox = outbox
        self._every_ms = every_ms
        self._item_id = ""
        self._plan: HearPlan | None = None
        self._due_ms = 0.0
        self._last: list[str] = []
        self._told: list[str] = []
        self._is_listening = False

    @property
    def on(self) -> bool:
        """Whether any words are told early."""
        return self._every_ms > 0

    def began(self, item_id: str, plan: HearPlan) -> None:
        """Speech began."""
        self._item_id, self._plan = item_id, plan
        self._due_ms = self._every_ms
        self._last, self._told, self._is_listening = [], [], False

    def grew(self, buffer: InputBuffer, audio_format: AudioFormat) -> None:
        """More of the speech is in the buffer."""
        plan = self._plan
        while plan is not None and buffer.speaking and buffer.speech_ms >= self._due_ms:
            self._due_ms += self._every_ms
            if not plan.listen:
                self._tell(plan.text.split()[: len(self._told) + 1])
            elif not self._is_listening:
                self._is_listening = True
                pcm = to_pcm16(buffer.speech(), audio_format)
                self._outbox.do(Listen(_MARK + self._item_id, pcm, layout(audio_format).rate_hz))

    def heard(self, key: str, text: str | None) -> bool:
        """Whether this is the ear's answer to a question of ours."""
        if not key.startswith(_MARK):
            return False
        if key == _MARK + self._item_id and self._plan is not None:
            self._is_listening = False
            now = (text or "").split()
            self._tell(now[: _agreed(now, self._last)])
            self._last = now
        return True

    def ended(self) -> str:
        """The speech is over: no more is told early. Returns what was."""
        self._plan = None
        return " ".join(self._told)

    def _tell(self, words: list[str]) -> None:
        count = len(self._told)
        if len(words) <= count or words[:count] != self._told:
            return
        more = " ".join(words[count:])
        self._told = words
        self._outbox.send(TranscriptDelta(item_id=self._item_id, delta=f" {more}" if count else more))


def _agreed(now: list[str], before: list[str]) -> int:
    """How many words both begin with."""
    for count, (a, b) in enumerate(zip(now, before, strict=False)):
        if a != b:
            return count
    return min(len(now), len(before))
