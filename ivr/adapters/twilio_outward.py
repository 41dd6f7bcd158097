"""Text messages and calls that we begin, through Twilio's REST API, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any

import requests
from twilio.base.exceptions import TwilioException, TwilioRestException
from urllib3.exceptions import ConnectTimeoutError, MaxRetryError, NewConnectionError

from ivr.adapters.twilio_rest import TIMEOUT_S, rest_client
from ivr.errors import TelephonyError

RING_S = 30
TOO_MANY_REQUESTS = 429
UNAVAILABLE = 503


class NotDone(TelephonyError):
    """Twilio has certainly not done it; trying again may help."""


class TwilioOutward:
    """Both return Twilio's id of what was made.

    Raise: `NotDone`; another `TelephonyError` where trying again does not help, or might do it twice.
    """

    def __init__(
        self,
        account_sid: str | None,
        auth_token: str | None,
        api_base_url: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._client: Any = None
        if account_sid and auth_token:
            self._client = rest_client(account_sid, auth_token, api_base_url, timeout_s)

    async def send_text(self, to: str, from_: str, body: str) -> str:
        """Send a text message."""
        return await self._do(lambda client: client.messages.create(to=to, from_=from_, body=body))

    async def place_call(self, to: str, from_: str, voice_url: str, status_url: str) -> str:
        """Call a number; when it is answered, by a machine or not, `voice_url` says what follows."""
        return await self._do(
            lambda client: client.calls.create(
                to=to,
                from_=from_,
                url=voice_url,
                method="POST",
                status_callback=status_url,
                status_callback_method="POST",
                timeout=RING_S,
                machine_detection="Enable",
            )
        )

    async def _do(self, work: Callable[[Any], Any]) -> str:
        if self._client is None:
            raise NotDone("nothing can be sent: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        try:
            made = await asyncio.to_thread(work, self._client)
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
