"""What is ordered in a call is done once, whatever breaks: on a real database, with a double of Twilio's REST API."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from callflows.engine import FlowState
from callflows.orders import NEVER_CALLED_BACK, CalledBack, Order
from callflows.parse import parse_text
from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_outward import NotDone, TwilioOutward
from ivr.core.setup import snapshot_of
from ivr.core.speaking import SpeedState
from ivr.errors import TelephonyError
from ivr.moments import moment_of
from ivr.orders import Orders
from ivr.phone.rest import FakeTwilioRest
from ivr.returns import Returns
from memory.calls import CallStatus
from memory.jobqueue import ORDER
from memory.jobs import JobTools, run_pending
from memory.model import CallSnapshot, Owner
from memory.store import Store
from memory.store_orders import OrderStatus
from memory.summarise import ExtractiveSummariser
from tests.unit.callflows.test_later import SHOP as WITH_CALLBACK

PUBLIC = "https://ivr.example.test"
CALLER, SHOP = "+12025550144", "+16175550101"
TEXT = Order("key1", "sms", CALLER, "Thank you, Ana.")
BACK = Order("key2", "callback", CALLER)


def snapshot(*orders: Order) -> CallSnapshot:
    """Of a call that has ordered this."""
    return snapshot_of(
        FlowState(1, "menu", orders=orders), 1, SpeedState(), None, resumed=False, standing=None
    )


async def ordered(store: Store, call_sid: str, *orders: Order) -> None:
    """A call that orders this."""
    await store.open_call(call_sid, "shop", CALLER, SHOP, "hash")
    epoch = await store.claim_stream(call_sid, "MZ1")
    for _ in range(2):
        await store.save_snapshot(call_sid, epoch, snapshot(*orders))


def work(store: Store, rest: FakeTwilioRest, token: str = "token") -> Orders:
    """The job's."""
    outward = TwilioOutward(TwilioAccounts(rest.account_sid, token, rest.base_url))
    return Orders(store, outward, PUBLIC, Returns(store, dict))


async def status(store: Store, call_sid: str, key: str) -> OrderStatus | None:
    order = await store.order(call_sid, key)
    return None if order is None else order.status


async def test_what_is_journalled_twice_is_done_once(store: Store, database_url: str) -> None:
    await ordered(store, "CA1", TEXT, BACK)
    async with FakeTwilioRest(auth_token="token") as rest:
        doing = work(store, rest)
        await run_pending(
            database_url, JobTools(store, ExtractiveSummariser(), others={ORDER: doing.carry_out})
        )
        await asyncio.gather(*(doing.carry_out("CA1", key) for key in ("key1", "key2", "key1", "key2")))
        text, back = sorted(rest.made, key=lambda form: "Url" in form)
    assert text == {"To": CALLER, "From": SHOP, "Body": "Thank you, Ana."}
    assert (back["To"], back["From"], back["Url"]) == (CALLER, SHOP, f"{PUBLIC}/twilio/voice")
    assert back["MachineDetection"] == "Enable"
    assert [await status(store, "CA1", key) for key in ("key1", "key2")] == [OrderStatus.DONE] * 2


async def test_what_is_due_later_waits(store: Store, database_url: str) -> None:
    later = (datetime.now(UTC) + timedelta(hours=9)).isoformat()
    await ordered(store, "CA1", Order("key2", "callback", CALLER, due=later))
    async with FakeTwilioRest(auth_token="token") as rest:
        doing = work(store, rest)
        await run_pending(
            database_url, JobTools(store, ExtractiveSummariser(), others={ORDER: doing.carry_out})
        )
        assert rest.made == []
    assert await status(store, "CA1", "key2") is OrderStatus.DUE


async def test_nobody_is_called_back_twice_a_day(store: Store) -> None:
    await ordered(store, "CA1", BACK)
    await ordered(store, "CA2", Order("key3", "callback", CALLER), Order("key4", "sms", CALLER, "Hello."))
    async with FakeTwilioRest(auth_token="token") as rest:
        doing = work(store, rest)
        await asyncio.gather(
            doing.carry_out("CA1", "key2"), doing.carry_out("CA2", "key3"), doing.carry_out("CA2", "key4")
        )
        assert sorted("Url" in form for form in rest.made) == [False, True]
    statuses = {await status(store, "CA1", "key2"), await status(store, "CA2", "key3")}
    assert statuses == {OrderStatus.DONE, OrderStatus.REFUSED}


async def test_what_there_is_of_calls_back_is_told(store: Store) -> None:
    assert await store.called_back("shop", CALLER) == (False, None)
    await ordered(store, "CA1", TEXT, BACK)
    assert await store.called_back("shop", CALLER) == (True, None)
    assert await store.called_back("another", CALLER) == (False, None)
    assert await store.called_back("shop", "+12025550199") == (False, None)
    async with FakeTwilioRest(auth_token="token") as rest:
        await work(store, rest).carry_out("CA1", "key2")
    is_due, begun_at = await store.called_back("shop", CALLER)
    assert not is_due
    assert begun_at is not None
    assert abs(datetime.now(UTC) - begun_at) < timedelta(minutes=1)


async def test_a_flow_knows_of_calls_back_where_it_promises_some(store: Store) -> None:
    await ordered(store, "CA1", BACK)
    business = parse_text(WITH_CALLBACK, "shop.yaml")
    assert (await moment_of(store, business, CALLER, "CA2")).called_back == CalledBack(is_due=True)
    assert (await moment_of(store, business, None, "CA2")).called_back == NEVER_CALLED_BACK


async def test_a_busy_twilio_is_asked_again_and_a_refusal_is_not(store: Store) -> None:
    await ordered(store, "CA1", TEXT, BACK)
    async with FakeTwilioRest(auth_token="token") as rest:
        doing = work(store, rest)
        rest.refusals = [(429, 20_429)]
        with pytest.raises(NotDone):
            await doing.carry_out("CA1", "key1")
        assert await status(store, "CA1", "key1") is OrderStatus.DUE
        await doing.carry_out("CA1", "key1")
        assert await status(store, "CA1", "key1") is OrderStatus.DONE
        rest.refusals = [(400, 21_211)]
        await doing.carry_out("CA1", "key2")
        await doing.carry_out("CA1", "key2")
        assert await status(store, "CA1", "key2") is OrderStatus.FAILED
        assert len(rest.made) == 1


async def test_what_may_have_been_done_is_not_tried_again(store: Store) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.close()

    await ordered(store, "CA1", TEXT)
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    doing = Orders(store, TwilioOutward(TwilioAccounts("AC1", "token", url)), PUBLIC, Returns(store, dict))
    await doing.carry_out("CA1", "key1")
    server.close()
    await server.wait_closed()
    assert await status(store, "CA1", "key1") is OrderStatus.FAILED


async def test_without_twilio_or_an_address_it_waits(store: Store) -> None:
    await ordered(store, "CA1", TEXT, BACK)
    with pytest.raises(NotDone, match="set TWILIO_ACCOUNT_SID"):
        await Orders(
            store, TwilioOutward(TwilioAccounts(None, None)), PUBLIC, Returns(store, dict)
        ).carry_out("CA1", "key1")
    with pytest.raises(NotDone, match="cannot be reached"):
        nowhere = TwilioOutward(TwilioAccounts("AC1", "token", "http://127.0.0.1:9"))
        await Orders(store, nowhere, PUBLIC, Returns(store, dict)).carry_out("CA1", "key1")
    with pytest.raises(NotDone, match="set IVR_PUBLIC_URL"):
        await Orders(store, TwilioOutward(TwilioAccounts(None, None)), "", Returns(store, dict)).carry_out(
            "CA1", "key2"
        )
    with pytest.raises(TelephonyError):
        async with FakeTwilioRest(auth_token="token") as rest:
            await TwilioOutward(TwilioAccounts(rest.account_sid, "another", rest.base_url)).send_text(
                CALLER, SHOP, "Hello."
            )


async def test_who_is_erased_is_neither_written_to_nor_called(store: Store) -> None:
    await ordered(store, "CA1", TEXT, BACK)
    await store.forget(Owner("shop", CALLER))
    async with FakeTwilioRest(auth_token="token") as rest:
        for key in ("key1", "key2"):
            await work(store, rest).carry_out("CA1", key)
        assert rest.made == []


async def test_a_call_that_comes_back_from_a_person_may_order(store: Store) -> None:
    await store.open_call("CA1", "shop", CALLER, SHOP, "hash")
    epoch = await store.claim_stream("CA1", "MZ1")
    before = snapshot()
    await store.save_snapshot("CA1", epoch, before)
    await store.end_call("CA1", CallStatus.TRANSFERRED, epoch)
    assert await store.return_call("CA1", before, snapshot(TEXT), CallStatus.ACTIVE)
    assert await status(store, "CA1", "key1") is OrderStatus.DUE
