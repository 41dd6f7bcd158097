"""WAV and trace files of the simulated telephone network."""

import audioop
import wave
from pathlib import Path

import numpy as np
import pytest

from ivr.phone.network import load_trace
from ivr.phone.wavs import read_wav


def _write(path: Path, rate_hz: int, width: int, channels: int) -> None:
    seconds = np.arange(rate_hz // 2) / rate_hz
    pcm = (10_000 * np.sin(2 * np.pi * 700 * seconds)).astype("<i2")
    data = audioop.lin2lin(np.repeat(pcm, channels).tobytes(), 2, width)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(rate_hz)
        file.writeframes(audioop.bias(data, 1, 128) if width == 1 else data)


@pytest.mark.parametrize(
    ("rate_hz", "width", "channels"),
    [(8_000, 2, 1), (16_000, 2, 2), (44_100, 3, 1), (24_000, 4, 1), (8_000, 1, 1)],
)
def test_a_wav_of_any_kind_becomes_telephone_audio(
    tmp_path: Path, rate_hz: int, width: int, channels: int
) -> None:
    _write(tmp_path / "a.wav", rate_hz, width, channels)

    pcm = np.frombuffer(audioop.ulaw2lin(read_wav(tmp_path / "a.wav"), 2), "<i2").astype(float)

    assert abs(len(pcm) - 4_000) <= 1
    middle = pcm[1_000:3_000]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle))))
    assert abs(spectrum.argmax() * 8_000 / len(middle) - 700) <= 4
    assert 9_300 < np.abs(middle).max() < 10_700


@pytest.mark.parametrize("data", [b"", b"not a wav at all", b"RIFF\x00\x00\x00\x00WAVE"])
def test_what_is_no_wav_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(data)

    with pytest.raises(ValueError, match=r"a\.wav: not a PCM WAV"):
        read_wav(tmp_path / "a.wav")


def test_a_trace_of_losses_and_one_of_delays(tmp_path: Path) -> None:
    (tmp_path / "loss.txt").write_text("0\n1\n\n1\n")
    (tmp_path / "lte.delay_ms.txt").write_text("7\n0\n120\n")

    assert load_trace(tmp_path / "loss.txt").lost == (False, True, True)
    assert load_trace(tmp_path / "lte.delay_ms.txt").delay_ms == (7, 0, 120)
    assert load_trace(tmp_path / "loss.txt", numbered_gaps=True).numbered_gaps


@pytest.mark.parametrize(
    ("text", "fault"),
    [("0\n2\n", ":2: 2 is neither"), ("0\n\nx\n", ":3: not a whole"), ("\n", "an empty trace")],
)
def test_a_wrong_trace_is_named_by_its_line(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "loss.txt").write_text(text)

    with pytest.raises(ValueError, match=fault):
        load_trace(tmp_path / "loss.txt")
