"""Recorded calls, losses and delays through the wire codec and the arrivals."""

from itertools import pairwise
from pathlib import Path

import pytest

from ivr.bench.conceal import load_losses
from ivr.core.arrivals import Arrival, Arrivals
from ivr.core.events import LineFrame
from ivr.core.units import ulaw_ms
from ivr.wire.twilio import Bad, StartInfo, decode
from tests.data.recorded import delays_ms, files, folder, in_order_ms

CALLS = files("calls", "*.jsonl")
DELAYS = files("loss", "*.delay_ms.txt")
LOSSES = load_losses(folder("loss"))
BOUND_MS = 400


def frames_of(path: Path) -> list[LineFrame]:
    messages = [decode(line) for line in path.read_text().splitlines() if line]
    assert not any(isinstance(message, Bad) for message in messages)
    assert sum(isinstance(message, StartInfo) for message in messages) == 1
    return [message for message in messages if isinstance(message, LineFrame)]


def frame(number: int, *, counted: int) -> LineFrame:
    return LineFrame(counted + 2, counted + 1, 135 + 20 * number, b"\x7e" * 160)


def played(lost: list[bool], times_ms: list[float], *, is_numbered: bool) -> list[Arrival]:
    """A stream with these losses; `is_numbered`: the counters count what was lost too."""
    arrivals, out, counted = Arrivals(BOUND_MS), [], 0
    for number, (gone, now_ms) in enumerate(zip(lost, times_ms, strict=True)):
        if not gone:
            out.append(arrivals.receive(frame(number, counted=counted), now_ms))
        counted += is_numbered or not gone
    return out


@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_a_recorded_call_has_no_holes(path: Path) -> None:
    frames, arrivals = frames_of(path), Arrivals()
    results = [arrivals.receive(frame, 5_000.0 + 20 * no) for no, frame in enumerate(frames)]
    assert len(results) > 100
    assert all(result == Arrival(result.kind) and result.usable for result in results)
    length_ms = sum(ulaw_ms(frame.ulaw) for frame in frames)
    assert arrivals.audio_ms == length_ms
    assert arrivals.audio_to_stream_ms(length_ms) == pytest.approx(frames[0].timestamp_ms + length_ms, abs=2)


@pytest.mark.parametrize("trace", sorted(LOSSES))
@pytest.mark.parametrize("path", CALLS, ids=lambda path: path.stem)
def test_a_recorded_call_that_loses_frames_is_found_to_lose_just_those(path: Path, trace: str) -> None:
    arrivals = Arrivals(BOUND_MS)
    every = list(enumerate(frames_of(path)))
    kept = [(no, frame) for no, frame in every if not LOSSES[trace][no % len(LOSSES[trace])]]
    results = [arrivals.receive(frame, 5_000.0 + 20 * no) for no, frame in kept]
    inside = kept[-1][0] - kept[0][0] + 1 - len(kept)
    assert sum(result.lost_ms for result in results) == 20 * inside


@pytest.mark.parametrize("is_numbered", [True, False])
@pytest.mark.parametrize("trace", sorted(LOSSES))
def test_recorded_losses_are_found_exactly(trace: str, is_numbered: bool) -> None:
    lost = [False, *LOSSES[trace], False]
    results = played(lost, [20.0 * no for no in range(len(lost))], is_numbered=is_numbered)
    assert sum(result.lost_ms for result in results) == 20 * sum(lost)
    assert all(result.missing_ms == min(result.lost_ms, BOUND_MS) for result in results)


@pytest.mark.parametrize("path", DELAYS, ids=lambda path: path.stem)
def test_recorded_delays_are_no_losses(path: Path) -> None:
    times = in_order_ms(delays_ms(path))
    results = played([False] * len(times), times, is_numbered=True)
    assert not any(result.lost_ms for result in results)
    assert all(result.usable for result in results)
    worst_wait_ms = max(later - earlier for earlier, later in pairwise(times)) - 20
    assert max(result.stalled_ms for result in results) == pytest.approx(max(worst_wait_ms, 0), abs=0.01)


@pytest.mark.parametrize("trace", sorted(LOSSES))
@pytest.mark.parametrize("path", DELAYS, ids=lambda path: path.stem)
def test_losses_are_found_exactly_among_delays(path: Path, trace: str) -> None:
    times = in_order_ms(delays_ms(path))
    losses = LOSSES[trace]
    lost = [0 < no < len(times) - 1 and losses[no % len(losses)] for no in range(len(times))]
    results = played(lost, times, is_numbered=True)
    assert sum(result.lost_ms for result in results) == 20 * sum(lost)
