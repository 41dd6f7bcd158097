"""Arrivals against a plain model of a sender: what it lost is known, whatever one of the witnesses says."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ivr.core.arrivals import ArrivalKind, Arrivals
from ivr.core.events import LineFrame
from ivr.core.network import LONGEST_WINDOW_MS, SAMPLE_MS

FRAMES = 220
SETTLED = 3
"""The first frames come on time and whole: what is missing before the first two can be known by nobody."""


@dataclass(frozen=True)
class Sent:
    """A frame that arrives: `lost_ms` went missing just before it; it truly begins at `begins_ms`."""

    frame: LineFrame
    now_ms: float
    lost_ms: int
    begins_ms: int


@dataclass(frozen=True)
class Sender:
    """How a stream is made. Every length and offset is in ms."""

    frame_ms: int
    first_ms: int
    counts_lost: bool
    off_grid_ms: int
    jitter_ms: int
    loss: float
    burst: int
    seed: int

    def stream(self) -> list[Sent]:
        """Frames in the order in which TCP brings them."""
        chance, out = random.Random(self.seed), []
        chunk, sequence, hole_ms, burst, now_ms = 0, 1, 0, 0, 0.0
        for number in range(FRAMES):
            settled = SETTLED < number < FRAMES - 1
            if settled and not burst and chance.random() < self.loss:
                burst = 1 + chance.randrange(self.burst)
            lost, burst = settled and burst > 0, max(0, burst - 1)
            chunk, sequence = (chunk + 1, sequence + 1) if self.counts_lost or not lost else (chunk, sequence)
            sequence += chance.random() < 0.02  # a mark, a key
            if lost:
                hole_ms += self.frame_ms
                continue
            begins_ms = self.first_ms + number * self.frame_ms
            due_ms = 9_000 + (number + 1) * self.frame_ms
            now_ms = max(now_ms, due_ms + (chance.random() * self.jitter_ms if settled else 0))
            stamp_ms = max(0, begins_ms + chance.randint(-self.off_grid_ms, self.off_grid_ms) * settled)
            frame = LineFrame(sequence, chunk, stamp_ms, b"\x7e" * (8 * self.frame_ms))
            out.append(Sent(frame, now_ms, hole_ms, begins_ms))
            hole_ms = 0
        return out


senders = st.builds(
    Sender,
    frame_ms=st.sampled_from([10, 20, 20, 20, 30, 40, 60]),
    first_ms=st.sampled_from([0, 135, 155, 171, 2**32 - 1_000]),
    counts_lost=st.booleans(),
    off_grid_ms=st.integers(0, 2),
    jitter_ms=st.sampled_from([0, 5, 20, 60, 300]),
    loss=st.sampled_from([0.0, 0.01, 0.05, 0.2, 0.5]),
    burst=st.sampled_from([1, 2, 5, 20]),
    seed=st.integers(0, 2**32),
)
Lie = Callable[[LineFrame, int], LineFrame]
"""What becomes of a frame, and its place among those that arrive."""

ANY_SENDER: dict[str, Lie] = {
    "all tell": lambda f, _: f,
    "no chunk": lambda f, _: replace(f, chunk=0),
    "some chunks missing": lambda f, at: replace(f, chunk=f.chunk * (at % 7 != 5)),
    "chunks jump": lambda f, at: replace(f, chunk=f.chunk + 50 * (at > 80)),
    "chunks start anew": lambda f, at: replace(f, chunk=max(1, f.chunk - 40 * (at > 80))),
    "no sequence": lambda f, _: replace(f, sequence=0),
    "some sequences missing": lambda f, at: replace(f, sequence=f.sequence * (at % 5 != 4)),
    "sequences jump": lambda f, at: replace(f, sequence=f.sequence + 1_000 * (at > 80)),
    "sequences are anything": lambda f, at: replace(f, sequence=hash((at, "x")) % 10_000),
}
WHERE_LOST_ARE_COUNTED: dict[str, Lie] = {
    "no timestamp": lambda f, _: replace(f, timestamp_ms=0),
    "a timestamp that stands still": lambda f, _: replace(f, timestamp_ms=135),
    "some timestamps missing": lambda f, at: replace(f, timestamp_ms=f.timestamp_ms * (at % 6 != 4)),
    "timestamps jump": lambda f, at: replace(f, timestamp_ms=f.timestamp_ms + 100_000 * (at > 80)),
}


def found(sent: list[Sent], lie: Lie) -> list[int]:
    """The holes that are found, a figure for each frame that arrives."""
    arrivals = Arrivals()
    results = [arrivals.receive(lie(one.frame, at), one.now_ms) for at, one in enumerate(sent)]
    assert all(result.usable for result in results)
    assert sum(result.lost_ms for result in results) == arrivals.reception.lost_ms
    return [result.lost_ms for result in results]


@pytest.mark.parametrize("name", ANY_SENDER)
@settings(max_examples=40, deadline=None)
@given(sender=senders)
def test_each_hole_is_found_where_it_is(name: str, sender: Sender) -> None:
    sent = sender.stream()
    assert found(sent, ANY_SENDER[name]) == [one.lost_ms for one in sent]


@pytest.mark.parametrize("name", WHERE_LOST_ARE_COUNTED)
@settings(max_examples=40, deadline=None)
@given(sender=senders)
@example(sender=Sender(10, 0, False, 2, 0, 0.2, 1, 79025662))  # a hole right behind a leap of the timestamps
def test_each_hole_is_found_without_good_timestamps_if_the_counters_count_it(
    name: str, sender: Sender
) -> None:
    sent = replace(sender, counts_lost=True).stream()
    assert found(sent, WHERE_LOST_ARE_COUNTED[name]) == [one.lost_ms for one in sent]


@settings(max_examples=60, deadline=None)
@given(senders)
def test_each_hole_is_found_though_the_clock_stands_still(sender: Sender) -> None:
    sent = [replace(one, now_ms=7.0) for one in sender.stream()]
    assert found(sent, ANY_SENDER["all tell"]) == [one.lost_ms for one in sent]


class WithoutShortWay(Arrivals):
    """Every frame is weighed."""

    def _is_as_expected(self, frame: LineFrame, last: LineFrame, now_ms: float) -> bool:
        return False


@pytest.mark.parametrize("lie", [*ANY_SENDER.values(), *WHERE_LOST_ARE_COUNTED.values()])
@settings(max_examples=20, deadline=None)
@given(sender=senders)
def test_the_short_way_of_a_frame_as_expected_changes_nothing(lie: Lie, sender: Sender) -> None:
    short, long = Arrivals(), WithoutShortWay()
    for at, one in enumerate(sender.stream()):
        frame = lie(one.frame, at)
        assert short.receive(frame, one.now_ms) == long.receive(frame, one.now_ms)
        assert short.snapshot(one.now_ms, 1_000) == long.snapshot(one.now_ms, 1_000)
    assert (short.reception, short.audio_ms) == (long.reception, long.audio_ms)
    assert short.audio_to_stream_ms(short.audio_ms) == long.audio_to_stream_ms(long.audio_ms)


@settings(max_examples=60, deadline=None)
@given(senders, st.sets(st.integers(1, 150), max_size=30))
def test_duplicates_are_left_out_and_change_nothing(sender: Sender, twice: set[int]) -> None:
    arrivals, lost, sent = Arrivals(), [], sender.stream()
    for at, one in enumerate(sent):
        lost.append(arrivals.receive(one.frame, one.now_ms).lost_ms)
        if at in twice:
            again = replace(one.frame, sequence=one.frame.sequence + 1)
            assert arrivals.receive(again, one.now_ms).kind is ArrivalKind.DUPLICATE
    assert lost == [one.lost_ms for one in sent]
    assert arrivals.reception.duplicates == len({at for at in twice if at < len(sent)})


@settings(max_examples=80, deadline=None)
@given(senders, st.integers(0, 4_900))
def test_every_point_of_the_audio_lies_where_it_was_spoken(sender: Sender, max_insert_ms: int) -> None:
    arrivals = Arrivals(max_insert_ms)
    places: list[tuple[float, int]] = []
    for one in sender.stream():
        arrivals.receive(one.frame, one.now_ms)
        places.append((arrivals.audio_ms - sender.frame_ms, one.begins_ms))
    for audio_ms, begins_ms in places[-120:]:
        for inside_ms in (0, sender.frame_ms / 2):
            told_ms = arrivals.audio_to_stream_ms(audio_ms + inside_ms)
            assert told_ms == pytest.approx(begins_ms + inside_ms, abs=sender.off_grid_ms + 1.5)


@settings(max_examples=60, deadline=None)
@given(senders, st.integers(500, 6_000), st.integers(0, 3_000))
def test_statistics_are_those_of_the_paper(sender: Sender, window_ms: int, later_ms: int) -> None:
    """Counted ms by ms; the window begins at a sample of the 50 ms grid of stream time."""
    sender = replace(sender, off_grid_ms=0)
    arrivals, sent = Arrivals(), sender.stream()
    holes: list[tuple[int, int]] = []
    for one in sent:
        arrivals.receive(one.frame, one.now_ms)
        if one.lost_ms:
            holes.append((one.begins_ms - one.lost_ms, one.begins_ms))
    ends_ms = sent[-1].begins_ms + sender.frame_ms + later_ms
    first_ms = int((ends_ms - min(window_ms, LONGEST_WINDOW_MS)) // SAMPLE_MS * SAMPLE_MS)
    state = arrivals.snapshot(sent[-1].now_ms + later_ms, window_ms)
    concealed = [ms for begin, end in holes for ms in range(begin, end) if ms >= first_ms]
    silent = [ms for begin, end in holes for ms in range(begin + 60, end) if ms >= first_ms]
    whole_ms = ends_ms - max(first_ms, sender.first_ms)
    assert (state.concealed_ms, state.silence_concealed_ms) == (len(concealed), len(silent))
    assert state.loss_rate == pytest.approx(len(concealed) / whole_ms)
    since_ms = ends_ms - holes[-1][1] if holes else None
    assert state.since_concealment_ms == (since_ms if since_ms is None else pytest.approx(since_ms))


def test_a_way_that_has_become_longer_is_late_for_seconds_not_for_ever() -> None:
    arrivals, kinds = Arrivals(), []
    for number in range(1_500):
        longer_ms = 400.0 if number >= 300 else 0.0
        frame = LineFrame(number + 2, number + 1, 135 + 20 * number, b"\x7e" * 160)
        kinds.append(arrivals.receive(frame, 20.0 * number + longer_ms).kind)
    late = [number for number, kind in enumerate(kinds) if kind is ArrivalKind.LATE]
    assert late == list(range(300, 300 + len(late)))
    assert 250 <= len(late) <= 500
    assert arrivals.reception.late == len(late)


def test_frames_from_long_ago_are_left_out_and_are_no_new_stream() -> None:
    arrivals = Arrivals()
    frames = [LineFrame(n + 2, n + 1, 135 + 20 * n, b"\x7e" * 160) for n in range(600)]
    for number, frame in enumerate(frames):
        result = arrivals.receive(frame, 20.0 * number)
        assert (result.kind, result.lost_ms) == (ArrivalKind.RECEIVED, 0)
        if number in (300, 301, 450):
            old = arrivals.receive(frames[number - 200], 20.0 * number)
            assert old.kind is ArrivalKind.REORDERED
    assert arrivals.reception.reordered == 3
    assert arrivals.audio_ms == 12_000


def test_counters_that_start_anew_in_the_middle_are_a_new_stream_from_the_second_frame_on() -> None:
    arrivals = Arrivals()
    for n in range(500):
        arrivals.receive(LineFrame(n + 2, n + 1, 135 + 20 * n, b"\x7e" * 160), 20.0 * n)
    anew = [LineFrame(n + 2, n + 1, 20 * n, b"\x7e" * 160) for n in range(30, 100)]
    results = [arrivals.receive(frame, 10_000 + 20.0 * n) for n, frame in enumerate(anew)]
    assert [result.usable for result in results] == [False] + [True] * 69
    assert not any(result.lost_ms for result in results)


def test_figures_in_all() -> None:
    arrivals = Arrivals(100)
    for n in range(100):
        if n not in {40, *range(50, 60)}:
            delay_ms = 300.0 if 80 <= n < 95 else 0.0
            arrivals.receive(LineFrame(n + 2, n + 1, 20 * n, b"\x7e" * 160), 20.0 * n + delay_ms)
    reception = arrivals.reception
    assert (reception.received_ms, reception.lost_ms, reception.inserted_ms) == (1_780, 220, 120)
    assert reception.loss_rate == pytest.approx(0.11)
    assert reception.stalled_ms == 300
