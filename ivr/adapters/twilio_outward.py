"""Text messages and calls that we begin, through Twilio's REST API, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any

import requests
from twilio.base.exceptions import TwilioException, TwilioRestException
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.errors import TelephonyError

RING_S = 30
TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503


class NotDone(TelephonyError):
    """Twilio has certainly not done it; trying again may help."""


class TwilioOutward:
    """Both return Twilio's id of what was made. `account_sid`: whose number `from_` is, empty for the main account.

    Raise: `NotDone`; another `TelephonyError` where trying again does not help, or might do it twice.
    """

    def __init__(self, accounts: TwilioAccounts) -> None:
        self._accounts = accounts

    async def send_text(self, to: str, from_: str, body: str, *, account_sid: str = "") -> str:
        """Send a text message."""
        return await self._do(
            account_sid, lambda client: client.messages.create(to=to, from_=from_, body=body)
        )

    async def place_call(
        self, to: str, from_: str, voice_url: str, status_url: str, *, account_sid: str = ""
    ) -> str:
        """Call a number; when it is answered, by a machine or not, `voice_url` says what follows."""
        return await self._do(
            account_sid,
            lambda client: client.calls.create(
                to=to,
                from_=from_,
                url=voice_url,
                method="POST",
                status_callback=status_url,
                status_callback_method="POST",
                timeout=RING_S,
                machine_detection="Enable",
            ),
        )

    async def _do(self, account_sid: str, work: Callable[[Any], Any]) -> str:
        account = self._accounts.of(account_sid)
        if account is None:
            raise NotDone("nothing can be sent: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        try:
            made = await asyncio.to_thread(work, self._accounts.client(account))
        except TwilioRestException as error:
            told = f"Twilio refused: HTTP {error.status}, error {error.code}"
            if error.status in (TOO_MANY_REQUESTS, UNAVAILABLE):
                raise NotDone(told) from error
            raise TelephonyError(told) from error
        except requests.exceptions.ConnectionError as error:
            if _was_connected(error):
                raise TelephonyError("the connection to Twilio broke: it may have been done") from error
            raise NotDone(f"Twilio's API cannot be reached: {type(error).__name__}") from error
        except (TwilioException, OSError) as error:
            raise TelephonyError(f"no answer of Twilio's: {type(error).__name__}") from error
        return str(made.sid)


def _was_connected(error: requests.exceptions.ConnectionError) -> bool:
    """Whether the request may have gone out before this."""
    inner = error.args[0] if error.args else None
    reason = inner.reason if isinstance(inner, MaxRetryError) else inner
    return not isinstance(reason, NewConnectionError | ConnectTimeoutError)
