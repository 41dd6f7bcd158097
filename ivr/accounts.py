"""Twilio's accounts as the operator set them, and which of them a call came by."""

from collections.abc import Awaitable, Callable

from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.errors import TelephonyError
from ivr.settings import Settings
from memory.errors import MemoryFault
from memory.store import Store


def accounts_of(settings: Settings) -> TwilioAccounts:
    """The main account and the subaccounts that have tokens of their own."""
    token = settings.twilio_auth_token
    return TwilioAccounts(
        settings.twilio_account_sid,
        token.get_secret_value() if token is not None else None,
        settings.twilio_api_base_url,
        subaccounts=settings.subaccounts,
    )


def account_in(store: Store) -> Callable[[str], Awaitable[str]]:
    """Looks up the AccountSid of a CallSid's call; empty for the main one.

    The function raises `TelephonyError` if it cannot be known now: a guess would take a live call for one that is gone.
    """

    async def account_of(call_sid: str) -> str:
        try:
            row = await store.get_call(call_sid)
        except MemoryFault as fault:
            raise TelephonyError("the call's account cannot be looked up") from fault
        return "" if row is None else row.account_sid

    return account_of
