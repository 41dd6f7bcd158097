"""Calls in a real database: idempotent webhooks, epochs, one end, resume within one caller."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from memory.calls import CallRow, CallStatus
from memory.errors import CallOver, StaleEpoch, UnknownCall
from memory.model import CallSnapshot, Exchange
from memory.store import WORKER_PREFIX, AudioPaths, Store

ANA = "+12025550111"
BEN = "+12025550122"
TO = "+12025550100"
TWO_HOURS = timedelta(hours=2)


async def open_call(store: Store, sid: str, business: str = "bakery", caller: str | None = ANA) -> CallRow:
    return await store.open_call(sid, business, caller, TO, "hash")


async def drop(store: Store, sid: str, business: str = "bakery", caller: str | None = ANA) -> None:
    row = await open_call(store, sid, business, caller)
    await store.commit_page(row.owner, Exchange(sid, 1, "Do you bake rye?", "Yes."), AudioPaths())
    await store.end_call(sid, CallStatus.DROPPED)


async def found(store: Store, business: str = "bakery", caller: str | None = ANA) -> str | None:
    row = await store.find_dropped(business, caller, TWO_HOURS, datetime.now(UTC))
    return row.call_sid if row else None


async def test_a_repeated_webhook_opens_the_call_once(store: Store) -> None:
    first = await open_call(store, "CA1")
    again = await store.open_call("CA1", "bakery", BEN, TO, "other")
    assert again == first
    assert (first.caller, first.status, first.epoch) == (ANA, CallStatus.ACTIVE, 0)
    assert await store.get_call("CA1") == first
    assert await store.get_call("CA2") is None


async def test_webhooks_at_the_same_time_open_one_call(store: Store) -> None:
    rows = await asyncio.gather(*(open_call(store, "CA1") for _ in range(8)))
    assert len({row.started_at for row in rows}) == 1


async def test_a_token_is_spent_once(store: Store) -> None:
    expires_at = datetime.now(UTC) + timedelta(minutes=1)
    spent = await asyncio.gather(*(store.spend_token("nonce", "CA1", expires_at) for _ in range(5)))
    assert sorted(spent) == [False, False, False, False, True]
    assert await store.forget_spent_tokens(expires_at + timedelta(seconds=1)) == 1
    assert await store.forget_spent_tokens(expires_at + timedelta(seconds=1)) == 0


async def test_the_newest_stream_owns_the_call(store: Store) -> None:
    await open_call(store, "CA1")
    old = await store.claim_stream("CA1", "MZ1")
    new = await store.claim_stream("CA1", "MZ2")
    assert (old, new) == (1, 2)
    assert await store.save_snapshot("CA1", new, CallSnapshot(1, {"node": "order"}))
    with pytest.raises(StaleEpoch):
        await store.save_snapshot("CA1", old, CallSnapshot(1, {"node": "start"}))
    with pytest.raises(StaleEpoch):
        await store.touch("CA1", old)
    with pytest.raises(StaleEpoch):
        await store.end_call("CA1", CallStatus.DROPPED, epoch=old)
    row = await store.get_call("CA1")
    assert row is not None
    assert row.snapshot == CallSnapshot(1, {"node": "order"})
    assert (row.stream_sid, row.status) == ("MZ2", CallStatus.ACTIVE)


async def test_unknown_and_ended_calls_are_told_apart(store: Store) -> None:
    with pytest.raises(UnknownCall):
        await store.claim_stream("CA1", "MZ1")
    await drop(store, "CA1")
    with pytest.raises(CallOver):
        await store.claim_stream("CA1", "MZ1")
    with pytest.raises(UnknownCall):
        await store.end_call("CA9", CallStatus.DROPPED)


async def test_a_call_ends_once(store: Store) -> None:
    await open_call(store, "CA1")
    ends = await asyncio.gather(
        *(store.end_call("CA1", status) for status in (CallStatus.FINISHED, CallStatus.DROPPED))
    )
    assert sorted(ends) == [False, True]
    row = await store.get_call("CA1")
    assert row is not None
    assert row.status is (CallStatus.FINISHED if ends[0] else CallStatus.DROPPED)
    assert row.ended_at is not None


async def test_the_last_snapshot_is_kept_though_the_call_ended_first(store: Store) -> None:
    await open_call(store, "CA1")
    epoch = await store.claim_stream("CA1", "MZ1")
    await store.end_call("CA1", CallStatus.DROPPED)
    assert await store.save_snapshot("CA1", epoch, CallSnapshot(1, {"node": "order"})) is False
    row = await store.get_call("CA1")
    assert row is not None and row.snapshot is not None
    assert row.snapshot.state == {"node": "order"}
    assert row.last_activity_at == row.ended_at


async def test_the_dropped_call_is_found_by_its_caller_only(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")  # the call that asks
    assert await found(store) == "CA1"
    assert await found(store, caller=BEN) is None
    assert await found(store, business="dentist") is None
    soon = datetime.now(UTC) + timedelta(hours=3)
    assert await store.find_dropped("bakery", ANA, TWO_HOURS, soon) is None


async def test_a_settled_call_after_it_leaves_nothing_to_resume(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")
    await store.end_call("CA2", CallStatus.FINISHED)
    assert await found(store) is None


async def test_a_failed_call_after_it_does_not_hide_it(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")
    await store.mark_resumed("CA2", "CA1")
    await store.end_call("CA2", CallStatus.FAILED)
    assert await found(store) == "CA1"


async def test_a_call_that_was_gone_on_with_is_not_offered_again(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")
    assert await store.mark_resumed("CA2", "CA1")
    assert await found(store) is None
    await store.end_call("CA2", CallStatus.DROPPED)
    assert await found(store) == "CA2"


async def test_only_ones_own_call_is_resumed(store: Store) -> None:
    await drop(store, "CA1")
    await drop(store, "CA2", caller=None)
    await open_call(store, "CA3", caller=BEN)
    await open_call(store, "CA4", business="dentist")
    await open_call(store, "CA5", caller=None)
    for sid, earlier in (("CA3", "CA1"), ("CA4", "CA1"), ("CA5", "CA2"), ("CA3", "CA3")):
        assert await store.mark_resumed(sid, earlier) is False


async def test_b083_hidden_numbers_resume_nothing(store: Store) -> None:
    await drop(store, "CA1", caller=None)
    await drop(store, "CA2", caller="")
    assert await found(store, caller=None) is None
    assert await found(store, caller="") is None
    row = await store.get_call("CA2")
    assert row is not None and row.caller is None


async def test_b082_an_empty_business_is_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="business_id"):
        await open_call(store, "CA1", business="")
    with pytest.raises(ValueError, match="business_id"):
        await found(store, business="")
    with pytest.raises(ValueError, match="business_id"):
        await store.list_calls("")


async def test_calls_are_listed_by_business_and_by_state(store: Store) -> None:
    for sid, business, caller in (("CA1", "bakery", ANA), ("CA2", "bakery", BEN), ("CA3", "dentist", ANA)):
        await open_call(store, sid, business, caller)
    await store.end_call("CA1", CallStatus.FINISHED)
    assert [row.call_sid for row in await store.list_calls("bakery")] == ["CA2", "CA1"]
    assert [row.call_sid for row in await store.list_calls("bakery", caller=ANA)] == ["CA1"]
    assert [row.call_sid for row in await store.active_calls()] == ["CA2", "CA3"]


async def test_a_flow_document_is_kept_under_its_hash(store: Store) -> None:
    await store.save_flow("h1", "name: Bakery")
    await store.save_flow("h1", "name: other")
    assert await store.get_flow("h1") == "name: Bakery"
    assert await store.get_flow("h2") is None


async def test_flow_documents_go_once_no_call_needs_them_and_nobody_has_them_in_use(store: Store) -> None:
    now = datetime.now(UTC)
    for flow, sid, end in (
        ("live", "CA1", None),
        ("resumable", "CA2", CallStatus.DROPPED),
        ("over", "CA3", CallStatus.FINISHED),
    ):
        await store.save_flow(flow, f"name: {flow}")
        await store.open_call(sid, "bakery", ANA, "+12025550100", flow)
        if end is not None:
            await store.end_call(sid, end)
    await store.save_flow("never called", "name: Bakery")

    async def left(after: timedelta) -> set[str]:
        await store.forget_flows(now + after)
        names = ("live", "resumable", "over", "never called")
        return {name for name in names if await store.get_flow(name) is not None}

    within = timedelta(days=30)  # the longest `resume: within` that a file may ask for
    assert await left(within) == {"live", "resumable", "over", "never called"}
    assert await left(within + timedelta(days=2)) == {"live"}
    await store.save_flow("over", "name: over")  # the file is as it was once
    assert await left(within) == {"live", "over"}


async def test_text_that_postgres_refuses_is_cleaned(store: Store) -> None:
    await open_call(store, "CA1")
    epoch = await store.claim_stream("CA1", "MZ1")
    await store.save_snapshot("CA1", epoch, CallSnapshot(1, {"said": ["a\x00b", "\ud800"]}))
    row = await store.get_call("CA1")
    assert row is not None and row.snapshot is not None
    assert row.snapshot.state == {"said": ["ab", "?"]}


async def test_a_call_in_which_nothing_was_said_does_not_hide_the_one_before(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")  # it rang, and no stream came
    await store.end_call("CA2", CallStatus.DROPPED)
    assert await found(store) == "CA1"


async def test_one_that_went_on_with_it_before_a_word_does(store: Store) -> None:
    await drop(store, "CA1")
    await open_call(store, "CA2")
    await store.mark_resumed("CA2", "CA1")
    await store.end_call("CA2", CallStatus.DROPPED)
    assert await found(store) == "CA2"


async def test_workers_see_each_other_and_nobody_else(database_url: str) -> None:
    one, two, other = (Store(database_url, name=f"{WORKER_PREFIX}{n}") for n in (1, 1, 2))
    tool = Store(database_url)
    assert [await store.other_workers() for store in (one, two, tool)] == [0, 0, 1]
    assert await other.other_workers() == 1
    assert await one.other_workers() == 1
    for store in (one, two, other, tool):
        await store.close()
