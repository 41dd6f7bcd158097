"""Turn detection on tones whose times are known."""

import pytest

from ivr.sandbox.buffer import InputBuffer, Turn
from ivr.sandbox.pcm import Tone, from_pcm24k
from ivr.sandbox.shapes import Pcm, Pcmu, ServerVad
from ivr.sandbox.vad import Started, Stopped, level_dbfs, threshold_dbfs

MS = 48  # bytes of PCM16 24 kHz


def silence(duration_ms: int) -> bytes:
    return bytes(MS * duration_ms)


def tone(duration_ms: int, level_dbfs: float = -20.0) -> bytes:
    return Tone(500, duration_ms, level_dbfs).pcm24k()


def feed(buffer: InputBuffer, pcm: bytes, piece: int = 997) -> list[Started | Turn]:
    """In pieces that fit no window."""
    found: list[Started | Turn] = []
    for at in range(0, len(pcm), piece):
        found += buffer.append(pcm[at : at + piece])
    return found


def test_the_thresholds_are_the_papers() -> None:
    assert threshold_dbfs(0.5) == -50.0
    assert threshold_dbfs(0.6) == pytest.approx(-46.0)
    assert threshold_dbfs(0.3) == pytest.approx(-58.0)


def test_level_is_rms_against_a_full_scale_square_wave() -> None:
    assert level_dbfs(b"\x00\x40" * 480) == pytest.approx(-6.02, abs=0.01)
    assert level_dbfs(tone(400, -30.0)[4_800:-4_800]) == pytest.approx(-30.0, abs=0.1)
    assert level_dbfs(silence(20)) == level_dbfs(b"") == float("-inf")


def test_start_includes_the_padding_and_end_the_silence() -> None:
    buffer = InputBuffer(Pcm(), ServerVad(prefix_padding_ms=300, silence_duration_ms=500))
    started, turn = feed(buffer, silence(1_000) + tone(600) + silence(700))
    assert started == Started(700)
    assert isinstance(turn, Turn)
    assert turn.stopped == Stopped(2_100)
    assert len(turn.audio) == (2_100 - 700) * MS
    assert turn.audio[: 300 * MS] == silence(300)


def test_speech_at_once_starts_at_zero() -> None:
    buffer = InputBuffer(Pcm(), ServerVad())
    assert feed(buffer, tone(400))[0] == Started(0)


@pytest.mark.parametrize(("silence_ms", "turns"), [(500, 2), (900, 1)])
def test_a_pause_ends_the_turn_only_when_long_enough(silence_ms: int, turns: int) -> None:
    buffer = InputBuffer(Pcm(), ServerVad(silence_duration_ms=silence_ms))
    found = feed(buffer, silence(400) + tone(400) + silence(700) + tone(400) + silence(1_200))
    assert sum(isinstance(one, Turn) for one in found) == turns


def test_the_gap_between_two_turns_can_be_computed_from_the_events() -> None:
    buffer = InputBuffer(Pcm(), ServerVad(prefix_padding_ms=300, silence_duration_ms=500))
    _, first, second, _ = feed(buffer, silence(500) + tone(500) + silence(620) + tone(500) + silence(600))
    assert isinstance(first, Turn) and isinstance(second, Started)
    gap_ms = (second.audio_start_ms + 300) - (first.stopped.audio_end_ms - 500)
    assert gap_ms == 620


def test_a_blip_of_40_ms_is_no_speech_and_60_ms_is() -> None:
    buffer = InputBuffer(Pcm(), ServerVad())
    assert feed(buffer, silence(400) + tone(40) + silence(800)) == []
    assert feed(buffer, tone(60) + silence(100))[0] == Started(1_240 - 300)


@pytest.mark.parametrize(("threshold", "heard"), [(0.4, True), (0.6, False)])
def test_a_faint_tone_counts_by_threshold(threshold: float, heard: bool) -> None:
    buffer = InputBuffer(Pcm(), ServerVad(threshold=threshold))
    assert bool(feed(buffer, tone(400, -50.0))) is heard


def test_mu_law_is_heard_on_its_own_clock() -> None:
    buffer = InputBuffer(Pcmu(), ServerVad())
    started, turn = feed(buffer, from_pcm24k(silence(1_000) + tone(600) + silence(700), Pcmu()), piece=160)
    assert started == Started(700)
    assert isinstance(turn, Turn)
    assert (turn.stopped, len(turn.audio)) == (Stopped(2_100), 1_400 * 8)


def test_clearing_forgets_speech_but_time_goes_on() -> None:
    buffer = InputBuffer(Pcm(), ServerVad())
    feed(buffer, silence(1_000) + tone(310))
    assert buffer.speaking
    buffer.clear()
    assert (buffer.speaking, buffer.pending_ms, buffer.position_ms) == (False, 0, 1_310)
    # Windows now begin at 1,310: the tone at 1,800 makes the one from 1,790 voiced.
    assert feed(buffer, silence(490) + tone(200))[0] == Started(1_490)


def test_new_settings_hold_for_speech_in_progress() -> None:
    buffer = InputBuffer(Pcm(), ServerVad(silence_duration_ms=500))
    feed(buffer, silence(400) + tone(400) + silence(300))
    buffer.detect(ServerVad(silence_duration_ms=2_000))
    assert feed(buffer, silence(1_600)) == []
    (turn,) = feed(buffer, silence(200))
    assert isinstance(turn, Turn) and turn.stopped == Stopped(2_800)


def test_silence_does_not_pile_up() -> None:
    buffer = InputBuffer(Pcm(), ServerVad(prefix_padding_ms=300))
    feed(buffer, silence(60_000), piece=960)
    assert buffer.pending_ms <= 520
    assert buffer.position_ms == 60_000
