"""Recordings in the Twilio account: fetched into our own store, and deleted there."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

import requests
from twilio.base.exceptions import TwilioException, TwilioRestException

from ivr.adapters.twilio_rest import TIMEOUT_S, rest_client
from ivr.errors import TelephonyError

API_URL = "https://api.twilio.com"
MAX_BYTES = 20 * 1024 * 1024
"""A message of ten minutes as 16-bit PCM at 8 kHz has 9.6 MB."""
NOT_FOUND = 404

T = TypeVar("T")


class TwilioRecordings:
    """All raise `TelephonyError`, upon which trying again may help. A recording that is gone is no error."""

    def __init__(
        self,
        account_sid: str | None,
        auth_token: str | None,
        api_base_url: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._credentials = (account_sid, auth_token) if account_sid and auth_token else None
        self._base = (api_base_url or API_URL).rstrip("/")
        self._api_base_url = api_base_url
        self._timeout_s = timeout_s

    async def fetch(self, recording_sid: str) -> bytes | None:
        """The recording as a WAV file; `None` if there is none."""
        return await self._off_loop(lambda: self._fetch(recording_sid))

    async def delete(self, recording_sid: str) -> None:
        """Delete it in the account."""
        await self._off_loop(lambda: self._delete(recording_sid))

    def _fetch(self, recording_sid: str) -> bytes | None:
        account, token = self._account()
        url = f"{self._base}/2010-04-01/Accounts/{account}/Recordings/{recording_sid}.wav"
        with requests.get(url, auth=(account, token), timeout=self._timeout_s, stream=True) as answer:
            if answer.status_code == NOT_FOUND:
                return None
            if not answer.ok:
                raise TelephonyError(f"Twilio refused: HTTP {answer.status_code}")
            data = bytearray()
            for chunk in answer.iter_content(64 * 1024):
                data += chunk
                if len(data) > MAX_BYTES:
                    raise TelephonyError(f"a recording of more than {MAX_BYTES} bytes")
            return bytes(data)

    def _delete(self, recording_sid: str) -> None:
        account, token = self._account()
        client: Any = rest_client(account, token, self._api_base_url, self._timeout_s)
        try:
            client.recordings(recording_sid).delete()
        except TwilioRestException as error:
            if error.status != NOT_FOUND:
                raise TelephonyError(f"Twilio refused: HTTP {error.status}, error {error.code}") from error

    def _account(self) -> tuple[str, str]:
        if self._credentials is None:
            raise TelephonyError("recordings cannot be fetched: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        return self._credentials

    async def _off_loop(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except (TwilioException, OSError) as error:  # requests' exceptions are OSErrors
            raise TelephonyError(f"Twilio's API cannot be reached: {type(error).__name__}") from error
