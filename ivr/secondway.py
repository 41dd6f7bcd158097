"""What can be done about a call beside its stream, by Twilio's REST API: needs no webhook to come first."""

import structlog

from ivr.errors import TelephonyError
from ivr.ports import Telephony
from ivr.web.voice import CONTINUE_PATH
from ivr.wire.twiml import say_and_redirect

log = structlog.get_logger()


class SecondWay:
    """Never raises: what cannot be done is logged. `public_url` None: Twilio could not be told where to."""

    def __init__(self, telephony: Telephony, public_url: str | None) -> None:
        self._telephony = telephony
        self._url = f"{public_url}{CONTINUE_PATH}?n=1" if public_url else None

    @property
    def is_open(self) -> bool:
        """Whether there is a second way at all."""
        return self._url is not None

    async def bring_back(self, call_sid: str) -> None:
        """Send the call to the continue URL; any worker answers there."""
        if self._url is None:
            return
        try:
            await self._telephony.update(call_sid, say_and_redirect("", self._url))
            log.info("call_brought_back", call_sid=call_sid)
        except TelephonyError as error:
            log.warning("call_not_brought_back", call_sid=call_sid, error=str(error))

    async def hang_up(self, call_sid: str) -> None:
        """End the call."""
        try:
            await self._telephony.hang_up(call_sid)
        except TelephonyError as error:
            log.warning("call_not_hung_up", call_sid=call_sid, error=str(error))

    async def is_over(self, call_sid: str) -> bool | None:
        """Whether the call has ended; `None`: it cannot be known."""
        if self._url is None:
            return None
        try:
            return await self._telephony.is_over(call_sid)
        except TelephonyError as error:
            log.warning("call_not_asked_about", call_sid=call_sid, error=str(error))
            return None
