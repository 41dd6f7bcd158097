"""Recordings in a Twilio account: fetched into our own store, and deleted there."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import requests
from twilio.base.exceptions import TwilioException, TwilioRestException

from ivr.adapters.twilio_accounts import Account, TwilioAccounts
from ivr.errors import TelephonyError

MAX_BYTES = 20 * 1024 * 1024
"""A message of ten minutes as 16-bit PCM at 8 kHz has 9.6 MB."""
NOT_FOUND = 404

T = TypeVar("T")


class TwilioRecordings:
    """All raise `TelephonyError`, upon which trying again may help. A recording that is gone is no error."""

    def __init__(self, accounts: TwilioAccounts) -> None:
        self._accounts = accounts

    async def fetch(self, recording_sid: str, account_sid: str = "") -> bytes | None:
        """The recording as a WAV file; `None` if there is none. `account_sid`: the call's, empty for the main one."""
        return await self._off_loop(partial(self._fetch, self._account(account_sid), recording_sid))

    async def delete(self, recording_sid: str, account_sid: str | None = "") -> None:
        """Delete it in the account; `None`: in whichever it is."""
        accounts = self._accounts.all() if account_sid is None else ()
        for account in accounts or (self._account(account_sid or ""),):
            await self._off_loop(partial(self._delete, account, recording_sid))

    def _fetch(self, account: Account, recording_sid: str) -> bytes | None:
        url = f"{self._accounts.base_url}/2010-04-01/Accounts/{account.sid}/Recordings/{recording_sid}.wav"
        credentials, timeout_s = (account.user, account.token), self._accounts.timeout_s
        with requests.get(url, auth=credentials, timeout=timeout_s, stream=True) as answer:
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

    def _delete(self, account: Account, recording_sid: str) -> None:
        try:
            self._accounts.client(account).recordings(recording_sid).delete()
        except TwilioRestException as error:
            if error.status != NOT_FOUND:
                raise TelephonyError(f"Twilio refused: HTTP {error.status}, error {error.code}") from error

    def _account(self, account_sid: str) -> Account:
        account = self._accounts.of(account_sid)
        if account is None:
            raise TelephonyError("recordings cannot be fetched: set TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN")
        return account

    async def _off_loop(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except (TwilioException, OSError) as error:  # requests' exceptions are OSErrors
            raise TelephonyError(f"Twilio's API cannot be reached: {type(error).__name__}") from error
