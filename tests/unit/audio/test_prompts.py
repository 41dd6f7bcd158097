"""Prompts from files: any rate and channels, once, without header."""

import os
from pathlib import Path

import pytest

from ivr.audio.files import BadAudioFile, write_wav
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.audio.prompts import PromptCache
from tests.unit.audio.signals import from_pcm16, snr_db, to_pcm16, tone


@pytest.mark.parametrize("rate_hz", [8_000, 16_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_rate_and_channel_count_becomes_raw_line_audio(
    tmp_path: Path, rate_hz: int, channels: int
) -> None:
    path = tmp_path / "prompt.wav"
    write_wav(path, [to_pcm16(tone(440, 500, rate_hz))] * channels, rate_hz)
    ulaw = PromptCache().ulaw(path)
    assert len(ulaw) == pytest.approx(4_000, abs=1)
    assert b"RIFF" not in ulaw
    inner = slice(400, 3_600)  # a resampler rings at the cut ends
    heard = from_pcm16(ulaw_to_pcm16(ulaw))[:4_000]
    assert snr_db(heard[inner], tone(440, 500)[: len(heard)][inner]) > 30  # µ-law's own noise


def test_a_file_is_converted_once_and_again_only_when_it_changes(tmp_path: Path) -> None:
    path, cache = tmp_path / "prompt.wav", PromptCache()
    write_wav(path, [to_pcm16(tone(440, 100))], 8_000)
    first = cache.ulaw(path)
    assert cache.ulaw(str(path)) is first
    write_wav(path, [to_pcm16(tone(880, 200))], 8_000)
    os.utime(path, ns=(1, 1))
    assert len(cache.ulaw(path)) == 1_600


def test_the_least_used_is_forgotten_first(tmp_path: Path) -> None:
    cache = PromptCache(max_bytes=2_000)
    paths = [tmp_path / f"{no}.wav" for no in range(3)]
    for path in paths:
        write_wav(path, [to_pcm16(tone(440, 100))], 8_000)
    one, two = cache.ulaw(paths[0]), cache.ulaw(paths[1])
    assert cache.ulaw(paths[0]) is one
    cache.ulaw(paths[2])
    assert cache.ulaw(paths[0]) is one
    assert cache.ulaw(paths[1]) is not two


def test_a_prompt_larger_than_the_cache_is_played_but_not_kept(tmp_path: Path) -> None:
    path, cache = tmp_path / "long.wav", PromptCache(max_bytes=100)
    write_wav(path, [to_pcm16(tone(440, 100))], 8_000)
    assert len(cache.ulaw(path)) == 800
    assert cache.ulaw(path) is not cache.ulaw(path)


def test_what_is_no_wav_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "prompt.wav"
    path.write_bytes(b"ID3 no wav at all")
    with pytest.raises(BadAudioFile):
        PromptCache().ulaw(path)
    with pytest.raises(FileNotFoundError):
        PromptCache().ulaw(tmp_path / "missing.wav")
