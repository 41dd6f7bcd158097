"""Control of live calls through Twilio's REST API: `ports.Telephony`, off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import structlog
from twilio.base.exceptions import (
    TwilioException,
    TwilioRestException,
)

from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.errors import TelephonyError
from ivr.wire.twiml import TwimlTooLong, inline

MAX_AT_ONCE = 8

# Twilio's error for changing a call that is not in progress any more: gone, like a 404.
_CALL_NOT_IN_PROGRESS = 21220

OVER = frozenset({"completed", "busy", "failed", "no-answer", "canceled"})
"""A call's states that are final."""

log = structlog.get_logger(__name__)


async def main_account(call_sid: str) -> str:
    """Of a service with one account: every call's."""
    return ""


class TwilioTelephony:
    """`ports.Telephony` by `twilio.rest.Client` in threads, at most eight requests at once.

    Without account or token it can be made, and says so when used. A call that is gone is no error; any
    other failure is a `TelephonyError`.
    """

    def __init__(
        self, accounts: TwilioAccounts, account_of: Callable[[str], Awaitable[str]] = main_account
    ) -> None:
        """`account_of`: the AccountSid of a CallSid's call, empty for the main one. May raise `TelephonyError`."""
        self._accounts = accounts
        self._account_of = account_of
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def hang_up(self, call_sid: str) -> None:
        """End the call. Raises: `TelephonyError`."""
        await self._do(call_sid, lambda call: call.update(status="completed"))

    async def update(self, call_sid: str, twiml: str) -> None:
        """Replace what the call is doing; this ends its media stream. Raises: `TelephonyError`."""
        try:
            text = inline(twiml)
        except TwimlTooLong as error:
            raise TelephonyError(f"TwiML too long for an update: {error}") from error
        await self._do(call_sid, lambda call: call.update(twiml=text))

    async def is_over(self, call_sid: str) -> bool:
        """Whether the call has ended. Raises: `TelephonyError`."""
        status = await self._do(call_sid, lambda call: call.fetch().status)
        return status is None or status in OVER

    async def _do(self, call_sid: str, action: Callable[[Any], object]) -> object:
        """The action's result; `None` for a call that is gone."""
        # Asked in another account than its own, a live call would be taken for one that is gone.
        account = self._accounts.of(await self._account_of(call_sid) if self._accounts.are_several else "")
        if account is None:
            raise TelephonyError("live calls cannot be changed: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        client = self._accounts.client(account)
        try:
            # The library's timeout is for each step of a request, this one for all; the thread ends later.
            async with asyncio.timeout(2 * self._accounts.timeout_s), self._slots:
                return await asyncio.to_thread(lambda: action(client.calls(call_sid)))
        except TwilioRestException as error:
            if error.status == 404 or error.code == _CALL_NOT_IN_PROGRESS:
                log.info("call_already_gone", call_sid=call_sid)
                return None
            raise TelephonyError(f"Twilio refused: HTTP {error.status}, error {error.code}") from error
        except (TwilioException, OSError) as error:  # requests' exceptions, and TimeoutError, are OSErrors
            raise TelephonyError(f"Twilio's API cannot be reached: {type(error).__name__}") from error
