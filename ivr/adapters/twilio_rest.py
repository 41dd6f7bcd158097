"""Control of live calls through Twilio's REST API: `ports.Telephony`, off the event loop."""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import structlog
from twilio.base.exceptions import (
    TwilioException,
    TwilioRestException,
)
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

from ivr.errors import TelephonyError
from ivr.wire.twiml import TwimlTooLong, inline

TIMEOUT_S = 5.0
MAX_AT_ONCE = 8

# Twilio's error for changing a call that is not in progress any more: gone, like a 404.
_CALL_NOT_IN_PROGRESS = 21220

OVER = frozenset({"completed", "busy", "failed", "no-answer", "canceled"})
"""A call's states that are final."""

log = structlog.get_logger(__name__)


class RebasedHttpClient(TwilioHttpClient):  # type: ignore[misc]  # its base has no types
    """Twilio's client, sending every request to another scheme and host (tests, regions)."""

    def __init__(self, base_url: str | None, timeout_s: float) -> None:
        super().__init__(timeout=timeout_s)
        self._base = urlsplit(base_url) if base_url else None

    def request(self, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        """As the library's, elsewhere."""
        if self._base is not None:
            parts = urlsplit(url)
            path = self._base.path.rstrip("/") + parts.path
            url = urlunsplit((self._base.scheme, self._base.netloc, path, parts.query, ""))
        return super().request(method, url, *args, **kwargs)


def rest_client(account_sid: str, auth_token: str, api_base_url: str | None, timeout_s: float) -> Any:
    """Twilio's client with an environment of its own: settings are read once, elsewhere."""
    http = RebasedHttpClient(api_base_url, timeout_s)
    return Client(account_sid, auth_token, http_client=http, environment={"-": "-"})


class TwilioTelephony:
    """`ports.Telephony` by `twilio.rest.Client` in threads, at most eight requests at once.

    Without account or token it can be made, and says so when used. A call that is gone is no error; any
    other failure is a `TelephonyError`.
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
        self._timeout_s = timeout_s
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
        if self._client is None:
            raise TelephonyError("live calls cannot be changed: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        try:
            # The library's timeout is for each step of a request, this one for all; the thread ends later.
            async with asyncio.timeout(2 * self._timeout_s), self._slots:
                return await asyncio.to_thread(lambda: action(self._client.calls(call_sid)))
        except TwilioRestException as error:
            if error.status == 404 or error.code == _CALL_NOT_IN_PROGRESS:
                log.info("call_already_gone", call_sid=call_sid)
                return None
            raise TelephonyError(f"Twilio refused: HTTP {error.status}, error {error.code}") from error
        except (TwilioException, OSError) as error:  # requests' exceptions, and TimeoutError, are OSErrors
            raise TelephonyError(f"Twilio's API cannot be reached: {type(error).__name__}") from error
