"""The measure of concealment: right on what is known, and ours is what the service does."""

import numpy as np
import pytest

from ivr.bench.conceal import Way, measure, not_best, render
from tests.unit.audio.signals import to_pcm16, tone, voice

SPEECH = {"voice": to_pcm16(voice(3_000, pitch_hz=125))}


def frames_of(pcm16: bytes) -> list[bytes]:
    return [pcm16[at : at + 320] for at in range(0, len(pcm16), 320)]


def test_no_loss_changes_nothing_and_is_not_scored() -> None:
    frames = frames_of(to_pcm16(tone(300, 200)))
    for way in Way:
        assert render(frames, [False] * len(frames), way) == b"".join(frames)
    assert measure(SPEECH, {"none": [False]}) == {"none": {}}


def test_each_way_fills_a_hole_as_it_says() -> None:
    frames = [bytes([no]) * 320 for no in range(1, 5)]
    lost = [False, True, True, False]
    kept = [frames[0], frames[3]]
    assert render(frames, lost, Way.SILENCE) == kept[0] + bytes(640) + kept[1]
    assert render(frames, lost, Way.BEFORE) == kept[0] * 3 + kept[1]
    assert render(frames, lost, Way.AFTER) == kept[0] + kept[1] * 3
    for way in (Way.OURS, Way.ONE_SIDED):
        assert len(render(frames, lost, way)) == 4 * 320


def test_a_known_distance() -> None:
    """Silence against white noise: its level over the floor of the measure, whatever the bin."""
    noise = np.random.default_rng(2).normal(0, 3_000, 16_000)
    scores = measure({"noise": to_pcm16(noise)}, {"bursts": [no % 50 >= 20 for no in range(50)]})
    silence = scores["bursts"]["noise"][Way.SILENCE]
    level_db = 20 * np.log10(3_000 / 10.2)  # the floor is that of noise with σ = 10.2
    assert silence.distance_db == pytest.approx(
        level_db - 2.5, abs=4
    )  # −2.5 dB: mean of log of an exponential


def test_ours_is_nearest_on_a_voice_with_scattered_losses() -> None:
    scores = measure(SPEECH, {"scattered": [no % 7 == 3 for no in range(70)]})
    assert not_best(scores) == []
