"""Who was cut off is called back, once, if they agreed: on a real database, with a double of Twilio's REST API."""

import asyncio
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest

from callflows.engine import FlowState
from callflows.model import Business
from callflows.parse import parse_text
from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_outward import TwilioOutward
from ivr.core.setup import snapshot_of
from ivr.core.speaking import SpeedState
from ivr.orders import Orders
from ivr.phone.rest import FakeTwilioRest
from ivr.returns import Returns
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.model import EndedBy, Exchange, Owner
from memory.store import AudioPaths, OrderRow, Store
from memory.store_orders import RETURN, OrderStatus, return_key

CALLER, SHOP, PUBLIC = "+12025550144", "+16175550101", "https://ivr.example.test"
FLOW = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
disclosure: ""
greeting: The Shop.
hours: {office: {weekly: {mon-fri: "09:00-17:00"}}}
resume: {within: 2h, call_back: {consent: policy, hours: office}}
start: main
nodes: {main: {type: talk, instructions: Help.}}
"""
SHOP_FILE = parse_text(FLOW, "shop.yaml")
ALWAYS = parse_text(FLOW.replace(", hours: office", ""), "shop.yaml")


async def cut_off(
    store: Store,
    call_sid: str = "CA1",
    by: EndedBy | None = EndedBy.WORKER,
    *,
    caller: str | None = CALLER,
    agreed: bool = True,
    how: CallStatus = CallStatus.DROPPED,
) -> OrderRow | None:
    """A call in which something was said, and which is over. Returns the order to call back, if there is one."""
    await store.open_call(call_sid, "shop", caller, SHOP, "hash")
    epoch = await store.claim_stream(call_sid, "MZ1")
    await store.commit_page(Owner("shop", caller), Exchange(call_sid, 1, "Hello.", "Yes?"), AudioPaths())
    state = snapshot_of(
        FlowState(1, "main"), 2, SpeedState(), None, resumed=False, standing=None, may_return=agreed
    )
    await store.save_snapshot(call_sid, epoch, state)
    for _ in range(2):  # the end is noted twice
        await store.end_call(call_sid, how, by=by)
    return await store.order(call_sid, return_key(call_sid))


def returns(store: Store, business: Business = ALWAYS) -> Returns:
    return Returns(store, lambda: {business.id: business})


def work(store: Store, rest: FakeTwilioRest, business: Business = ALWAYS) -> Orders:
    outward = TwilioOutward(TwilioAccounts(rest.account_sid, "token", rest.base_url))
    return Orders(store, outward, PUBLIC, returns(store, business))


async def status(store: Store, call_sid: str = "CA1") -> OrderStatus | None:
    order = await store.order(call_sid, return_key(call_sid))
    return None if order is None else order.status


NOT_ORDERED = [
    {"by": EndedBy.CALLER},
    {"by": EndedBy.US},
    {"by": None},
    {"by": EndedBy.MODEL, "how": CallStatus.FAILED},
    {"by": EndedBy.US, "how": CallStatus.FINISHED},
    {"caller": None},
    {"agreed": False},
]


@pytest.mark.parametrize("ended", NOT_ORDERED, ids=str)
async def test_nobody_is_called_back_who_was_not_cut_off_or_did_not_agree(
    store: Store, ended: dict[str, object]
) -> None:
    assert await cut_off(store, **ended) is None  # type: ignore[arg-type]  # a table of arguments


@pytest.mark.parametrize("by", [EndedBy.NETWORK, EndedBy.WORKER, EndedBy.TWILIO])
async def test_who_was_cut_off_is_called_back_on_their_own_number(store: Store, by: EndedBy) -> None:
    order = await cut_off(store, by=by)
    assert order is not None
    assert (order.kind, order.to_number, order.from_number) == (RETURN, CALLER, SHOP)
    assert timedelta(seconds=20) < order.due_at - datetime.now(UTC) <= timedelta(seconds=30)
    async with FakeTwilioRest(auth_token="token") as rest:
        doing = work(store, rest)
        await asyncio.gather(*(doing.carry_out("CA1", order.order_key) for _ in range(3)))
        (form,) = rest.made
    assert (form["To"], form["From"], form["Url"]) == (CALLER, SHOP, f"{PUBLIC}/twilio/voice")
    assert await status(store) is OrderStatus.DONE


async def test_a_worker_that_dies_as_it_calls_does_not_call_twice(store: Store) -> None:
    """Twilio was asked, and nobody wrote down that it was: the next worker leaves it alone."""
    order = await cut_off(store)
    assert order is not None
    async with FakeTwilioRest(auth_token="token") as rest:
        assert await store.begin_order(order, None) is OrderStatus.BEGUN
        await work(store, rest).carry_out("CA1", order.order_key)
        assert rest.made == []
    assert await status(store) is OrderStatus.BEGUN


async def test_a_call_that_nobody_carries_any_more_is_returned_too(store: Store, database_url: str) -> None:
    await cut_off(store, "CA0", by=EndedBy.CALLER)
    await store.open_call("CA1", "shop", "+12025550145", SHOP, "hash")
    epoch = await store.claim_stream("CA1", "MZ1")
    kept = snapshot_of(
        FlowState(1, "main"), 2, SpeedState(), None, resumed=False, standing=None, may_return=True
    )
    await store.save_snapshot("CA1", epoch, kept)
    await asyncio.to_thread(_age, database_url)
    assert await store.drop_stale(timedelta(seconds=60)) == ["CA1"]
    assert await status(store) is OrderStatus.DUE
    assert await store.revive("CA1")  # it comes back all the same
    assert await status(store) is None


def _age(database_url: str) -> None:
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute(
            "UPDATE calls SET last_activity_at = now() - interval '90 s' WHERE status = 'active'"
        )


async def test_who_has_called_again_or_is_talking_with_us_is_not_called(store: Store) -> None:
    async with FakeTwilioRest(auth_token="token") as rest:
        order = await cut_off(store)
        assert order is not None
        await store.open_call("CA2", "shop", CALLER, SHOP, "hash")
        await work(store, rest).carry_out("CA1", order.order_key)
        assert await status(store) is OrderStatus.REFUSED
        await store.mark_resumed("CA2", "CA1")
        await store.end_call("CA2", CallStatus.FINISHED, by=EndedBy.US)
        third = await cut_off(store, "CA3")
        assert third is not None
        await store.open_call("CA4", "shop", CALLER, SHOP, "hash")
        await store.end_call("CA4", CallStatus.FINISHED, by=EndedBy.US)
        await work(store, rest).carry_out("CA3", third.order_key)
        assert await status(store, "CA3") is OrderStatus.REFUSED
        assert rest.made == []


async def test_once_a_day(store: Store) -> None:
    async with FakeTwilioRest(auth_token="token") as rest:
        for call_sid in ("CA1", "CA2"):
            await cut_off(store, call_sid)
            await work(store, rest).carry_out(call_sid, return_key(call_sid))
        assert len(rest.made) == 1
    assert await status(store, "CA2") is OrderStatus.REFUSED


NEW_YORK = ZoneInfo("America/New_York")
OTHERS = [
    (ALWAYS.model_copy(update={"id": "another"}), "another business"),
    (
        parse_text(FLOW.replace(", call_back: {consent: policy, hours: office}", ""), "s.yaml"),
        "no policy any more",
    ),
    (parse_text(FLOW.replace("hours: office", "countries: [CA]"), "s.yaml"), "another country"),
    (parse_text(FLOW + f'callers: {{blocked: ["{CALLER}"]}}\n', "s.yaml"), "blocked"),
]


@pytest.mark.parametrize("business", [b for b, _ in OTHERS], ids=[name for _, name in OTHERS])
async def test_the_file_as_it_is_then_decides(store: Store, business: Business) -> None:
    order = await cut_off(store)
    assert order is not None
    assert await returns(store, business).due_at(order, datetime.now(UTC)) is None


async def test_within_hours_or_when_it_opens_but_not_too_late(store: Store, database_url: str) -> None:
    order = await cut_off(store)
    assert order is not None
    monday = datetime(2026, 11, 30, tzinfo=NEW_YORK)
    table = [
        (monday.replace(hour=10), monday.replace(hour=10)),
        (monday.replace(hour=8, minute=30), monday.replace(hour=9)),
        (monday.replace(hour=6), None),  # two hours later it still is closed
        (monday.replace(hour=17), None),
    ]
    for dropped_at, due_at in table:
        await asyncio.to_thread(_dropped_at, database_url, dropped_at)
        assert await returns(store, SHOP_FILE).due_at(order, dropped_at) == due_at
    await store.put_off(order, monday + timedelta(days=3_650))
    later = await store.order("CA1", order.order_key)
    assert later is not None
    assert (later.status, later.due_at) == (OrderStatus.DUE, monday + timedelta(days=3_650))


def _dropped_at(database_url: str, at: datetime) -> None:
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        connection.execute("UPDATE calls SET last_activity_at = %s", (at,))
