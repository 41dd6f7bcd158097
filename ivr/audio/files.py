"""WAV files: any PCM width, rate and channel count in; 16 bit out."""

import audioop
import sys
import wave
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import soxr

from ivr.errors import CallthreadError


class BadAudioFile(CallthreadError):
    """The file cannot be read as a PCM WAV."""


def read_wav(path: str | Path | BinaryIO, rate_hz: int) -> bytes:
    """The file's sound as PCM16 little-endian mono at `rate_hz`; channels are averaged.

    Raises: `BadAudioFile`; `OSError` if it cannot be opened.
    """
    try:
        source = str(path) if isinstance(path, str | Path) else path
        with wave.open(source, "rb") as wav:
            channels, width, file_rate_hz = wav.getnchannels(), wav.getsampwidth(), wav.getframerate()
            frames = wav.readframes(wav.getnframes())
    except (wave.Error, EOFError) as error:
        raise BadAudioFile(f"{path}: not a PCM WAV file ({error or 'ends too early'})") from error
    if not (channels and width and file_rate_hz):
        raise BadAudioFile(f"{path}: no channels, sample width or rate in its header")
    mono = _samples(frames, width, channels)
    if file_rate_hz != rate_hz and len(mono):
        mono = soxr.resample(mono, file_rate_hz, rate_hz)
    return bytes(np.rint(mono).clip(-32_768, 32_767).astype("<i2").tobytes())


def write_wav(path: str | Path, channels: Sequence[bytes], rate_hz: int) -> None:
    """Write one PCM16 stream per channel; shorter ones are filled up with silence.

    Raises: `OSError`; `ValueError` without channels.
    """
    if not channels:
        raise ValueError("a WAV file needs a channel")
    length = max(len(channel) // 2 for channel in channels)
    interleaved = np.zeros((length, len(channels)), "<i2")
    for column, channel in enumerate(channels):
        samples = np.frombuffer(channel, "<i2", len(channel) // 2)
        interleaved[: len(samples), column] = samples
    with wave.open(str(path), "wb") as wav:
        wav.setnchannels(len(channels))
        wav.setsampwidth(2)
        wav.setframerate(rate_hz)
        wav.writeframes(interleaved.tobytes())


def _samples(frames: bytes, width: int, channels: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """One value a frame, on the scale of 16 bits."""
    whole = frames[: len(frames) - len(frames) % (width * channels)]
    if width == 1:
        whole = audioop.bias(whole, 1, 128)  # 8-bit WAV is unsigned
    elif sys.byteorder == "big":
        whole = audioop.byteswap(whole, width)
    wide = np.frombuffer(audioop.lin2lin(whole, width, 4), np.int32).reshape(-1, channels)
    return np.asarray(wide.mean(axis=1) / 65_536.0)
