"""The worker's pacing tick, in the time of a loop that jumps."""

import asyncio
from functools import partial
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from ivr.pacing import PHASES, SHARED_BY, TICK_MS, MonotonicClock, Pacer
from tests.unit.core.call_rig import play


class LoopClock(MonotonicClock):
    def now_ms(self) -> float:
        return asyncio.get_running_loop().time() * 1_000


async def ticks(calls: int, duration_ms: int) -> list[list[float]]:
    """When each of so many calls was ticked."""
    pacer = Pacer(LoopClock())
    times: list[list[float]] = [[] for _ in range(calls)]
    for mine in times:
        pacer.subscribe(mine.append)
    running = asyncio.create_task(pacer.run())
    await asyncio.sleep(duration_ms / 1_000)
    running.cancel()
    return times


@pytest.mark.parametrize("calls", [1, SHARED_BY, SHARED_BY + 1, 50])
def test_each_call_is_ticked_each_20_ms(calls: int) -> None:
    for mine in play(partial(ticks, calls, 1_010)):
        assert 49 <= len(mine) <= 51
        steps = [later - earlier for earlier, later in pairwise(mine)]
        assert steps == pytest.approx([TICK_MS] * len(steps))


def test_few_calls_share_a_wake_up_and_many_are_spread() -> None:
    assert len({mine[0] for mine in play(partial(ticks, SHARED_BY, 100))}) == 1
    firsts = [mine[0] for mine in play(partial(ticks, 50, 100))]
    assert len(set(firsts)) == PHASES
    assert max(firsts.count(first) for first in firsts) <= -(-50 // PHASES)


def test_who_stops_is_ticked_no_more_and_a_bug_of_one_stops_nobody_else() -> None:
    async def scene() -> list[float]:
        pacer, mine = Pacer(LoopClock()), list[float]()
        stop = pacer.subscribe(lambda now_ms: mine.append(now_ms))
        pacer.subscribe(lambda now_ms: [][0])
        running = asyncio.create_task(pacer.run())
        await asyncio.sleep(0.1)
        stop()
        before = len(mine)
        await asyncio.sleep(0.1)
        assert len(mine) == before
        running.cancel()
        return mine

    with capture_logs() as logs:
        assert len(play(scene)) >= 4
    assert {line["event"] for line in logs} == {"tick_failed"}


def test_nobody_is_waited_for_without_ticks() -> None:
    async def scene() -> None:
        pacer, mine = Pacer(LoopClock()), list[float]()
        running = asyncio.create_task(pacer.run())
        await asyncio.sleep(5)
        began_ms = LoopClock().now_ms()
        pacer.subscribe(mine.append)
        await asyncio.sleep(0.1)
        running.cancel()
        assert 0 < mine[0] - began_ms <= TICK_MS

    play(scene)
