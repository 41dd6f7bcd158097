"""Holes, lateness and duplicates from four kinds of evidence, each of which may be absent or wrong."""

import pickle
import random
from collections.abc import Callable, Set
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ivr.core.arrivals import Arrival, ArrivalKind, Arrivals
from ivr.core.events import LineFrame
from ivr.core.network import NetworkState
from ivr.core.units import FRAME_BYTES

QUIET = b"\x7e" * FRAME_BYTES


@dataclass(frozen=True)
class Timed:
    """A frame and when it comes."""

    frame: LineFrame
    now_ms: float


def stream(count: int, lost: Set[int] = frozenset(), first_ms: int = 135) -> list[Timed]:
    """`count` frames of 20 ms on time, those in `lost` left out, all counters counting what was lost."""
    frames = (
        Timed(LineFrame(n + 2, n + 1, first_ms + 20 * n, QUIET), 1_000.0 + 20 * n) for n in range(count)
    )
    return [timed for n, timed in enumerate(frames) if n not in lost]


def feed(arrivals: Arrivals, frames: list[Timed]) -> list[Arrival]:
    return [arrivals.receive(timed.frame, timed.now_ms) for timed in frames]


def edit(frames: list[Timed], change: Callable[[LineFrame, int], LineFrame]) -> list[Timed]:
    """Change every frame; the function also gets its place among those that arrive."""
    return [replace(timed, frame=change(timed.frame, place)) for place, timed in enumerate(frames)]


def lost_ms(arrivals: list[Arrival]) -> int:
    return sum(arrival.lost_ms for arrival in arrivals)


# -- evidence ----------------------------------------------------------------------------------------------


def test_a_clean_stream_has_no_holes_wherever_its_timestamps_start() -> None:
    for first_ms in (0, 135, 171, 2**32 - 500):
        results = feed(Arrivals(), stream(100, first_ms=first_ms))
        assert {(r.kind, r.missing_ms, r.stalled_ms) for r in results} == {(ArrivalKind.RECEIVED, 0, 0.0)}


def test_a_hole_that_all_show_is_counted_once_and_known_with_the_next_frame() -> None:
    results = feed(Arrivals(), stream(20, lost={10, 11}))
    assert [r.missing_ms for r in results] == [0] * 10 + [40] + [0] * 7
    assert results[10].stalled_ms == 0


WITNESSES_LESS_ONE: dict[str, Callable[[LineFrame, int], LineFrame]] = {
    "only timestamps count the lost": lambda f, place: replace(f, chunk=place + 1, sequence=place + 2),
    "no timestamp": lambda f, _: replace(f, timestamp_ms=0),
    "no chunk": lambda f, _: replace(f, chunk=0),
    "no sequence": lambda f, _: replace(f, sequence=0),
    "timestamps see nothing": lambda f, place: replace(f, timestamp_ms=135 + 20 * place),
    "chunks see nothing": lambda f, place: replace(f, chunk=place + 1),
    "sequence sees nothing": lambda f, place: replace(f, sequence=place + 2),
    "sequence counts marks": lambda f, place: replace(f, sequence=f.sequence + place // 3),
    "off grid": lambda f, place: replace(f, timestamp_ms=f.timestamp_ms + (2 if place % 7 == 3 else 0)),
    "chunks count by two": lambda f, _: replace(f, chunk=2 * f.chunk),
}


@pytest.mark.parametrize("name", WITNESSES_LESS_ONE)
def test_holes_are_found_though_one_witness_fails(name: str) -> None:
    lost = {10, 25, 26, 27, 60, 62, *range(80, 130)}
    frames = edit(stream(200, lost), WITNESSES_LESS_ONE[name])
    assert lost_ms(feed(Arrivals(), frames)) == 20 * len(lost)


@pytest.mark.parametrize("name", WITNESSES_LESS_ONE)
def test_no_hole_is_seen_where_there_is_none_though_one_witness_fails(name: str) -> None:
    frames = edit(stream(200), WITNESSES_LESS_ONE[name])
    assert lost_ms(feed(Arrivals(), frames)) == 0


def test_holes_are_found_though_the_clock_stands_still() -> None:
    frames = [replace(timed, now_ms=7.0) for timed in stream(100, lost={30, 31, 50})]
    assert lost_ms(feed(Arrivals(), frames)) == 60


def test_a_sequence_that_jumps_alone_is_no_lost_audio() -> None:
    frames = edit(stream(50), lambda f, place: replace(f, sequence=f.sequence + 5 * (place > 20)))
    assert lost_ms(feed(Arrivals(), frames)) == 0


def test_a_timestamp_that_leaps_without_time_passing_is_not_believed_and_later_holes_are_still_seen() -> None:
    frames = edit(
        stream(100, lost={70}),
        lambda f, place: replace(f, timestamp_ms=f.timestamp_ms + 5_000 * (place > 40), chunk=place + 1),
    )
    assert lost_ms(feed(Arrivals(), frames)) == 20


def test_counters_that_wrap_around_are_no_hole_and_hide_none() -> None:
    frames = edit(
        stream(100, lost={50, 80}, first_ms=0),
        lambda f, _: replace(f, timestamp_ms=(f.timestamp_ms - 1_000) % 2**32),
    )
    assert lost_ms(feed(Arrivals(), frames)) == 40


def test_frames_of_other_lengths_are_no_holes() -> None:
    arrivals, now_ms, timestamp_ms = Arrivals(), 0.0, 155
    for n, size in enumerate([160, 320, 320, 80, 160, 1_600, 160, 8, 160]):
        now_ms += size / 8
        assert arrivals.receive(LineFrame(n + 2, n + 1, timestamp_ms, bytes(size)), now_ms).lost_ms == 0
        timestamp_ms += size // 8
    assert arrivals.audio_ms == 371


def test_frames_that_come_late_in_a_burst_are_no_holes() -> None:
    """Our own stall or the network's: 600 ms of nothing, then everything at once."""
    frames = [
        replace(t, now_ms=max(t.now_ms, 2_600.0) if n >= 50 else t.now_ms) for n, t in enumerate(stream(120))
    ]
    results = feed(Arrivals(), frames)
    assert lost_ms(results) == 0
    assert results[50].stalled_ms == 600
    assert [r.kind for r in results[50:70]] == [ArrivalKind.LATE] * 20
    assert results[100].kind is ArrivalKind.RECEIVED
    assert all(r.usable for r in results)


def test_a_hole_within_a_burst_is_found_by_timestamp_alone() -> None:
    frames = [
        replace(t, now_ms=max(t.now_ms, 2_600.0) if n >= 50 else t.now_ms)
        for n, t in enumerate(stream(120, {60}))
    ]
    renumbered = edit(frames, lambda f, place: replace(f, chunk=place + 1, sequence=place + 2))
    assert lost_ms(feed(Arrivals(), renumbered)) == 20


def test_a_hole_longer_than_the_bound_is_measured_whole_and_inserted_in_part() -> None:
    results = feed(Arrivals(max_insert_ms=400), stream(200, lost=set(range(50, 150))))
    assert (results[50].missing_ms, results[50].lost_ms) == (400, 2_000)
    assert feed(Arrivals(max_insert_ms=-100), stream(30, lost={9}))[9].missing_ms == 0


def test_duplicates_and_stragglers_are_left_out() -> None:
    frames = stream(30, lost={12})
    straggler = stream(13)[12]
    arrivals = Arrivals()
    feed(arrivals, frames[:15])
    before_ms = arrivals.audio_ms
    assert arrivals.receive(frames[14].frame, 1_300).kind is ArrivalKind.DUPLICATE
    assert arrivals.receive(replace(frames[10].frame, sequence=99), 1_300).kind is ArrivalKind.DUPLICATE
    late = arrivals.receive(straggler.frame, 1_310)
    assert (late.kind, late.usable) == (ArrivalKind.REORDERED, False)
    assert arrivals.audio_ms == before_ms
    assert lost_ms(feed(arrivals, frames[15:])) == 0


def test_counters_that_start_anew_are_a_new_stream_not_a_hole() -> None:
    arrivals = Arrivals()
    feed(arrivals, stream(500))
    second = [replace(t, now_ms=t.now_ms + 12_000) for t in stream(50, lost={20}, first_ms=0)]
    results = feed(arrivals, second)
    assert lost_ms(results) == 20
    assert all(r.usable for r in results)
    arrivals.restart()
    third = [replace(t, now_ms=t.now_ms + 14_000) for t in stream(50, first_ms=0)]
    assert all(r.usable and not r.lost_ms for r in feed(arrivals, third))


def test_a_frame_without_audio_or_with_odd_numbers_does_no_harm() -> None:
    arrivals = Arrivals()
    for frame in (
        LineFrame(0, 0, 0, b""),
        LineFrame(-1, -7, -(10**12), b""),
        LineFrame(10**18, 10**18, 10**18, QUIET),
        LineFrame(3, 2, 1, QUIET),
    ):
        assert arrivals.receive(frame, 0.0).missing_ms <= 400
    assert arrivals.snapshot(float(10**9), 1_000).concealed_ms >= 0


def test_an_hour_with_drifting_clocks_and_jitter_stays_true_and_small() -> None:
    """100 ppm of drift either way, jitter of 0-15 ms, 1 % loss: every hole found to the millisecond."""
    for drift in (1 + 1e-4, 1 - 1e-4):
        jitter = random.Random(3)
        lost = {n for n in range(10, 60_000) if jitter.random() < 0.01}
        arrivals = Arrivals()
        found = 0
        for timed in stream(60_000, lost):
            result = arrivals.receive(timed.frame, timed.now_ms * drift + jitter.random() * 15)
            found += result.lost_ms
        assert found == 20 * len(lost)
        assert arrivals.audio_to_stream_ms(arrivals.audio_ms) == pytest.approx(135 + 20 * 60_000, abs=1)


@settings(max_examples=150, deadline=None)
@given(
    st.sets(st.integers(3, 148), max_size=90),
    st.lists(st.integers(0, 300), min_size=150, max_size=150),
    st.sampled_from(sorted({*WITNESSES_LESS_ONE} - {"timestamps see nothing"})),
    st.integers(0, 500),
)
def test_the_sum_of_holes_is_exact_whatever_the_delays(
    lost: set[int], delays_ms: list[int], name: str, max_insert_ms: int
) -> None:
    """The line is TCP: delayed frames keep their order, so each comes at the latest delay so far."""
    frames = edit(stream(150, lost), WITNESSES_LESS_ONE[name])
    now_ms, delayed = 0.0, []
    for timed, delay_ms in zip(frames, [0, 0, *delays_ms], strict=False):
        now_ms = max(now_ms, timed.now_ms + delay_ms)
        delayed.append(replace(timed, now_ms=now_ms))
    arrivals = Arrivals(max_insert_ms)
    results = feed(arrivals, delayed)
    assert lost_ms(results) == 20 * len({n for n in lost if n < max(set(range(150)) - lost)})
    assert all(r.missing_ms == min(r.lost_ms, max_insert_ms) for r in results)
    assert arrivals.audio_ms == 20 * len(frames) + sum(r.missing_ms for r in results)


# -- the map -----------------------------------------------------------------------------------------------


def test_audio_time_maps_to_stream_time_across_holes_inserted_in_part() -> None:
    arrivals = Arrivals(max_insert_ms=100)
    feed(arrivals, stream(100, lost={10, *range(20, 50)}))
    assert arrivals.audio_to_stream_ms(0) == 135
    assert arrivals.audio_to_stream_ms(215) == 350  # within the hole of one frame, concealed whole
    assert arrivals.audio_to_stream_ms(400) == 535
    assert arrivals.audio_to_stream_ms(450) == 585  # inside what was inserted of the long hole
    assert arrivals.audio_to_stream_ms(500) == 135 + 1_000
    assert arrivals.audio_to_stream_ms(arrivals.audio_ms) == 135 + 2_000
    assert Arrivals().audio_to_stream_ms(70) == 70


# -- statistics --------------------------------------------------------------------------------------------


def test_statistics_of_a_window() -> None:
    arrivals = Arrivals()
    assert arrivals.snapshot(0, 1_000) == NetworkState()
    feed(arrivals, stream(100, lost={70, *range(80, 85)}, first_ms=0))  # ends at stream 2000, clock 2980
    state = arrivals.snapshot(2_980, 1_000)
    assert (state.concealed_ms, state.silence_concealed_ms) == (120, 40)
    assert state.since_concealment_ms == 300
    assert state.loss_rate == pytest.approx(0.12)
    assert state.stall_ms == 0
    assert arrivals.snapshot(2_980, 500).concealed_ms == 100
    assert (
        arrivals.snapshot(2_980, 320).concealed_ms == 50
    )  # the window starts on the 50 ms grid, in the hole


def test_silence_on_the_line_counts_as_a_stall_while_it_lasts_and_after() -> None:
    arrivals = Arrivals()
    frames = stream(100, first_ms=0)
    feed(arrivals, frames)
    assert arrivals.snapshot(2_980 + 320, 1_000).stall_ms == 300
    arrivals.receive(LineFrame(102, 101, 2_000, QUIET), 2_980 + 320)
    assert arrivals.snapshot(2_980 + 320, 1_000).stall_ms == 300
    assert arrivals.snapshot(2_980 + 1_340, 1_000).concealed_ms == 0


def test_silence_that_begins_in_mid_speech_is_weak_evidence_reported_apart() -> None:
    loud, silent = b"\x00\x80" * 80, b"\xff" * FRAME_BYTES
    arrivals = Arrivals()
    pattern = [loud] * 5 + [silent] * 3 + [loud] * 5 + [QUIET] * 2 + [silent] * 9 + [loud] * 2 + [silent] * 50
    for timed, ulaw in zip(stream(len(pattern)), pattern, strict=True):
        assert arrivals.receive(replace(timed.frame, ulaw=ulaw), timed.now_ms).lost_ms == 0
    assert arrivals.reception.suspect_ms == 60 + 500


def test_an_hour_of_losses_and_stalls_keeps_no_more_than_ten_minutes_of_them() -> None:
    """Frames are 20 ms: 30,000 in ten minutes, 180,000 in an hour. Pickled size stands for memory held."""
    chance = random.Random(5)
    arrivals, late_ms = Arrivals(), 0.0
    sizes: dict[int, int] = {}
    for number in range(180_000):
        late_ms = max(0.0, late_ms - 20) + (200.0 if chance.random() < 0.01 else 0.0)
        if chance.random() >= 0.02:
            frame = LineFrame(number + 2, number + 1, 135 + 20 * number, QUIET)
            arrivals.receive(frame, 1_000.0 + 20 * number + late_ms)
        if number % 30_000 == 29_999:
            sizes[number] = len(pickle.dumps(arrivals))
    assert max(sizes.values()) <= 1.05 * sizes[29_999]
    assert sizes[29_999] < 60_000
