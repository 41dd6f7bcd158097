"""Which calls count as alive, and what comes after a stream, on a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from callflows.away import Trip
from callflows.engine import FlowState
from callflows.parse import load_folder
from ivr import liveness
from ivr.call import CallEnd
from ivr.core.commands import EndReason, TransferCall
from ivr.liveness import Liveness
from ivr.places import SHIPPED_FLOWS
from ivr.registry import Registry
from ivr.secondway import SecondWay
from ivr.web.deps import Ended, GoOn, StatusReport, TransferTo
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.errors import StaleEpoch
from memory.model import EndedBy, Exchange, Owner
from memory.store import AudioPaths, Store
from tests.integration.test_rescue import PUBLIC, NotedTelephony

BUSINESS, CALLER, NUMBER = "harbor-dental", "+12025550143", "+16175550140"


async def opened(store: Store, call_sid: str) -> int:
    """A call with a stream; its epoch."""
    await store.open_call(call_sid, BUSINESS, CALLER, NUMBER, "hash")
    return await store.claim_stream(call_sid, "MZ1")


async def status(store: Store, call_sid: str) -> CallStatus:
    row = await store.get_call(call_sid)
    assert row is not None
    return row.status


async def age(database_url: str, seconds: int) -> None:
    """Let all calls have been heard of so long ago.

    A beat that holds a row's lock runs in this loop, so the loop must not be what waits for the lock.
    """
    async with await psycopg.AsyncConnection.connect(
        conninfo_of(database_url), autocommit=True
    ) as connection:
        await connection.execute(
            "UPDATE calls SET last_activity_at = now() - make_interval(secs => %s)", (seconds,)
        )


async def until_it_is(store: Store, call_sid: str, wanted: CallStatus) -> None:
    async with asyncio.timeout(10):
        while await status(store, call_sid) is not wanted:  # noqa: ASYNC110  # a row has no event
            await asyncio.sleep(0.02)


@pytest.fixture
async def alive(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Liveness]:
    """A quick one, beating."""
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 0.05)
    monkeypatch.setattr(liveness, "BEAT_S", 0.05)
    found = Liveness(store, SecondWay(NotedTelephony(), None))
    beating = asyncio.create_task(found.run())
    yield found
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    await found.close()


async def test_b090_a_stream_that_does_not_come_back_is_a_dropped_call(store: Store, alive: Liveness) -> None:
    epoch = await opened(store, "CA1")
    alive.began("CA1", lambda: epoch)
    alive.left("CA1", epoch)
    await until_it_is(store, "CA1", CallStatus.DROPPED)


async def test_b097_a_call_that_goes_on_at_another_worker_is_not_dropped(
    store: Store, alive: Liveness
) -> None:
    epoch = await opened(store, "CA1")
    alive.left("CA1", epoch)
    await store.claim_stream("CA1", "MZ2")  # by the other worker
    control = await opened(store, "CA2")
    alive.left("CA2", control)
    await until_it_is(store, "CA2", CallStatus.DROPPED)
    assert await status(store, "CA1") is CallStatus.ACTIVE


async def test_a_live_call_is_kept_fresh_and_one_of_nobody_swept_up(
    store: Store, alive: Liveness, database_url: str
) -> None:
    epoch = await opened(store, "CA1")
    await opened(store, "CA2")
    alive.began("CA1", lambda: epoch)
    alive.began("CA3", lambda: None)  # began without a database
    await age(database_url, 59)
    await asyncio.sleep(0.3)
    assert await store.drop_stale(timedelta(seconds=50)) == ["CA2"]
    await opened(store, "CA4")
    alive.over("CA1")
    await age(database_url, 61)
    await until_it_is(store, "CA4", CallStatus.DROPPED)


async def test_b100_a_status_of_a_call_that_was_refused_is_no_fault(store: Store, alive: Liveness) -> None:
    alive.told_over("CA404")
    epoch = await opened(store, "CA1")
    alive.left("CA1", epoch)
    await until_it_is(store, "CA1", CallStatus.DROPPED)
    assert await store.get_call("CA404") is None


async def test_settling_is_about_one_caller_of_one_business(
    store: Store, database_url: str, alive: Liveness
) -> None:
    await opened(store, "CA1")
    await store.open_call("CA2", BUSINESS, "+12025550199", NUMBER, "hash")
    await store.open_call("CA3", "northside-plumbing", CALLER, NUMBER, "hash")
    await store.open_call("CA4", BUSINESS, None, NUMBER, "hash")
    await age(database_url, 20)
    await alive.settle(BUSINESS, None)
    assert await status(store, "CA4") is CallStatus.ACTIVE
    await alive.settle(BUSINESS, CALLER)
    statuses = [await status(store, sid) for sid in ("CA1", "CA2", "CA3", "CA4")]
    assert statuses == [CallStatus.DROPPED, *[CallStatus.ACTIVE] * 3]


async def test_settling_leaves_alone_whom_twilio_still_has(
    store: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A switchboard: two people call from one number, and one of their streams breaks as the other begins."""
    telephony = NotedTelephony()
    telephony.over.update({"CA2", "CA4"})
    alive = Liveness(store, SecondWay(telephony, PUBLIC))
    for call_sid in ("CA1", "CA2"):
        alive.left(call_sid, await opened(store, call_sid))
    await opened(store, "CA3")  # its worker is gone, and so is that of CA4
    await opened(store, "CA4")
    await asyncio.to_thread(_age_two, database_url)
    await alive.settle(BUSINESS, CALLER)
    rows = [await store.get_call(sid) for sid in ("CA1", "CA2", "CA3", "CA4")]
    assert [(row.status, row.ended_by) for row in rows if row is not None] == [
        (CallStatus.ACTIVE, None),
        (CallStatus.DROPPED, EndedBy.TWILIO),
        (CallStatus.ACTIVE, None),
        (CallStatus.DROPPED, EndedBy.WORKER),
    ]
    await alive.close()


def _age_two(database_url: str) -> None:
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute(
            "UPDATE calls SET last_activity_at = now() - interval '20 s' WHERE call_sid IN ('CA3', 'CA4')"
        )


async def test_what_counted_as_dropped_and_comes_all_the_same_goes_on(store: Store) -> None:
    registry = Registry(store, load_folder(SHIPPED_FLOWS), NotedTelephony())
    epoch = await opened(store, "CA1")
    registry.liveness.left("CA1", epoch)
    await registry.liveness.settle(BUSINESS, CALLER)  # without REST nobody can be asked
    assert await status(store, "CA1") is CallStatus.DROPPED
    assert await registry.outcome("CA1") == GoOn()
    row = await store.get_call("CA1")
    assert row is not None
    assert (row.status, row.ended_by, row.ended_at, row.epoch) == (CallStatus.ACTIVE, None, None, epoch + 1)
    await store.end_call("CA1", CallStatus.DROPPED, by=EndedBy.CALLER)
    assert await registry.outcome("CA1") == Ended()  # they hung up: nobody is there
    await registry.liveness.close()


ENDS = [
    (CallStatus.FINISHED, EndedBy.US, "finished"),
    (CallStatus.FINISHED, EndedBy.CALLER, "finished: hung up after the goodbye"),
    (CallStatus.TRANSFERRED, EndedBy.US, "transferred"),
    (CallStatus.DROPPED, EndedBy.CALLER, "hung up before the goodbye"),
    (CallStatus.DROPPED, EndedBy.US, "dropped: nobody was heard"),
    (CallStatus.DROPPED, EndedBy.NETWORK, "dropped by the caller's network"),
    (CallStatus.DROPPED, EndedBy.WORKER, "dropped by a worker of ours"),
    (CallStatus.DROPPED, EndedBy.TWILIO, "dropped by Twilio"),
    (CallStatus.DROPPED, None, "dropped"),
    (CallStatus.FAILED, EndedBy.MODEL, "failed: no speech model"),
    (CallStatus.FAILED, EndedBy.TWILIO, "failed: its streams came and went"),
]


@pytest.mark.parametrize(("how", "by", "shown"), ENDS)
async def test_how_a_call_ended_is_kept_and_only_unfinished_ones_are_offered(
    store: Store, how: CallStatus, by: EndedBy | None, shown: str
) -> None:
    await opened(store, "CA1")
    await store.commit_page(Owner(BUSINESS, CALLER), Exchange("CA1", 1, "One.", "Yes."), AudioPaths())
    await store.end_call("CA1", how, by=by)
    row = await store.get_call("CA1")
    assert row is not None
    assert (row.status, row.ended_by, row.ending) == (how, by, shown)
    assert row.brief_ending == (f"{how} by {by}" if by not in (None, EndedBy.US) else str(how))
    found = await store.find_dropped(BUSINESS, CALLER, timedelta(hours=2), datetime.now(UTC))
    assert (found is not None) == (how is CallStatus.DROPPED)


async def test_all_leases_are_renewed_at_once_and_each_by_its_holder(store: Store, database_url: str) -> None:
    mine = await opened(store, "CA1")
    await store.open_call("CA2", "northside-plumbing", CALLER, NUMBER, "hash")
    other = await store.claim_stream("CA2", "MZ1")
    lost = await opened(store, "CA3")
    await store.claim_stream("CA3", "MZ2")  # by another worker
    await opened(store, "CA4")  # of nobody
    await age(database_url, 9)
    held = {"CA1": mine, "CA2": other, "CA3": lost, "CA404": 1}
    assert await store.renew_all(held) == ["CA3"]
    assert sorted(await store.lapsed(timedelta(seconds=5))) == [("CA3", lost + 1), ("CA4", 1)]
    assert await store.renew_all({}) == []


async def test_one_call_that_is_being_written_does_not_hold_up_the_leases_of_others(
    store: Store, database_url: str
) -> None:
    held = {call_sid: await opened(store, call_sid) for call_sid in ("CA1", "CA2")}
    await age(database_url, 9)
    async with await psycopg.AsyncConnection.connect(conninfo_of(database_url)) as writer:
        await writer.execute("SELECT FROM calls WHERE call_sid = 'CA1' FOR UPDATE")
        assert await store.renew_all(held) == []
        assert [sid for sid, _ in await store.lapsed(timedelta(seconds=5))] == ["CA1"]


async def test_an_end_is_known_before_it_is_written_and_without_a_database(store: Store) -> None:
    registry = Registry(store, load_folder(SHIPPED_FLOWS), NotedTelephony())
    epoch = await opened(store, "CA1")
    assert await registry.outcome("CA1") == GoOn()
    registry.knows_end("CA1", BUSINESS, CallEnd(None), epoch)
    assert await registry.outcome("CA1") == GoOn()
    flow = FlowState(1, "front", ended="transferred", target="front_desk", trip=Trip(1, ("front_desk",)))
    left = TransferCall("front_desk", "", flow)
    registry.knows_end("CA1", BUSINESS, CallEnd(EndReason.TRANSFERRED, left=left), epoch)
    assert await registry.outcome("CA1") == TransferTo("+16175550141", leg=1, language="en-US")
    await store.claim_stream("CA1", "MZ2")  # the caller came back elsewhere: that end is of the past
    assert await registry.outcome("CA1") == GoOn()
    registry.knows_end("CA2", BUSINESS, CallEnd(EndReason.FINISHED), None)
    nowhere = Registry(Store("postgresql://127.0.0.1:9/none"), load_folder(SHIPPED_FLOWS), NotedTelephony())
    nowhere.knows_end("CA2", BUSINESS, CallEnd(EndReason.FINISHED), None)
    assert await nowhere.outcome("CA2") == Ended()


async def test_a_status_callback_ends_a_call_whose_stream_was_never_seen(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 0.05)
    registry = Registry(store, load_folder(SHIPPED_FLOWS), NotedTelephony())
    await opened(store, "CA1")
    await registry.status(StatusReport("CA1", "in-progress"))
    await registry.status(StatusReport("CA1", "completed", stream_event="stream-stopped"))
    await opened(store, "CA2")
    await registry.status(StatusReport("CA2", "completed"))
    await until_it_is(store, "CA2", CallStatus.DROPPED)
    assert await status(store, "CA1") is CallStatus.ACTIVE
    await registry.liveness.close()


class Workers:
    """Two of them on one database, one of which carries CA1 and stops whenever the test wants it."""

    def __init__(self, store: Store, telephony: NotedTelephony) -> None:
        self.telephony = telephony
        self.survivor = Liveness(store, SecondWay(telephony, PUBLIC))
        self.beating = asyncio.create_task(self.survivor.run())

    async def close(self) -> None:
        self.beating.cancel()
        with suppress(asyncio.CancelledError):
            await self.beating
        await self.survivor.close()


@pytest.fixture
async def workers(store: Store, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Workers]:
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 0.2)
    monkeypatch.setattr(liveness, "BEAT_S", 0.05)
    monkeypatch.setattr(liveness, "LAPSED_AFTER", timedelta(seconds=1))
    found = Workers(store, NotedTelephony())
    yield found
    await found.close()


async def test_a_call_whose_worker_is_gone_is_taken_once_and_brought_back(
    store: Store, workers: Workers
) -> None:
    epoch = await opened(store, "CA1")
    other = Liveness(store, SecondWay(workers.telephony, PUBLIC))
    beating = asyncio.create_task(other.run())
    async with asyncio.timeout(10):
        while not workers.telephony.updates:  # noqa: ASYNC110  # another process's doing has no event
            await asyncio.sleep(0.02)
    with pytest.raises(StaleEpoch):  # should it only have slept
        await store.touch("CA1", epoch)
    claimed = await store.claim_stream("CA1", "MZ2")
    assert claimed == epoch + 2
    other.began("CA1", lambda: claimed)
    await asyncio.sleep(0.5)
    beating.cancel()
    await other.close()
    assert [sid for sid, _ in workers.telephony.updates] == ["CA1"]
    assert await status(store, "CA1") is CallStatus.ACTIVE


async def test_what_does_not_come_back_is_asked_about_and_given_up(store: Store, workers: Workers) -> None:
    """Twilio still has CA1, and sends it on each time; CA2 it has not any more."""
    workers.telephony.over.add("CA2")
    await opened(store, "CA1")
    await opened(store, "CA2")
    await until_it_is(store, "CA2", CallStatus.DROPPED)
    await until_it_is(store, "CA1", CallStatus.DROPPED)
    assert workers.telephony.hung_up == ["CA1"]
    sent = [sid for sid, _ in workers.telephony.updates]
    assert (sent.count("CA1"), sent.count("CA2")) == (liveness.TRIES, 1)


async def test_nothing_is_taken_right_after_an_outage_or_without_a_second_way(
    store: Store, workers: Workers, alive: Liveness, database_url: str
) -> None:
    epoch = await opened(store, "CA1")
    alive.began("CA1", lambda: epoch)
    await age(database_url, 30)
    assert not workers.survivor._may_take()  # it has not beaten for as long as a lease lasts
    await asyncio.sleep(2)
    assert workers.survivor._may_take()
    assert not alive._may_take()
    assert workers.telephony.updates == []


async def test_a_worker_learns_that_its_call_was_taken(store: Store, alive: Liveness) -> None:
    epoch = await opened(store, "CA1")
    told = asyncio.Event()
    alive.began("CA1", lambda: epoch, told.set)
    await store.claim_stream("CA1", "MZ2")
    async with asyncio.timeout(10):
        await told.wait()


async def test_two_workers_do_not_take_a_call_that_is_gone_from_each_other_for_ever(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lease lapses sooner than a call that was sent for is given up: who has sent for it holds it meanwhile."""
    monkeypatch.setattr(liveness, "GONE_AFTER_S", 1.5)
    monkeypatch.setattr(liveness, "BEAT_S", 0.05)
    monkeypatch.setattr(liveness, "LAPSED_AFTER", timedelta(seconds=0.4))
    workers = [Workers(store, NotedTelephony()) for _ in range(2)]
    for worker in workers:
        worker.telephony.over.add("CA1")
    await opened(store, "CA1")
    await until_it_is(store, "CA1", CallStatus.DROPPED)
    assert sorted(len(worker.telephony.updates) for worker in workers) == [0, 1]
    row = await store.get_call("CA1")
    assert row is not None and row.ended_by is EndedBy.WORKER
    for worker in workers:
        await worker.close()
