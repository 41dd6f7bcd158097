"""The caller's speaking rate, and the speed that goes with it (paper, paralinguistic state and speed mapping)."""

from collections import deque
from dataclasses import dataclass

KEEP = 10
MIN_UTTERANCE_MS = 500
PLAUSIBLE_WPM: dict[str, tuple[float, float]] = {"en": (100.0, 300.0)}
"""Bands in words a minute by language. A language without one has no word rate: adaptation is off for it."""


@dataclass(frozen=True, slots=True)
class SpeedProfile:
    """How a voice's `speed` setting maps to words a minute; measured per voice. Default: the paper's provider."""

    speed_min: float = 0.8
    speed_max: float = 1.5
    wpm_min: float = 142.4
    wpm_max: float = 267.0

    def speed_for(self, wpm: float) -> float:
        """s(r) = clip(s_min + (r − r_min)/(r_max − r_min) · (s_max − s_min), s_min, s_max)."""
        share = (wpm - self.wpm_min) / (self.wpm_max - self.wpm_min)
        speed = self.speed_min + share * (self.speed_max - self.speed_min)
        return min(self.speed_max, max(self.speed_min, speed))


class SpeakingRate:
    """Linearly weighted mean of the last ten plausible utterances, r̂ = Σ i·rᵢ / Σ i, newest heaviest."""

    def __init__(self, language: str) -> None:
        self._band = PLAUSIBLE_WPM.get(language.split("-")[0].lower())
        self._rates_wpm: deque[float] = deque(maxlen=KEEP)

    def add(self, words: int, duration_ms: float) -> None:
        """Take an utterance in, unless it is too short or not plausible for the language."""
        if self._band is None or duration_ms < MIN_UTTERANCE_MS:
            return
        wpm = words * 60_000 / duration_ms
        if self._band[0] <= wpm <= self._band[1]:
            self._rates_wpm.append(wpm)

    def estimate_wpm(self) -> float | None:
        """Words a minute, or `None` while nothing plausible was heard."""
        if not self._rates_wpm:
            return None
        weights = range(1, len(self._rates_wpm) + 1)
        return sum(i * r for i, r in zip(weights, self._rates_wpm, strict=True)) / sum(weights)
