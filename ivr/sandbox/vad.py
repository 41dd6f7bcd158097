"""Turn detection by energy, on audio time.

A window of 20 ms is voiced when its RMS level is above the threshold: 0.5 is −50 dBFS, each 0.1 is 4 dB.
Speech begins when 3 of the last 5 windows are voiced (60 ms of voice: a click alone does not count) and ends
when no window was voiced for `silence_ms`.
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

WINDOW_MS = 20
_START_WINDOWS = 3
_START_SPAN = 5
_FULL_SCALE = 32_768.0


def threshold_dbfs(threshold: float) -> float:
    """Level in dBFS (RMS; 0 is a full-scale square wave) above which a window is voiced."""
    return -50.0 + (threshold - 0.5) * 40.0


def level_dbfs(pcm: bytes) -> float:
    """RMS level of PCM16 audio in dBFS; −inf for digital silence or no audio."""
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float64)
    if samples.size == 0:
        return float("-inf")
    power = float(np.mean(samples * samples)) / _FULL_SCALE**2
    return 10.0 * float(np.log10(power)) if power > 0 else float("-inf")


@dataclass(frozen=True)
class Started:
    """Speech began at `audio_start_ms`, prefix padding included."""

    audio_start_ms: int


@dataclass(frozen=True)
class Stopped:
    """Speech ended; `audio_end_ms` includes the silence that proved it."""

    audio_end_ms: int


@dataclass(frozen=True)
class VadSettings:
    """`turn_detection` of a session."""

    threshold: float
    prefix_ms: int
    silence_ms: int


class EnergyVad:
    """Fed one window of `WINDOW_MS` at a time; its clock is the audio it was given."""

    def __init__(self, settings: VadSettings, position_ms: float = 0) -> None:
        self.settings = settings
        self.speaking = False
        self._position_ms = position_ms
        self._recent: deque[bool] = deque(maxlen=_START_SPAN)
        self._last_voiced_end_ms = position_ms

    def feed(self, window_pcm: bytes) -> Started | Stopped | None:
        """One window of PCM16, any rate. At most one thing happens in a window."""
        return self.feed_level(level_dbfs(window_pcm))

    def feed_level(self, level: float) -> Started | Stopped | None:
        """One window of which only its level in dBFS is known."""
        voiced = level > threshold_dbfs(self.settings.threshold)
        self._position_ms += WINDOW_MS
        if voiced:
            self._last_voiced_end_ms = self._position_ms
        return self._while_speaking() if self.speaking else self._while_silent(voiced)

    def reset(self, position_ms: float) -> None:
        """Forget speech in progress and go on at `position_ms` of audio time."""
        self.speaking = False
        self._position_ms = position_ms
        self._recent.clear()

    def _while_silent(self, voiced: bool) -> Started | None:
        self._recent.append(voiced)
        if sum(self._recent) < _START_WINDOWS:
            return None
        windows_since_first = len(self._recent) - self._recent.index(True)
        first_voiced_ms = self._position_ms - windows_since_first * WINDOW_MS
        self.speaking = True
        self._recent.clear()
        return Started(max(0, round(first_voiced_ms - self.settings.prefix_ms)))

    def _while_speaking(self) -> Stopped | None:
        end_ms = self._last_voiced_end_ms + self.settings.silence_ms
        if self._position_ms < end_ms:
            return None
        self.speaking = False
        return Stopped(round(end_ms))
