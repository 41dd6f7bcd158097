"""What the session has heard: the words of each piece of the user's audio, once they are known."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ivr.sandbox.brain import HearPlan, Outcome
from ivr.sandbox.events import (
    DurationUsage,
    TranscriptCompleted,
    TranscriptDelta,
    TranscriptFailed,
    TranscriptionError,
)
from ivr.sandbox.outbox import Listen, Outbox
from ivr.sandbox.pcm import layout, to_pcm16
from ivr.sandbox.shapes import AudioFormat


@dataclass
class _Sound:
    """A piece of audio being heard. `told`: the client is told, as of a committed turn."""

    plan: HearPlan
    duration_ms: float
    told: bool
    early: str = ""
    """What was told of it while it was spoken."""
    words: str | None = None
    over: bool = False
    waiting: list[Callable[[], None]] = field(default_factory=list)


class Hearing:
    """Keys are item ids, or digests of audio given in an `input`."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._sounds: dict[str, _Sound] = {}

    def listen(
        self,
        key: str,
        audio: bytes,
        audio_format: AudioFormat,
        plan: HearPlan,
        *,
        told: bool,
        early: str = "",
    ) -> None:
        """Begin to hear a piece of audio, unless it was heard already."""
        if key in self._sounds:
            return
        duration_ms = layout(audio_format).ms(len(audio))
        self._sounds[key] = _Sound(plan, duration_ms, told, early)
        if plan.listen:
            self._outbox.do(Listen(key, to_pcm16(audio, audio_format), layout(audio_format).rate_hz))
        elif plan.outcome is not Outcome.NEVER:
            text = plan.text if plan.outcome is Outcome.COMPLETED else None
            self._outbox.later(plan.delay_ms, lambda: self.heard(key, text))

    def heard(self, key: str, text: str | None) -> None:
        """The words of a piece of audio; None: they could not be found."""
        sound = self._sounds.get(key)
        if sound is None or sound.over:
            return
        sound.over = True
        sound.words = text
        if sound.told:
            self._tell(key, sound, text)
        waiting, sound.waiting = sound.waiting, []
        for action in waiting:
            action()

    def knows(self, key: str) -> bool:
        """Whether this audio was heard, or is being heard."""
        return key in self._sounds

    def words(self, key: str) -> str:
        """The words as far as they are known; empty if not (yet)."""
        sound = self._sounds.get(key)
        return (sound.words or "") if sound else ""

    def pending(self, key: str) -> bool:
        """Whether words of this audio may still come."""
        sound = self._sounds.get(key)
        return sound is not None and not sound.over

    def when_heard(self, key: str, action: Callable[[], None]) -> None:
        """Have something done when the words are there."""
        self._sounds[key].waiting.append(action)

    def forget(self, key: str) -> None:
        """The item is gone; who waits for its words waits no longer."""
        sound = self._sounds.pop(key, None)
        for action in sound.waiting if sound is not None else ():
            action()

    def _tell(self, key: str, sound: _Sound, text: str | None) -> None:
        if text is None:
            error = TranscriptionError(
                type="server_error",
                code="audio_unintelligible",
                message="The audio could not be transcribed.",
            )
            self._outbox.send(TranscriptFailed(item_id=key, error=error))
            return
        usage = DurationUsage(seconds=round(sound.duration_ms / 1_000, 3))
        for _ in range(sound.plan.times):
            rest = text.removeprefix(sound.early) if text.startswith(sound.early) else ""
            if rest:
                self._outbox.send(TranscriptDelta(item_id=key, delta=rest))
            self._outbox.send(TranscriptCompleted(item_id=key, transcript=text, usage=usage))
