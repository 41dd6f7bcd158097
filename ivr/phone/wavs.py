"""WAV files as telephone audio."""

import audioop
import io
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soxr

from ivr.phone.line import RATE_HZ


def read_wav(path: Path) -> bytes:
    """A WAV file as µ-law 8 kHz mono. Raises ValueError naming the file if it is not a PCM WAV."""
    try:
        return wav_to_ulaw(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def wav_to_ulaw(data: bytes) -> bytes:
    """A WAV's bytes (8 to 32 bit PCM, any rate and channels) as µ-law 8 kHz mono. Raises ValueError."""
    try:
        with wave.open(io.BytesIO(data)) as file:
            width, rate_hz, channels = file.getsampwidth(), file.getframerate(), file.getnchannels()
            frames = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"not a PCM WAV: {error or 'cut short'}") from error
    if width == 1:
        frames = audioop.bias(frames, 1, -128)  # 8-bit WAVs are unsigned
    pcm = audioop.lin2lin(frames, width, 2) if width != 2 else frames
    samples = np.frombuffer(pcm, dtype="<i2").reshape(-1, channels).mean(axis=1).astype(np.float32)
    return pcm_to_ulaw(samples, rate_hz)


def pcm_to_ulaw(samples: npt.NDArray[np.float32], rate_hz: int) -> bytes:
    """Mono samples in the range of 16-bit integers, at any rate, as µ-law 8 kHz."""
    line = soxr.resample(samples, rate_hz, RATE_HZ) if rate_hz != RATE_HZ else samples
    return audioop.lin2ulaw(np.clip(line, -32_768, 32_767).astype("<i2").tobytes(), 2)
