"""Whatever is slow beside a call, its frames wait for nothing. In simulated time, so that a wait of 1 ms would show."""

import asyncio
from collections.abc import Callable

import pytest

from callflows.parse import parse_text
from ivr.core import events as ev
from memory.model import Window
from tests.unit.core.call_rig import Rig, play, tone
from tests.unit.test_call import LOOKING

SLOW_S = 60.0
FRAMES = 100


async def never(*_: object) -> Window:
    await asyncio.sleep(SLOW_S)
    return Window()


def slow_journal(rig: Rig) -> None:
    """A disk, or a database, that takes a minute for each write."""

    async def write(what: object) -> None:
        await asyncio.sleep(SLOW_S)

    rig.journal._write = write  # type: ignore[method-assign]


def slow_recall(rig: Rig) -> None:
    rig.recall.answer = never


async def frames(rig: Rig) -> list[float]:
    """For each of two seconds' frames, how long it took to the model, in simulated ms."""
    waits: list[float] = []
    for number in range(1, FRAMES + 1):
        put_ms, heard = rig.clock.now_ms(), asyncio.Event()
        rig.model.on_heard = heard.set
        rig.line.incoming.put_nowait(ev.LineFrame(number + 1, number, number * 20, b"\xff" * 160))
        await heard.wait()
        waits.append(rig.clock.now_ms() - put_ms)
        await asyncio.sleep(0.02)
    return waits


@pytest.mark.parametrize("slow", [slow_journal, slow_recall])
def test_a_slow_disk_or_memory_keeps_no_frame_waiting(slow: Callable[[Rig], None]) -> None:
    async def scene() -> None:
        rig = Rig()
        slow(rig)
        await rig.greet()
        await rig.ask("When do you open?")
        assert max(await frames(rig)) < 1
        await rig.speak("At nine.", tone(1_000))
        assert len(rig.line.sound()) >= 1_500 * 8  # the greeting of half a second and all of the answer
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)


def test_a_slow_tool_keeps_no_frame_waiting_and_what_is_said_meanwhile_is_heard() -> None:
    async def scene() -> None:
        rig = Rig(business=parse_text(LOOKING, "shop.yaml"))
        rig.tools.takes_s = SLOW_S
        await asyncio.sleep(0.3)
        await rig.speak("The Shop. One moment.", tone(600))
        assert len(rig.tools.used) == 1
        assert max(await frames(rig)) < 1
        assert len(rig.line.sound()) >= 600 * 8
        rig.line.incoming.put_nowait(ev.LineStopped())
        await rig.ended()

    play(scene)
