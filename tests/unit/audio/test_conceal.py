"""Concealment: sounds like what was there, never clicks, falls silent in time."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ivr.audio.conceal import Concealer
from tests.unit.audio.signals import Samples, from_pcm16, snr_db, to_pcm16, tone, voice

FRAME = 160


def through(sound: Samples, lost: set[int], *, told: bool = False) -> Samples:
    """Run frames of 20 ms through, those in `lost` missing; `told`: a hole is concealed knowing what follows."""
    concealer, out, hole_ms = Concealer(), b"", 0
    for no in range(len(sound) // FRAME):
        if no in lost:
            hole_ms += 20
            continue
        frame = to_pcm16(sound[no * FRAME : (no + 1) * FRAME])
        out += concealer.missing(hole_ms, frame if told else b"") + concealer.good(frame)
        hole_ms = 0
    return from_pcm16(out)


def test_without_a_hole_nothing_is_touched() -> None:
    sound = to_pcm16(voice(200))
    concealer = Concealer()
    assert concealer.missing(0) == concealer.missing(-20) == b""
    assert b"".join(concealer.good(sound[at : at + 320]) for at in range(0, len(sound), 320)) == sound


@pytest.mark.parametrize("frequency_hz", [100, 160, 200])
def test_a_periodic_sound_goes_on_as_it_was(frequency_hz: int) -> None:
    """Periods of whole samples: the first 10 ms of a hole are as good as received."""
    sound = tone(frequency_hz, 200) + tone(3 * frequency_hz, 200, peak=6_000)
    got = through(sound, {6})
    hole = slice(6 * FRAME, 6 * FRAME + 80)
    assert snr_db(got[hole], sound[hole]) > 60


def test_a_hole_in_speech_is_better_filled_than_with_silence_or_the_last_frame() -> None:
    sound = voice(1_000, pitch_hz=130)
    lost = {10, 20, 21, 33, 41}
    concealed = through(sound, lost)
    silence, repeated = sound.copy(), sound.copy()
    for no in sorted(lost):
        silence[no * FRAME : (no + 1) * FRAME] = 0
        repeated[no * FRAME : (no + 1) * FRAME] = repeated[(no - 1) * FRAME : no * FRAME]
    assert len(concealed) == len(sound)
    assert snr_db(concealed, sound) > snr_db(silence, sound) + 3
    assert snr_db(concealed, sound) > snr_db(repeated, sound) + 3


def test_the_level_falls_after_10_ms_and_is_nothing_after_60() -> None:
    concealer = Concealer()
    concealer.good(to_pcm16(tone(200, 100)))
    hole = from_pcm16(concealer.missing(100))
    peaks = [float(np.abs(hole[at : at + 40]).max()) for at in range(0, 800, 40)]
    assert peaks[0] == pytest.approx(16_000, rel=0.01)
    assert all(later < earlier for earlier, later in pairwise(peaks[2:12]))
    assert peaks[6] == pytest.approx(16_000 * 0.55, rel=0.1)  # 30-35 ms: 20 % less each 10 ms
    assert not any(hole[480:])


def test_a_hole_told_of_in_parts_is_one_hole() -> None:
    whole, parts = Concealer(), Concealer()
    before, after = to_pcm16(voice(100)), to_pcm16(voice(40, pitch_hz=150))
    for concealer in (whole, parts):
        concealer.good(before)
    assert whole.missing(50) == parts.missing(10) + parts.missing(33) + parts.missing(7)
    assert whole.good(after) == b"".join(parts.good(after[at : at + 46]) for at in range(0, len(after), 46))


@pytest.mark.parametrize("lost", [{5}, {5, 6}, {5, 6, 7, 8, 9}, {5, 7, 9, 11}, set(range(5, 25)), {1, 2}])
@pytest.mark.parametrize("pitch_hz", [75, 118, 190])
@pytest.mark.parametrize("told", [False, True])
def test_nothing_clicks(lost: set[int], pitch_hz: float, told: bool) -> None:
    """No step between neighbours is larger than the sound's own steps, at joins neither."""
    sound = voice(600, pitch_hz=pitch_hz)
    own_step = float(np.abs(np.diff(sound)).max())
    assert float(np.abs(np.diff(through(sound, lost, told=told))).max()) <= 1.25 * own_step


def test_a_voice_that_begins_within_a_hole_is_rebuilt_from_the_frame_that_follows() -> None:
    sound = np.concatenate((np.zeros(200 * 8), voice(200, pitch_hz=110)))
    lost = {10, 11}
    late = slice(11 * FRAME, 12 * FRAME)
    told, alone = through(sound, lost, told=True), through(sound, lost)
    assert not any(alone[late])
    assert np.corrcoef(told[late], sound[late])[0, 1] > 0.8
    np.testing.assert_array_equal(told[12 * FRAME :], np.rint(sound[12 * FRAME :]))


def test_both_ends_of_a_long_hole_sound_and_its_middle_is_silent() -> None:
    hole = slice(5 * FRAME, 20 * FRAME)
    inside = through(tone(200, 600), set(range(5, 20)), told=True)[hole]
    assert not any(inside[480:-480])
    assert np.abs(inside[:80]).max() > 10_000
    assert np.abs(inside[-80:]).max() > 10_000


def test_a_short_following_frame_is_not_enough_and_does_no_harm() -> None:
    before, short = to_pcm16(voice(100)), to_pcm16(voice(10))
    told, alone = Concealer(), Concealer()
    for concealer in (told, alone):
        concealer.good(before)
    assert told.missing(40, short) == alone.missing(40)
    assert told.good(short) == alone.good(short)


def test_silence_stays_silence_and_the_first_frame_may_be_missing() -> None:
    assert not any(through(np.zeros(1_600), {0, 3, 4}))


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 200)), max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_lengths_are_exact_and_nothing_wraps(steps: list[tuple[int, int]], seed: int) -> None:
    noise = np.random.default_rng(seed)
    concealer = Concealer()
    for hole_ms, samples in steps:
        frame = noise.integers(-32_768, 32_768, samples).astype("<i2").tobytes()
        told = frame if hole_ms % 2 else b""
        assert len(concealer.missing(hole_ms, told)) == hole_ms * 16
        assert len(concealer.good(frame)) == len(frame)
