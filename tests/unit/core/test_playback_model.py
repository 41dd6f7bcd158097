"""What playback claims was heard, at any time, against what a plain model of the line has played."""

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from ivr.core.playback import AHEAD_MS, MARK_BYTES, Playback
from tests.unit.core.line_model import LineModel

ITEMS = 4


@dataclass(frozen=True)
class Queue:
    """More of an item's audio."""

    item: int
    size: int


@dataclass(frozen=True)
class Finish:
    item: int


@dataclass(frozen=True)
class Clear:
    pass


@dataclass(frozen=True)
class Wait:
    """Time passes; the worker ticks each `tick_ms`."""

    duration_ms: int
    tick_ms: int = 20


Step = Queue | Finish | Clear | Wait
items = st.integers(0, ITEMS - 1)
queues = st.builds(Queue, items, st.sampled_from([0, 3, 160, 511, 1_600, 4_800, 12_000]))
waits = st.builds(Wait, st.sampled_from([5, 20, 60, 200, 500]), st.sampled_from([5, 20, 20, 300]))
steps = st.lists(
    st.one_of(queues, queues, waits, waits, st.builds(Finish, items), st.just(Clear())), max_size=25
)
lines = st.builds(
    LineModel,
    there_ms=st.sampled_from([0, 5, 40, 150]),
    back_ms=st.sampled_from([0, 5, 40, 150]),
    jitter_ms=st.sampled_from([0, 0, 10, 80]),
    lost_marks=st.sampled_from([0, 0, 4]),
    seed=st.integers(0, 2**32),
)


class Caller:
    """A playback, its line, and what is claimed to have been heard."""

    def __init__(self, line: LineModel) -> None:
        self.playback, self.line = Playback(), line
        self.made = [0] * ITEMS
        self.heard = [0] * ITEMS
        self.playback.start(0)

    def take(self, step: Step) -> None:
        match step:
            case Queue(item, size):
                # Every place of every item looks different, and never like silence.
                places = range(self.made[item], self.made[item] + size)
                self.playback.queue(str(item), bytes((61 * item + place * 7 // 5) % 251 for place in places))
                self.made[item] += size
            case Finish(item):
                self.playback.finish(str(item))
            case Clear():
                self.line.send(self.playback.clear(self.line.now_ms))
            case Wait(duration_ms, tick_ms):
                self._wait(duration_ms, tick_ms)
        self._compare()

    def _wait(self, duration_ms: int, tick_ms: int) -> None:
        end_ms = self.line.now_ms + duration_ms
        while self.line.now_ms < end_ms:
            self.line.send(self.playback.tick(self.line.now_ms))
            # A way that grows shorter brings what follows sooner than the start.
            assert self.line.buffered_bytes() <= (AHEAD_MS + self.line.jitter_ms) * 8
            for name in self.line.advance(min(tick_ms, end_ms - self.line.now_ms)):
                self.playback.mark(name, self.line.now_ms)
            self._compare()

    def _compare(self) -> None:
        heard = [self.playback.heard_bytes(str(item)) for item in range(ITEMS)]
        played = bytes(self.line.played)
        assert sum(map(len, heard)) <= len(played)
        assert all(one in played for one in heard)
        lengths = [len(one) for one in heard]
        assert all(now >= before for now, before in zip(lengths, self.heard, strict=True))
        self.heard = lengths


@settings(max_examples=60, deadline=None)
@given(lines, steps)
def test_nothing_counts_as_heard_that_was_not_played(line: LineModel, steps: list[Step]) -> None:
    caller = Caller(line)
    for step in steps:
        caller.take(step)
    for item in range(ITEMS):
        caller.take(Finish(item))
    caller.take(Wait(sum(caller.made) // 8 + 1_500))
    assert caller.playback.is_idle(line.now_ms)
    for item in range(ITEMS):
        heard, unheard = caller.playback.heard_bytes(str(item)), caller.playback.unheard(str(item))
        assert len(heard + unheard) == caller.playback.queued_ms(str(item)) * 8
        if Clear() not in steps and not line.lost_marks:
            assert caller.playback.played_to_end(str(item))
            assert unheard == b""


@settings(max_examples=60, deadline=None)
@given(lines, st.integers(1, 3_000))
def test_of_a_flowing_reply_no_more_is_missed_than_a_mark_interval_and_the_way_there_and_back(
    line: LineModel, duration_ms: int
) -> None:
    line.lost_marks = 0
    caller = Caller(line)
    caller.take(Queue(0, 8 * 4_000))
    caller.take(Wait(duration_ms))
    way_ms = line.there_ms + line.back_ms + 2 * line.jitter_ms
    missed_bytes = len(line.played) - caller.heard[0]
    assert missed_bytes <= MARK_BYTES + 8 * (way_ms + 21)
