"""Recorded speech through the way in, whole and with recorded losses."""

import numpy as np
import pytest

from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.audio.inbound import Inbound
from ivr.audio.resample import Downsampler
from ivr.bench.conceal import Scores, Way, load_losses, load_speech, mean_db, measure, not_best, render
from tests.data.recorded import folder

SPEECH = load_speech(folder("speech"))
LOSSES = load_losses(folder("loss"))
DELAY_SAMPLES = 23
"""Of both filters together, at 8 kHz."""


def frames_of(pcm16: bytes) -> list[bytes]:
    """Whole frames of 20 ms, as they sound after G.711."""
    heard = ulaw_to_pcm16(pcm16_to_ulaw(pcm16))
    return [heard[at : at + 320] for at in range(0, len(heard) - 319, 320)]


def samples(pcm16: bytes) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.frombuffer(pcm16, "<i2").astype(np.float64)


@pytest.fixture(scope="module")
def scores() -> Scores:
    return measure(SPEECH, LOSSES)


@pytest.mark.parametrize("trace", sorted(LOSSES))
def test_concealed_speech_is_nearer_than_silence_and_repeated_frames(scores: Scores, trace: str) -> None:
    ours = mean_db(scores[trace], Way.OURS)
    for way in (Way.SILENCE, Way.BEFORE, Way.AFTER, Way.ONE_SIDED):
        assert ours <= mean_db(scores[trace], way) - 0.5


def test_concealed_speech_is_nearest_nearly_everywhere(scores: Scores) -> None:
    pairs = sum(len(by_clip) for by_clip in scores.values())
    assert len(not_best(scores)) <= 0.15 * pairs


@pytest.mark.parametrize("trace", sorted(LOSSES))
def test_concealment_does_not_click(trace: str) -> None:
    """No step between samples is much larger than the largest of the recording itself."""
    losses = LOSSES[trace]
    for name, pcm16 in SPEECH.items():
        frames = frames_of(pcm16)
        lost = [0 < no < len(frames) - 1 and losses[no % len(losses)] for no in range(len(frames))]
        own = np.abs(np.diff(samples(b"".join(frames)))).max()
        assert np.abs(np.diff(samples(render(frames, lost, Way.OURS)))).max() <= 1.25 * own, name


@pytest.mark.parametrize("name", sorted(SPEECH))
def test_speech_reaches_the_model_whole(name: str) -> None:
    """8 → 24 kHz and back: what the model gets holds all that the line carried."""
    inbound, back = Inbound(), Downsampler()
    frames = frames_of(SPEECH[name])
    given = b"".join(inbound.frame(pcm16_to_ulaw(frame)) for frame in frames)
    assert len(given) == 3 * 320 * len(frames)
    assert inbound.fed_ms == 20 * len(frames)
    returned = samples(back.feed(given))[DELAY_SAMPLES:]
    sent = samples(b"".join(frames))[: len(returned)]
    band = slice(*(len(sent) * hz // 8_000 for hz in (300, 3_300)))
    spectrum, error = np.fft.rfft(sent)[band], np.fft.rfft(returned - sent)[band]
    assert 10 * np.log10(np.sum(np.abs(spectrum) ** 2) / np.sum(np.abs(error) ** 2)) > 40


@pytest.mark.parametrize("trace", sorted(LOSSES))
def test_the_model_s_clock_runs_on_over_holes(trace: str) -> None:
    frames = [frame for pcm16 in SPEECH.values() for frame in frames_of(pcm16)]
    losses = LOSSES[trace]
    inbound, hole_ms, given = Inbound(), 0, 0
    for no, frame in enumerate(frames):
        if 0 < no < len(frames) - 1 and losses[no % len(losses)]:
            hole_ms += 20
            continue
        given += len(inbound.frame(pcm16_to_ulaw(frame), hole_ms))
        hole_ms = 0
    assert given == 3 * 320 * len(frames)
    assert inbound.fed_ms == 20 * len(frames)
