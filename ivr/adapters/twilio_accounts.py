"""Which of Twilio's accounts a request goes to: a call is found only in the account whose number was dialled.

A subaccount's resources can be reached with its own credentials or its parent's (Twilio, "REST API: Subaccounts").
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client

API_URL = "https://api.twilio.com"
TIMEOUT_S = 5.0


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


@dataclass(frozen=True, slots=True)
class Account:
    """An account and with whose credentials it is reached."""

    sid: str
    user: str
    token: str = field(repr=False)


class TwilioAccounts:
    """The main account, and subaccounts with auth tokens of their own by AccountSid."""

    def __init__(
        self,
        account_sid: str | None,
        auth_token: str | None,
        api_base_url: str | None = None,
        timeout_s: float = TIMEOUT_S,
        *,
        subaccounts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Without `account_sid` or `auth_token` there is no main account."""
        self._main = Account(account_sid, account_sid, auth_token) if account_sid and auth_token else None
        self._own = {sid: Account(sid, sid, token) for sid, token in subaccounts.items()}
        self._api_base_url = api_base_url
        self._clients: dict[str, Any] = {}
        self.timeout_s = timeout_s
        self.base_url = (api_base_url or API_URL).rstrip("/")

    @property
    def are_several(self) -> bool:
        """Whether it matters whose call it is."""
        return bool(self._own)

    def all(self) -> tuple[Account, ...]:
        """Every account that is known by name."""
        return (*([self._main] if self._main is not None else ()), *self._own.values())

    def of(self, account_sid: str) -> Account | None:
        """How to reach an account; the main one if it is not named. `None`: there are no credentials for it."""
        if (own := self._own.get(account_sid)) is not None:
            return own
        if self._main is None or account_sid in ("", self._main.sid):
            return self._main
        return Account(account_sid, self._main.sid, self._main.token)

    def client(self, account: Account) -> Any:
        """Twilio's client with an environment of its own: settings are read once, elsewhere."""
        if account.sid not in self._clients:
            http = RebasedHttpClient(self._api_base_url, self.timeout_s)
            self._clients[account.sid] = Client(
                account.user, account.token, account.sid, http_client=http, environment={"-": "-"}
            )
        return self._clients[account.sid]
