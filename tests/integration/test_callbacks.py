"""Twilio's callbacks in any order, twice or never: one end of a call, once, and the same end."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from itertools import permutations

import psycopg
import pytest

from callflows.parse import load_folder
from ivr import liveness
from ivr.places import SHIPPED_FLOWS
from ivr.registry import Registry
from ivr.web.deps import Ended, GoOn, StatusReport
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.model import EndedBy
from memory.store import Store
from tests.integration.test_liveness import BUSINESS, CALLER, NUMBER
from tests.integration.test_rescue import PUBLIC, NotedTelephony

Happening = Callable[[Registry, str, int], Awaitable[object]]


async def socket_closed(registry: Registry, call_sid: str, epoch: int) -> None:
    """Our own end of the stream, without a `stop`."""
    registry.liveness.left(call_sid, epoch)


async def stopped(registry: Registry, call_sid: str, epoch: int) -> None:
    """`stop`: the caller left, and we have written that."""
    await registry._store.end_call(call_sid, CallStatus.DROPPED, epoch, by=EndedBy.CALLER)
    registry.liveness.over(call_sid)


async def completed(registry: Registry, call_sid: str, epoch: int) -> None:
    await registry.status(StatusReport(call_sid, "completed"))


async def stream_error(registry: Registry, call_sid: str, epoch: int) -> None:
    await registry.status(StatusReport(call_sid, "in-progress", "MZ1", "stream-error", "31924"))


async def stream_stopped(registry: Registry, call_sid: str, epoch: int) -> None:
    await registry.status(StatusReport(call_sid, "in-progress", "MZ1", "stream-stopped"))


async def asks_on(registry: Registry, call_sid: str, epoch: int) -> object:
    """The continue webhook."""
    return await registry.outcome(call_sid)


def orders(*happenings: Happening) -> Iterator[tuple[Happening, ...]]:
    """Each alone, some, all; in every order; the first and the last twice."""
    for count in range(1, len(happenings) + 1):
        for order in permutations(happenings, count):
            yield order
            yield (order[0], *order, order[-1])


class Shop:
    """A worker whose calls have streams, and Twilio, which has none of the calls any more."""

    def __init__(self, store: Store, database_url: str) -> None:
        self._database_url = database_url
        self.store = store
        self.telephony = NotedTelephony()
        self.registry = Registry(store, load_folder(SHIPPED_FLOWS), self.telephony, PUBLIC)
        self.calls: dict[str, tuple[Happening, ...]] = {}

    async def live(self, order: tuple[Happening, ...]) -> None:
        call_sid = f"CA{len(self.calls)}"
        self.calls[call_sid] = order
        self.telephony.over.add(call_sid)
        await self.store.open_call(call_sid, BUSINESS, CALLER, NUMBER, "hash")
        epoch = await self.store.claim_stream(call_sid, f"MZ{call_sid}")
        for happening in order:
            await happening(self.registry, call_sid, epoch)

    async def ends(self) -> dict[str, tuple[CallStatus, EndedBy | None]]:
        """How each has ended, once nobody is waited for any more and the sweep has been."""
        while self.registry.liveness._checks:
            await asyncio.gather(*(check.task for check in self.registry.liveness._checks.values()))
        with_age = "UPDATE calls SET last_activity_at = now() - interval '61 s' WHERE status = 'active'"
        async with await psycopg.AsyncConnection.connect(
            conninfo_of(self._database_url), autocommit=True
        ) as connection:
            await connection.execute(with_age)
        await self.store.drop_stale(timedelta(seconds=60))
        rows = [await self.store.get_call(call_sid) for call_sid in self.calls]
        return {row.call_sid: (row.status, row.ended_by) for row in rows if row is not None}

    async def close(self) -> None:
        await self.registry.rescue.close()
        await self.registry.liveness.close()


@pytest.fixture
async def shop(store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 0.05)
    return Shop(store, database_url)


async def test_a_caller_who_left_has_left_whatever_is_told_of_it(shop: Shop) -> None:
    for order in orders(stopped, completed, stream_stopped, asks_on):
        if stopped in order:
            await shop.live(order)
    ends = await shop.ends()
    wrong = {shop.calls[sid]: end for sid, end in ends.items() if end != (CallStatus.DROPPED, EndedBy.CALLER)}
    assert wrong == {}
    assert len(ends) > 60
    await shop.close()


async def test_a_stream_that_broke_and_a_call_that_is_over_is_dropped_once(shop: Shop) -> None:
    for order in orders(socket_closed, completed, stream_error):
        if socket_closed in order:
            await shop.live(order)
    ends = await shop.ends()
    wrong = {shop.calls[sid]: end for sid, end in ends.items() if end != (CallStatus.DROPPED, EndedBy.TWILIO)}
    assert wrong == {}
    await shop.close()


async def test_a_call_that_asks_on_after_all_is_not_lost_and_ends_when_nothing_follows(shop: Shop) -> None:
    for order in orders(socket_closed, completed, stream_error, asks_on):
        if asks_on in order:
            await shop.live(order)
    ends = await shop.ends()
    assert {status for status, _ in ends.values()} == {CallStatus.DROPPED}
    assert all(by is not None for _, by in ends.values())
    await shop.close()


async def test_a_call_that_goes_on_elsewhere_ends_with_nothing_that_is_told_late(shop: Shop) -> None:
    """Its new stream is at another worker, and what is told of the old one comes here, in any order."""
    store, registry = shop.store, shop.registry
    for number, order in enumerate(orders(socket_closed, stream_error, stream_stopped)):
        call_sid = f"CA{number}"
        await store.open_call(call_sid, BUSINESS, CALLER, NUMBER, "hash")
        epoch = await store.claim_stream(call_sid, "MZ1")
        await store.claim_stream(call_sid, "MZ2")
        for happening in order:
            await happening(registry, call_sid, epoch)
    while registry.liveness._checks:
        await asyncio.gather(*(check.task for check in registry.liveness._checks.values()))
    rows = [await store.get_call(f"CA{each}") for each in range(number + 1)]
    assert {row.status for row in rows if row is not None} == {CallStatus.ACTIVE}
    assert shop.telephony.hung_up == []
    await shop.close()


async def test_what_comes_after_the_end_is_answered_with_the_end(shop: Shop) -> None:
    await shop.live((stopped, completed))
    assert await shop.registry.outcome("CA0") == Ended()
    await shop.live((stream_error,))
    assert await shop.registry.outcome("CA1") == GoOn()
    await shop.close()
