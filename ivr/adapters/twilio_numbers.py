"""The account's telephone numbers through Twilio's REST API. Blocking: for commands, not for the service."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from twilio.base.exceptions import TwilioException, TwilioRestException

from ivr.adapters.twilio_accounts import Account, TwilioAccounts
from ivr.errors import TelephonyError

VOICE_PATH = "/twilio/voice"
STATUS_PATH = "/twilio/status"
UNAUTHORIZED = 401

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccountNumber:
    """One number. Twilio asks `trunk` before `application`, and that before `voice_url`; empty: not set."""

    sid: str
    number: str
    name: str
    voice_url: str
    voice_method: str
    status_url: str
    application: str
    trunk: str

    def goes_to(self) -> str:
        """Where its calls go, in words for a person; empty for nowhere."""
        if self.trunk:
            return f"SIP trunk {self.trunk}"
        if self.application:
            return f"TwiML application {self.application}"
        return self.voice_url

    def is_connected_to(self, public_url: str) -> bool:
        """Whether its calls come to the service at this address."""
        mine = (f"{public_url}{VOICE_PATH}", "POST")
        return not self.trunk and not self.application and (self.voice_url, self.voice_method) == mine


class TwilioNumbers:
    """All raise `TelephonyError` with what to do."""

    def __init__(self, accounts: TwilioAccounts, account: Account) -> None:
        self._client = accounts.client(account)

    def all(self) -> list[AccountNumber]:
        """The account's numbers, in Twilio's order."""
        return [_number_of(found) for found in self._ask(self._client.incoming_phone_numbers.list)]

    def connect(self, number: AccountNumber, public_url: str) -> AccountNumber:
        """Send its calls and their status to the service at `public_url`; returns it as Twilio has it then."""
        resource = self._client.incoming_phone_numbers(number.sid)
        return _number_of(
            self._ask(
                lambda: resource.update(
                    voice_url=f"{public_url}{VOICE_PATH}",
                    voice_method="POST",
                    status_callback=f"{public_url}{STATUS_PATH}",
                    status_callback_method="POST",
                    voice_application_sid="",
                    trunk_sid="",
                )
            )
        )

    def _ask(self, question: Callable[[], T]) -> T:
        try:
            return question()
        except TwilioRestException as error:
            raise _refused(error.status) from error
        except TwilioException as error:
            # A page that could not be fetched: the library puts the response beside its text.
            raise _refused(getattr(error.args[-1], "status_code", 0)) from error
        except OSError as error:  # requests' exceptions are
            raise TelephonyError(f"Twilio's API cannot be reached: {type(error).__name__}") from error


def _refused(status: int) -> TelephonyError:
    hint = "; are TWILIO_ACCOUNT_SID and TWILIO_AUTH_TOKEN of one account?" if status == UNAUTHORIZED else ""
    return TelephonyError(f"Twilio refused: HTTP {status}{hint}")


def _number_of(found: Any) -> AccountNumber:
    return AccountNumber(
        sid=found.sid,
        number=found.phone_number,
        name=found.friendly_name or "",
        voice_url=found.voice_url or "",
        voice_method=found.voice_method or "",
        status_url=found.status_callback or "",
        application=found.voice_application_sid or "",
        trunk=found.trunk_sid or "",
    )
