"""Whose pages are kept, and for how long: the memory's holds counted by hand."""

import asyncio
from typing import cast

from ivr.preloading import Preloading
from memory.model import Owner
from memory.service import Memory

ANA = Owner("bakery", "+12025550111")
NOBODY = Owner("bakery", None)


class Holds:
    def __init__(self) -> None:
        self.held: list[Owner] = []
        self.warmed: list[Owner] = []
        self.callers = self

    def hold(self, owner: Owner) -> None:
        self.held.append(owner)

    def release(self, owner: Owner) -> None:
        self.held.remove(owner)

    async def warm(self, owner: Owner) -> None:
        self.warmed.append(owner)


async def turns() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_call_is_warm_from_its_webhook_to_its_end() -> None:
    holds = Holds()
    preloading = Preloading(cast(Memory, holds), expected_s=0.0)
    preloading.expect(ANA)
    assert holds.held == [ANA]
    with preloading.live(ANA):
        await turns()  # the stream came; whoever was only expected is not held any more
        assert (holds.held, holds.warmed) == ([ANA], [ANA, ANA])
    assert holds.held == []


async def test_an_announced_call_that_never_comes_is_let_go() -> None:
    holds = Holds()
    Preloading(cast(Memory, holds), expected_s=0.0).expect(ANA)
    await turns()
    assert holds.held == []


async def test_nobody_has_nothing_to_read() -> None:
    holds = Holds()
    preloading = Preloading(cast(Memory, holds))
    preloading.expect(NOBODY)
    with preloading.live(NOBODY):
        await turns()
    assert (holds.held, holds.warmed) == ([], [])
    await preloading.close()
