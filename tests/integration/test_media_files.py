"""WAV files, really written and read."""

import wave
from pathlib import Path

import numpy as np
import pytest

from ivr.audio.files import BadAudioFile, read_wav, write_wav
from tests.unit.audio.signals import from_pcm16, snr_db, to_pcm16, tone


def test_a_stereo_file_is_written_and_read_as_the_mean_of_its_channels(tmp_path: Path) -> None:
    left, right = to_pcm16(tone(440, 300)), to_pcm16(tone(440, 200, peak=8_000))
    write_wav(tmp_path / "call.wav", [left, right], 8_000)
    with wave.open(str(tmp_path / "call.wav")) as wav:
        assert (wav.getnchannels(), wav.getframerate(), wav.getnframes()) == (2, 8_000, 2_400)
    expected = from_pcm16(left) / 2
    expected[:1_600] += from_pcm16(right) / 2
    assert np.abs(from_pcm16(read_wav(tmp_path / "call.wav", 8_000)) - expected).max() <= 1


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 44_100, 48_000])
def test_any_rate_is_converted(tmp_path: Path, rate_hz: int) -> None:
    write_wav(tmp_path / "a.wav", [to_pcm16(tone(1_000, 500, rate_hz=rate_hz))], rate_hz)
    got = from_pcm16(read_wav(tmp_path / "a.wav", 24_000))
    expected = tone(1_000, 500, rate_hz=24_000)
    assert abs(len(got) - len(expected)) <= 2
    middle = slice(2_000, 10_000)
    assert snr_db(got[middle], expected[middle]) > 60


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_any_sample_width_is_read(tmp_path: Path, width: int) -> None:
    samples = np.rint(tone(500, 100) / 256) * 256
    scaled = samples.astype(np.int64) << 16 >> (8 * (4 - width))
    data = (scaled + 128).astype(np.uint8).tobytes() if width == 1 else b""
    for value in scaled.tolist() if width > 1 else []:
        data += int(value).to_bytes(width, "little", signed=True)
    with wave.open(str(tmp_path / "w.wav"), "wb") as wav:
        wav.setparams((1, width, 8_000, 0, "NONE", ""))
        wav.writeframes(data)
    assert from_pcm16(read_wav(tmp_path / "w.wav", 8_000)).tolist() == samples.tolist()


@pytest.mark.parametrize("content", [b"", b"RIFF", b"not audio at all, but long enough to be looked at"])
def test_what_is_no_wav_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.wav").write_bytes(content)
    with pytest.raises(BadAudioFile, match=r"bad\.wav"):
        read_wav(tmp_path / "bad.wav", 8_000)


def test_an_empty_file_is_no_sound_and_no_channel_is_an_error(tmp_path: Path) -> None:
    write_wav(tmp_path / "empty.wav", [b""], 16_000)
    assert read_wav(tmp_path / "empty.wav", 8_000) == b""
    with pytest.raises(ValueError, match="channel"):
        write_wav(tmp_path / "none.wav", [], 8_000)
