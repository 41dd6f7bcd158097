"""Sounds the tests make themselves. PCM16 little-endian mono."""

import numpy as np
from numpy.typing import NDArray

Samples = NDArray[np.float64]


def tone(frequency_hz: float, duration_ms: int, rate_hz: int = 8_000, peak: float = 16_000) -> Samples:
    at = np.arange(duration_ms * rate_hz // 1_000) / rate_hz
    return np.asarray(peak * np.sin(2 * np.pi * frequency_hz * at + 0.3))


def voice(duration_ms: int, pitch_hz: float = 120.0, rate_hz: int = 8_000) -> Samples:
    """A vowel: harmonics of a slowly moving pitch below formant-like weights."""
    at = np.arange(duration_ms * rate_hz // 1_000) / rate_hz
    phase = 2 * np.pi * np.cumsum(pitch_hz * (1 + 0.03 * np.sin(2 * np.pi * 2.5 * at))) / rate_hz
    weights = ((1, 1.0), (2, 0.8), (3, 0.5), (5, 0.6), (6, 0.4), (10, 0.2), (18, 0.1))
    return np.asarray(4_000 * sum(weight * np.sin(no * phase) for no, weight in weights))


def to_pcm16(samples: Samples) -> bytes:
    return np.rint(samples).astype("<i2").tobytes()


def from_pcm16(pcm16: bytes) -> Samples:
    return np.frombuffer(pcm16, "<i2").astype(np.float64)


def snr_db(signal: Samples, reference: Samples) -> float:
    noise = float(np.sum((signal - reference) ** 2))
    return float(10 * np.log10(np.sum(reference**2) / max(noise, 1e-9)))
