from hypothesis import given
from hypothesis import strategies as st

from ivr.phone.line import FRAME_BYTES, SILENT_FRAME
from ivr.phone.playback import MAX_QUEUED_BYTES, Ear, Playback
from tests.unit.phone.harness import tone


def test_audio_is_played_in_order_whatever_its_pieces() -> None:
    audio = bytes(range(1, 251)) * 4
    playback = Playback()
    for start, end in [(0, 37), (37, 548), (548, 1000)]:
        playback.push(audio[start:end])

    heard = b"".join(playback.advance().ulaw for _ in range(7))

    assert heard == audio + b"\xff" * 120


def test_a_mark_is_reached_when_all_before_it_has_been_played() -> None:
    playback = Playback()
    playback.push(b"\x01" * 400)
    playback.mark("a")

    assert [playback.advance().marks for _ in range(4)] == [(), (), ("a",), ()]


def test_a_mark_on_a_frame_border_comes_with_that_frame() -> None:
    playback = Playback()
    playback.push(b"\x01" * FRAME_BYTES)
    playback.mark("a")
    playback.push(b"\x02" * FRAME_BYTES)
    playback.mark("b")

    assert [playback.advance().marks for _ in range(2)] == [("a",), ("b",)]


def test_a_mark_on_an_empty_queue_is_reached_at_once() -> None:
    playback = Playback()
    playback.mark("a")

    played = playback.advance()

    assert played.marks == ("a",)
    assert not played.from_queue
    assert played.ulaw == SILENT_FRAME


def test_clear_gives_back_every_outstanding_mark_and_nothing_is_heard_after_it() -> None:
    playback = Playback()
    for name in "abc":
        playback.push(tone(100))
        playback.mark(name)
    for _ in range(6):
        playback.advance()

    marks, dropped_ms = playback.clear()

    assert marks == ("b", "c")
    assert dropped_ms == 300 - 120
    assert playback.advance().ulaw == SILENT_FRAME
    assert not playback.has_voice


def test_more_than_ten_minutes_are_refused() -> None:
    playback = Playback()
    assert playback.push(b"\xff" * MAX_QUEUED_BYTES)
    assert not playback.push(b"\xff")
    playback.advance()
    assert playback.push(b"\xff" * FRAME_BYTES)
    assert playback.max_queued_ms == 600_000


@given(st.lists(st.one_of(st.binary(max_size=700), st.just("clear"), st.just("play")), max_size=40))
def test_no_byte_is_lost_or_doubled(steps: list[bytes | str]) -> None:
    playback = Playback()
    pushed, heard, dropped = 0, 0, 0.0
    for step in steps:
        if isinstance(step, bytes):
            playback.push(step)
            pushed += len(step)
        elif step == "clear":
            dropped += playback.clear()[1] * 8
        else:
            before = playback.queued_ms
            playback.advance()
            heard += round((before - playback.queued_ms) * 8)

    assert pushed == heard + round(dropped) + round(playback.queued_ms * 8)


def test_the_ear_joins_words_and_parts_spurts() -> None:
    ear, spurts, now_ms = Ear(), [], 0
    voice, quiet = tone(20), SILENT_FRAME
    for frame in [quiet] * 5 + [voice] * 10 + [quiet] * 10 + [voice] * 5 + [quiet] * 20 + [voice] * 2:
        now_ms += 20
        spurt = ear.hear(now_ms, frame, queue_has_voice=False)
        if spurt is not None:
            spurts.append((spurt.from_ms, spurt.until_ms))

    assert spurts == [(100, 600)]
    assert ear.far.busy
    assert ear.far.voiced_ms == 17 * 20
    last = ear.finish()
    assert last is not None
    assert (last.from_ms, last.until_ms) == (1_000, 1_040)


def test_a_pause_between_queued_words_is_not_the_end_of_talking() -> None:
    ear, now_ms = Ear(), 0
    for frame in [tone(20)] * 2 + [SILENT_FRAME] * 100:
        now_ms += 20
        ear.hear(now_ms, frame, queue_has_voice=True)

    assert ear.far.busy
    assert ear.far.idle_ms == 0
