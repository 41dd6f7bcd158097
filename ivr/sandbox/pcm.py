"""The protocol's audio formats as bytes, and tones."""

import audioop
from dataclasses import dataclass

import numpy as np

from ivr.sandbox.shapes import AudioFormat, Pcm, Pcmu

MODEL_RATE_HZ = 24_000
_FULL_SCALE = 32_767.0


@dataclass(frozen=True)
class Layout:
    """How a format lies in memory."""

    rate_hz: int
    sample_bytes: int

    def ms(self, size_bytes: int) -> float:
        """Duration of that many bytes."""
        return size_bytes * 1_000 / (self.rate_hz * self.sample_bytes)

    def size_bytes(self, duration_ms: float) -> int:
        """Whole samples that last `duration_ms`, in bytes."""
        return round(duration_ms * self.rate_hz / 1_000) * self.sample_bytes


def layout(audio_format: AudioFormat) -> Layout:
    """The layout of a format of the protocol."""
    return Layout(MODEL_RATE_HZ, 2) if isinstance(audio_format, Pcm) else Layout(8_000, 1)


def to_pcm16(data: bytes, audio_format: AudioFormat) -> bytes:
    """PCM16 at the format's own rate."""
    if isinstance(audio_format, Pcm):
        return data
    return audioop.ulaw2lin(data, 2) if isinstance(audio_format, Pcmu) else audioop.alaw2lin(data, 2)


def from_pcm24k(pcm: bytes, audio_format: AudioFormat) -> bytes:
    """PCM16 24 kHz in a format of the protocol; to 8 kHz by the mean of three: not for listening pleasure."""
    if isinstance(audio_format, Pcm):
        return pcm
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32)
    whole = samples[: samples.size // 3 * 3].reshape(-1, 3).mean(axis=1)
    narrow = whole.astype("<i2").tobytes()
    return audioop.lin2ulaw(narrow, 2) if isinstance(audio_format, Pcmu) else audioop.lin2alaw(narrow, 2)


@dataclass(frozen=True)
class Tone:
    """A sine that a test can recognise."""

    hz: float
    duration_ms: float
    level_dbfs: float = -20.0
    """RMS level; 0 dBFS is a full-scale square wave."""

    def pcm24k(self) -> bytes:
        """PCM16 24 kHz with 5 ms fades, so that it begins and ends without a click."""
        count = round(self.duration_ms * MODEL_RATE_HZ / 1_000)
        time_s = np.arange(count) / MODEL_RATE_HZ
        amplitude = _FULL_SCALE * np.sqrt(2.0) * 10.0 ** (self.level_dbfs / 20.0)
        fade = np.clip(np.minimum(np.arange(count) + 1, np.arange(count)[::-1] + 1) / 120.0, 0.0, 1.0)
        wave = np.sin(2.0 * np.pi * self.hz * time_s) * fade * amplitude
        pcm: bytes = np.clip(wave, -_FULL_SCALE, _FULL_SCALE).astype("<i2").tobytes()
        return pcm
