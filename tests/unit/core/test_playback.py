"""Pacing, marks and what was heard, against a plain model of the line."""

import pickle
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivr.core.commands import SendClear, SendMark, SendMedia
from ivr.core.heard import heard_text
from ivr.core.playback import AHEAD_MS, UNPROVEN_MS, Playback
from tests.unit.core.line_model import LineModel


def numbered(count: int, first: int = 0) -> bytes:
    """Recognisable µ-law that never looks like silence (0xFF)."""
    return bytes((first + i) % 251 for i in range(count))


def media(commands: list[SendMedia | SendMark]) -> bytes:
    return b"".join(command.ulaw for command in commands if isinstance(command, SendMedia))


def marks(commands: list[SendMedia | SendMark]) -> list[str]:
    return [command.name for command in commands if isinstance(command, SendMark)]


def run(playback: Playback, line: LineModel, duration_ms: int, tick_ms: int = 20) -> None:
    """Tick as a worker does, and hand returned marks over."""
    end_ms = line.now_ms + duration_ms
    while line.now_ms < end_ms:
        line.send(playback.tick(line.now_ms))
        for name in line.advance(min(tick_ms, end_ms - line.now_ms)):
            playback.mark(name, line.now_ms)


def playing(*items: tuple[str, bytes]) -> Playback:
    playback = Playback()
    for item_id, ulaw in items:
        playback.queue(item_id, ulaw)
        playback.finish(item_id)
    playback.start(0)
    return playback


# -- pacing ------------------------------------------------------------------------------------------------


def test_nothing_is_sent_before_the_start_and_all_of_it_after() -> None:
    playback = Playback()
    playback.queue("a", numbered(16_000))
    assert playback.tick(0) == []
    assert playback.next_deadline(0) is None
    assert not playback.is_audible(800)
    playback.start(800)
    assert media(playback.tick(800)) == numbered(AHEAD_MS * 8)


def test_b001_odd_deltas_leave_as_whole_frames_and_each_tail_with_its_own_reply() -> None:
    first, second = numbered(1711), numbered(90, first=100)
    playback, line = Playback(), LineModel()
    playback.start(0)
    rest = first
    for size in (37, 511, 160, 3, 1000):
        playback.queue("first", rest[:size])
        rest = rest[size:]
        line.send(playback.tick(0))
    assert bytes(line.sent) == first[:1600]
    playback.finish("first")
    playback.queue("second", second)
    playback.finish("second")
    run(playback, line, 400)
    assert bytes(line.sent) == first + b"\xff" * 49 + second + b"\xff" * 70
    assert all(size % 160 == 0 for size in line.payload_sizes)
    assert playback.heard_bytes("first") == first
    assert playback.heard_bytes("second") == second


def test_b004_a_short_last_frame_is_filled_with_silence_not_with_a_bang() -> None:
    playback = playing(("a", numbered(1000)))
    assert media(playback.tick(0)) == numbered(1000) + b"\xff" * 120
    assert playback.queued_ms("a") == 125


def test_b019_ninety_seconds_at_once_are_paced_and_the_rest_vanishes_at_an_interrupt() -> None:
    audio = numbered(90 * 8_000)
    playback, line = playing(("notice", audio)), LineModel(there_ms=30, back_ms=30)
    for _ in range(3_500):
        line.send(playback.tick(line.now_ms))
        for name in line.advance(20):
            playback.mark(name, line.now_ms)
        assert line.buffered_bytes() <= AHEAD_MS * 8
        assert not playback.is_idle(line.now_ms)
    line.send(playback.clear(line.now_ms))
    run(playback, line, 1_000)
    assert bytes(line.sent) == audio[: len(line.sent)]
    assert len(line.sent) == pytest.approx((70_000 + AHEAD_MS) * 8, abs=160)
    assert len(line.played) == pytest.approx(70_000 * 8, abs=400)
    assert playback.is_idle(line.now_ms)


def test_a_stall_of_ours_of_300_ms_makes_no_gap() -> None:
    playback, line = playing(("a", numbered(16_000))), LineModel()
    run(playback, line, 400)
    run(playback, line, 300, tick_ms=300)
    run(playback, line, 1_400)
    assert line.now_ms == 2_100
    assert bytes(line.played) == numbered(16_000)


def test_after_a_longer_stall_sending_is_320_ms_ahead_again_at_once() -> None:
    playback = playing(("a", numbered(16_000)))
    playback.tick(0)
    assert len(media(playback.tick(1_000))) == AHEAD_MS * 8


def test_a_mark_goes_after_each_200_ms_and_one_at_the_end() -> None:
    playback, line = playing(("a", numbered(500 * 8))), LineModel()
    places: list[int] = []
    sent = 0
    for now_ms in range(0, 600, 20):
        for command in playback.tick(now_ms):
            if isinstance(command, SendMedia):
                sent += len(command.ulaw)
            else:
                places.append(sent // 8)
    assert places == [200, 400, 500]
    assert line.sent == b""


def test_an_end_on_a_200_ms_edge_has_one_mark() -> None:
    playback = playing(("a", numbered(1_600)))
    assert len(marks(playback.tick(0))) == 1


def test_deadlines_follow_the_pace_then_the_silence() -> None:
    playback = playing(("a", numbered(400 * 8)))
    names = marks(playback.tick(0))
    assert playback.next_deadline(0) == 20
    for now_ms in range(20, 101, 20):
        names += marks(playback.tick(now_ms))
    assert playback.next_deadline(100) == 400 + UNPROVEN_MS
    for name in names:
        playback.mark(name, 430)
    assert playback.next_deadline(430) is None
    assert playback.is_idle(430)


# -- barge-in ----------------------------------------------------------------------------------------------


def test_b011_a_barge_in_clears_once_and_sends_no_more_of_the_item() -> None:
    playback, line = Playback(), LineModel(there_ms=20, back_ms=20)
    playback.start(0)
    for part in range(40):  # 8 s in deltas of 200 ms, still being generated
        playback.queue("a", numbered(1_600, first=part))
    run(playback, line, 1_000)
    line.send(playback.clear(line.now_ms))
    before = len(line.sent)
    playback.queue("a", numbered(1_600))
    playback.finish("a")
    line.send(playback.clear(line.now_ms))
    run(playback, line, 500)
    assert (line.clears, len(line.sent)) == (1, before)
    assert playback.queued_ms("a") == 8_200
    playback.queue("b", numbered(1_600))
    playback.finish("b")
    run(playback, line, 500)
    assert len(line.sent) == before + 1_600
    assert playback.played_to_end("b")


@pytest.mark.parametrize("there_ms", [0, 40, 150])
def test_after_a_barge_in_no_more_than_200_ms_of_old_audio_if_the_clear_acts_within_150(
    there_ms: int,
) -> None:
    """The caller's ear is `there_ms` behind us; what sounds from the decision on counts."""
    playback, line = playing(("old", numbered(80_000))), LineModel(there_ms=there_ms, back_ms=there_ms)
    run(playback, line, 2_010)
    before = len(line.played)
    line.send(playback.clear(line.now_ms))
    playback.queue("old", numbered(8_000))
    run(playback, line, 1_000)
    assert len(line.played) - before <= 200 * 8
    assert line.buffered_bytes() == 0


def test_after_a_barge_in_no_more_than_340_ms_of_old_audio_if_the_clear_never_acts() -> None:
    playback, line = playing(("old", numbered(80_000))), LineModel(there_ms=20, back_ms=20)
    run(playback, line, 2_010)
    before = len(line.played)
    assert playback.clear(line.now_ms) == [SendClear()]  # and it is lost
    run(playback, line, 1_000)
    assert len(line.played) - before <= 340 * 8


def hear_out(playback: Playback, now_ms: int, until_ms: int) -> int:
    """Tick over a line without delay, as quick as can be simulated; returns the time reached."""
    ends_ms, echoes = now_ms, deque[tuple[int, str]]()
    while now_ms < until_ms:
        for command in playback.tick(now_ms):
            if isinstance(command, SendMedia):
                ends_ms = max(ends_ms, now_ms) + len(command.ulaw) // 8
            else:
                echoes.append((ends_ms, command.name))
        now_ms += 20
        while echoes and echoes[0][0] <= now_ms:
            playback.mark(echoes.popleft()[1], now_ms)
    return now_ms


def test_an_hour_of_replies_some_broken_off_keeps_no_more_than_minutes_of_them() -> None:
    """Replies of 2 s, each forgotten by its owner when it is over; every third is cleared half-way."""
    playback, now_ms = Playback(), 0
    playback.start(0)
    sizes: list[int] = []
    for number in range(3_600 // 3):
        item, is_broken_off = f"r{number}", number % 3 == 0
        playback.queue(item, numbered(16_000))
        playback.finish(item)
        now_ms = hear_out(playback, now_ms, now_ms + (1_000 if is_broken_off else 2_400))
        if is_broken_off:
            assert playback.clear(now_ms) == [SendClear()]
        assert playback.played_to_end(item) == (not is_broken_off)
        playback.drop(item)
        now_ms = hear_out(playback, now_ms, now_ms + 600)
        sizes.append(len(pickle.dumps(playback)))
    assert max(sizes[100:]) <= max(sizes[:100]) + 500  # longer numbers, no more of them
    assert max(sizes) < 8_000


def test_b012_an_item_the_model_has_finished_is_interrupted_just_the_same() -> None:
    playback, line = playing(("a", numbered(8 * 8_000))), LineModel(there_ms=20, back_ms=20)
    run(playback, line, 1_000)
    assert playback.clear(line.now_ms) == [SendClear()]
    assert playback.is_audible(line.now_ms) is False
    assert 760 <= playback.heard_ms("a") <= 980
    heard, unheard = playback.heard_bytes("a"), playback.unheard("a")
    assert heard + unheard == numbered(8 * 8_000)
    assert bytes(line.played).startswith(heard)
    assert not playback.played_to_end("a")


def test_b014_nothing_audible_means_no_clear() -> None:
    playback = Playback()
    playback.start(0)
    assert playback.clear(50) == []
    playback.queue("greeting", numbered(1_600))
    assert media(playback.tick(250)) == numbered(1_600)


def test_marks_that_a_clear_sends_back_prove_nothing() -> None:
    playback, line = playing(("a", numbered(4_000 * 8))), LineModel()
    run(playback, line, 700)
    line.send(playback.clear(line.now_ms))
    frozen_ms = playback.heard_ms("a")
    returned = line.advance(50)
    assert returned  # the model echoes all outstanding marks, as Twilio does
    for name in returned:
        playback.mark(name, line.now_ms)
    assert playback.heard_ms("a") == frozen_ms
    assert 500 <= frozen_ms <= 700


def test_mark_names_differ_across_a_clear() -> None:
    playback = playing(("a", numbered(4_000)))
    before = marks(playback.tick(0))
    playback.clear(10)
    playback.queue("b", numbered(4_000))
    after = marks(playback.tick(10))
    assert before
    assert after
    assert {name.split(".")[0] for name in before}.isdisjoint(name.split(".")[0] for name in after)


# -- heard -------------------------------------------------------------------------------------------------


def test_b026_the_position_is_the_items_own_and_never_beyond_its_end() -> None:
    playback = playing(("a", numbered(2_000 * 8)), ("b", numbered(1_200 * 8)))
    line = LineModel(there_ms=25, back_ms=25)
    run(playback, line, 2_300)
    assert playback.clear(line.now_ms) == [SendClear()]
    assert playback.played_to_end("a")
    assert playback.heard_ms("a") == 2_000
    assert 200 <= playback.heard_ms("b") <= 300


def test_b026_after_the_end_there_is_nothing_to_cut() -> None:
    playback, line = playing(("a", numbered(2_000 * 8)), ("b", numbered(1_205 * 8))), LineModel(back_ms=40)
    run(playback, line, 3_210 + 5_000)
    assert playback.clear(line.now_ms) == []
    assert playback.heard_ms("b") == 1_205
    assert playback.unheard("b") == b""


def test_marks_that_come_before_their_time_do_not_outrun_the_clock() -> None:
    playback = playing(("a", numbered(300 * 8)))
    names = marks(playback.tick(0))
    for name in names:
        playback.mark(name, 5)
    assert playback.heard_ms("a") <= 5
    assert not playback.played_to_end("a")
    playback.tick(300)
    assert playback.played_to_end("a")


def test_without_any_mark_little_is_claimed_and_the_line_falls_idle_all_the_same() -> None:
    playback = playing(("a", numbered(1_000 * 8)))
    for now_ms in range(0, 1_020, 20):
        playback.tick(now_ms)
    assert playback.heard_ms("a") <= 200
    assert playback.is_audible(1_900)
    assert playback.is_idle(1_000 + UNPROVEN_MS)
    assert not playback.played_to_end("a")


def test_a_lost_mark_is_made_good_by_the_next() -> None:
    playback = playing(("a", numbered(320 * 8)))
    first, second = marks(playback.tick(0))
    playback.mark(second, 330)
    playback.mark(first, 335)
    assert playback.played_to_end("a")


def test_a_reply_without_audio_is_over_when_it_is_finished() -> None:
    playback = Playback()
    playback.start(0)
    playback.finish("silent")
    assert playback.played_to_end("silent")
    assert playback.tick(0) == []
    assert playback.is_idle(0)


def test_a_dropped_item_is_gone_and_stays_gone() -> None:
    playback = playing(("a", numbered(3_200)), ("b", numbered(1_600)))
    playback.tick(0)
    playback.drop("b")
    playback.queue("b", numbered(1_600))
    playback.drop("never")
    line = LineModel()
    run(playback, line, 600)
    assert bytes(line.sent) == numbered(3_200)[2_560:]
    assert (playback.queued_ms("b"), playback.heard_ms("b"), playback.unheard("b")) == (0, 0, b"")


def test_bad_input_is_harmless() -> None:
    playback = playing(("a", numbered(1_600)))
    playback.queue("a", b"late")
    playback.queue("b", b"")
    playback.finish("a")
    playback.mark("nonsense", -5)
    playback.mark("", -5)
    playback.tick(-100)
    assert playback.queued_ms("a") == 200
    assert playback.heard_ms("unknown") == 0
    assert playback.heard_bytes("unknown") == b""
    assert not playback.played_to_end("unknown")


# -- the whole, against the model --------------------------------------------------------------------------

_deltas = st.lists(st.integers(0, 3_000), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(_deltas, min_size=1, max_size=3),
    st.lists(st.integers(1, 400), min_size=1, max_size=25),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_all_bytes_leave_in_order_in_frames_and_never_too_early(
    items: list[list[int]], steps_ms: list[int], there_ms: int, back_ms: int
) -> None:
    playback, line = Playback(), LineModel(there_ms=there_ms, back_ms=back_ms)
    playback.start(0)
    expected = b""
    deltas = [(str(no), size, last) for no, sizes in enumerate(items) for size, last in _with_last(sizes)]
    for step_no in range(max(len(steps_ms), len(deltas)) + 40):
        if step_no < len(deltas):
            item_id, size, last = deltas[step_no]
            piece = numbered(size, first=step_no)
            playback.queue(item_id, piece)
            expected += piece
            if last:
                playback.finish(item_id)
                expected += b"\xff" * (-len(expected) % 160)
        line.send(playback.tick(line.now_ms))
        assert line.buffered_bytes() <= AHEAD_MS * 8
        for name in line.advance(steps_ms[step_no % len(steps_ms)]):
            playback.mark(name, line.now_ms)
        sent_ms = len(line.sent) / 8
        assert sum(playback.heard_ms(str(no)) for no in range(len(items))) <= sent_ms
    run(playback, line, len(expected) // 8 + 400)
    assert bytes(line.sent) == expected
    assert bytes(line.played) == expected
    assert all(size % 160 == 0 for size in line.payload_sizes)
    assert all(playback.played_to_end(str(no)) for no in range(len(items)))
    assert playback.is_idle(line.now_ms)


def _with_last(sizes: list[int]) -> list[tuple[int, bool]]:
    return [(size, no == len(sizes) - 1) for no, size in enumerate(sizes)]


@settings(max_examples=60, deadline=None)
@given(
    st.integers(100, 3_000),
    st.integers(0, 3_500),
    st.integers(0, 80),
    st.integers(0, 80),
    st.lists(st.integers(0, 600), max_size=4),
)
def test_what_counts_as_heard_was_played_and_misses_no_more_than_a_mark_interval_and_the_way_back(
    length_ms: int, cut_ms: int, there_ms: int, back_ms: int, pauses_ms: list[int]
) -> None:
    """Also when the model's audio comes with pauses in it, so that the line runs dry."""
    playback, line = Playback(), LineModel(there_ms=there_ms, back_ms=back_ms)
    playback.start(0)
    audio = numbered(length_ms * 8)
    part = -(-len(audio) // (len(pauses_ms) + 1))
    for no, pause_ms in enumerate([*pauses_ms, 0]):
        playback.queue("a", audio[no * part : (no + 1) * part])
        run(playback, line, pause_ms)
    playback.finish("a")
    run(playback, line, max(0, cut_ms - line.now_ms))
    playback.clear(line.now_ms)
    heard = playback.heard_bytes("a")
    assert bytes(line.played[: len(heard)]) == heard
    assert len(line.played) - len(heard) <= (200 + there_ms + back_ms + 21) * 8 + 160


# -- heard text --------------------------------------------------------------------------------------------


def test_b048_the_text_is_cut_where_the_sound_was() -> None:
    words = [f"word{no:02d}" for no in range(39)] + ["ZULU"]
    heard = heard_text(" ".join(words), 2_000, 10_000)
    assert heard == " ".join(words[:8])


@pytest.mark.parametrize(
    ("heard_ms", "total_ms", "expected"),
    [
        (0, 1_000, ""),
        (-5, 1_000, ""),
        (500, 0, ""),
        (500, -1, ""),
        (float("nan"), 1_000, ""),
        (1_000, 1_000, "One two three."),
        (2_000, 1_000, "One two three."),
        (999, 1_000, "One two"),
        (500, 1_000, "One two"),
        (499, 1_000, "One"),
    ],
)
def test_heard_text_rounds_down_to_a_word(heard_ms: float, total_ms: float, expected: str) -> None:
    assert heard_text("One two three.", heard_ms, total_ms) == expected


def test_scripts_without_spaces_are_cut_between_characters() -> None:
    assert heard_text("您好我们明天九点开门", 500, 1_000) == "您好我们明"


@given(st.text(max_size=80), st.floats(0, 2_000), st.floats(1, 2_000))
def test_heard_text_is_a_beginning_of_the_text(text: str, heard_ms: float, total_ms: float) -> None:
    assert text.strip().startswith(heard_text(text, heard_ms, total_ms).strip())
