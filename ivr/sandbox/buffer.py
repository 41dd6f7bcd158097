"""The input audio buffer: what the user sent and nobody committed yet, with turn detection over it."""

from dataclasses import dataclass

from ivr.sandbox.pcm import layout, to_pcm16
from ivr.sandbox.shapes import AudioFormat, ServerVad
from ivr.sandbox.vad import WINDOW_MS, EnergyVad, Started, Stopped, VadSettings

_MARGIN_MS = 200
"""Kept beyond the prefix padding: the start is decided up to 100 ms after it happened."""


@dataclass(frozen=True)
class Turn:
    """Speech that ended, and its audio in the buffer's format."""

    stopped: Stopped
    audio: bytes


class InputBuffer:
    """Counts the session's audio time: `position_ms` never goes back, whatever is committed or cleared."""

    def __init__(self, audio_format: AudioFormat, detection: ServerVad | None) -> None:
        self._format = audio_format
        self._layout = layout(audio_format)
        self._audio = bytearray()
        self._base_ms = 0.0
        self._judged_bytes = 0
        self._speech_start_ms = 0
        self._vad: EnergyVad | None = None
        self.detect(detection)

    @property
    def position_ms(self) -> float:
        """Audio time: how much was ever appended."""
        return self._base_ms + self._layout.ms(len(self._audio))

    @property
    def pending_ms(self) -> float:
        """How much audio waits to be committed."""
        return self._layout.ms(len(self._audio))

    @property
    def speaking(self) -> bool:
        """Whether detected speech is going on."""
        return self._vad is not None and self._vad.speaking

    @property
    def speech_ms(self) -> float:
        """How long the detected speech has been going on, padding included."""
        return self.position_ms - self._speech_start_ms

    def speech(self) -> bytes:
        """The detected speech so far."""
        return self._cut(round(self.position_ms))

    def detect(self, detection: ServerVad | None) -> None:
        """Put turn-detection settings in force; speech in progress goes on under the new ones."""
        if detection is None:
            self._vad = None
            return
        settings = VadSettings(
            detection.threshold, detection.prefix_padding_ms, detection.silence_duration_ms
        )
        if self._vad is None:
            self._judged_bytes = len(self._audio)
            self._vad = EnergyVad(settings, self.position_ms)
        else:
            self._vad.settings = settings

    def reformat(self, audio_format: AudioFormat) -> None:
        """Take audio in another format from now on. What was pending is forgotten."""
        self.clear()
        self._format = audio_format
        self._layout = layout(audio_format)

    def append(self, data: bytes) -> list[Started | Turn]:
        """Add audio; returns what turn detection found in it, in order."""
        self._audio += data
        found: list[Started | Turn] = []
        vad = self._vad
        if vad is None:
            return found
        window_bytes = self._layout.size_bytes(WINDOW_MS)
        while len(self._audio) - self._judged_bytes >= window_bytes:
            window = bytes(self._audio[self._judged_bytes : self._judged_bytes + window_bytes])
            self._judged_bytes += window_bytes
            change = vad.feed(to_pcm16(window, self._format))
            if isinstance(change, Started):
                self._speech_start_ms = change.audio_start_ms
                found.append(change)
            elif isinstance(change, Stopped):
                found.append(Turn(change, self._cut(change.audio_end_ms)))
        if not vad.speaking:
            self._forget_before(self.position_ms - vad.settings.prefix_ms - _MARGIN_MS)
        return found

    def take(self) -> bytes:
        """All that is pending; the buffer is empty then and speech in progress is over."""
        audio = bytes(self._audio)
        self.clear()
        return audio

    def clear(self) -> None:
        """Forget what is pending."""
        self._base_ms = self.position_ms
        self._audio.clear()
        self._judged_bytes = 0
        if self._vad is not None:
            self._vad.reset(self._base_ms)

    def _cut(self, end_ms: int) -> bytes:
        """Audio of the speech just ended. It stays in the buffer: the next prefix may reach into it."""
        start = max(0, self._layout.size_bytes(self._speech_start_ms - self._base_ms))
        return bytes(self._audio[start : self._layout.size_bytes(end_ms - self._base_ms)])

    def _forget_before(self, position_ms: float) -> None:
        surplus = min(self._layout.size_bytes(position_ms - self._base_ms), self._judged_bytes)
        if surplus > 0:
            del self._audio[:surplus]
            self._base_ms += self._layout.ms(surplus)
            self._judged_bytes -= surplus
