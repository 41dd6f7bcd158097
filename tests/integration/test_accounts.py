"""A call is found in the Twilio account that it came by, and nowhere else."""

import pytest

from callflows.parse import load_folder
from ivr.accounts import account_in, accounts_of
from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_outward import TwilioOutward
from ivr.adapters.twilio_recordings import TwilioRecordings
from ivr.adapters.twilio_rest import TwilioTelephony
from ivr.errors import TelephonyError
from ivr.orders import Orders
from ivr.phone.machine import RestUpdate
from ivr.phone.rest import FakeTwilioRest
from ivr.places import SHIPPED_FLOWS
from ivr.registry import Registry
from ivr.returns import Returns
from ivr.settings import Settings
from memory.store import Store
from tests.integration.test_orders import CALLER, PUBLIC, SHOP, TEXT, snapshot

MAIN = "AC" + "1" * 32
OWN = "AC" + "2" * 32
"""A subaccount with its own token in our settings."""
PARENTS = "AC" + "3" * 32
"""One that is reached with the main account's."""


class Ringing:
    """A call under way."""

    status = "in-progress"

    def __init__(self, call_sid: str) -> None:
        self.call_sid = call_sid

    def update(self, update: RestUpdate) -> bool:
        self.status = update.status or self.status
        return True


def twilio() -> FakeTwilioRest:
    return FakeTwilioRest(
        auth_token="main", account_sid=MAIN, subaccounts={OWN: "own", PARENTS: "unknown to us"}
    )


def ours(rest: FakeTwilioRest) -> TwilioAccounts:
    return TwilioAccounts(MAIN, "main", rest.base_url, subaccounts={OWN: "own"})


@pytest.mark.parametrize("account", [MAIN, OWN, PARENTS])
async def test_a_live_call_of_any_account_is_not_taken_for_gone(store: Store, account: str) -> None:
    await store.open_call("CA1", "shop", CALLER, SHOP, "hash", account_sid=account)
    async with twilio() as rest:
        call = Ringing("CA1")
        rest.register(call, account)
        telephony = TwilioTelephony(ours(rest), account_in(store))
        assert await telephony.is_over("CA1") is False
        await telephony.hang_up("CA1")
        assert call.status == "completed"
        assert await telephony.is_over("CA1")


async def test_a_call_of_before_accounts_were_kept_is_the_main_ones(store: Store) -> None:
    await store.open_call("CA1", "shop", CALLER, SHOP, "hash")
    async with twilio() as rest:
        rest.register(Ringing("CA1"))
        assert await TwilioTelephony(ours(rest), account_in(store)).is_over("CA1") is False


async def test_while_the_account_cannot_be_known_nothing_is_said_of_the_call() -> None:
    nowhere = Store("postgresql://127.0.0.1:9/none")
    async with twilio() as rest:
        rest.register(Ringing("CA1"), OWN)
        with pytest.raises(TelephonyError, match="cannot be looked up"):
            await TwilioTelephony(ours(rest), account_in(nowhere)).is_over("CA1")
    await nowhere.close()


async def test_one_account_is_never_looked_up() -> None:
    nowhere = Store("postgresql://127.0.0.1:9/none")
    async with twilio() as rest:
        rest.register(Ringing("CA1"))
        telephony = TwilioTelephony(TwilioAccounts(MAIN, "main", rest.base_url), account_in(nowhere))
        assert await telephony.is_over("CA1") is False
    await nowhere.close()


async def test_what_a_call_orders_is_done_in_its_account(store: Store) -> None:
    await store.open_call("CA1", "shop", CALLER, SHOP, "hash", account_sid=OWN)
    await store.save_snapshot("CA1", await store.claim_stream("CA1", "MZ1"), snapshot(TEXT))
    async with twilio() as rest:
        await Orders(store, TwilioOutward(ours(rest)), PUBLIC, Returns(store, dict)).carry_out("CA1", "key1")
        assert rest.made_in == [OWN]


async def test_recordings_are_fetched_and_deleted_where_they_are() -> None:
    async with twilio() as rest:
        rest.recordings = {"RE1": b"RIFF one", "RE2": b"RIFF two", "RE3": b"RIFF three"}
        rest.recorded_in = {"RE1": OWN, "RE2": PARENTS}
        recordings = TwilioRecordings(ours(rest))
        assert await recordings.fetch("RE1", OWN) == b"RIFF one"
        assert await recordings.fetch("RE2", PARENTS) == b"RIFF two"
        assert await recordings.fetch("RE1") is None
        await recordings.delete("RE2", PARENTS)
        assert set(rest.recordings) == {"RE1", "RE3"}
        for sid in ("RE1", "RE3", "RE4"):  # of callers who were erased: nobody knows whose they were
            await recordings.delete(sid, None)
        assert rest.recordings == {}


async def test_a_message_is_fetched_in_the_account_of_its_call(store: Store) -> None:
    await store.open_call("CA1", "shop", CALLER, SHOP, "hash", account_sid=OWN)
    await store.note_voicemail("CA1", "RE1", duration_s=3)
    message = await store.voicemail("CA1", "RE1")
    assert message is not None and message.account_sid == OWN


async def test_the_webhook_says_which_account_it_is(store: Store) -> None:
    book = load_folder(SHIPPED_FLOWS)
    registry = Registry(store, book, TwilioTelephony(TwilioAccounts(None, None)))
    await registry.open_call("CA1", next(iter(book.businesses)), CALLER, SHOP, account_sid=OWN)
    row = await store.get_call("CA1")
    assert row is not None and row.account_sid == OWN


def test_the_operators_accounts_are_taken_as_set() -> None:
    settings = Settings.load(
        {"TWILIO_ACCOUNT_SID": MAIN, "TWILIO_AUTH_TOKEN": "main", "TWILIO_SUBACCOUNT_TOKENS": f"{OWN}=own"}
    )
    accounts = accounts_of(settings)
    assert [account.sid for account in accounts.all()] == [MAIN, OWN]
    reached = accounts.of(PARENTS)
    assert reached is not None and (reached.sid, reached.user) == (PARENTS, MAIN)
    assert "own" not in repr(accounts.all())
