"""The work on what was ordered beside a call: each is begun once, whatever breaks."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import structlog

from callflows.orders import CALL_BACK_ONCE_IN
from ivr.adapters.twilio_outward import NotDone
from ivr.errors import TelephonyError
from ivr.returns import Returns
from ivr.web.routes import VOICE_PATH
from ivr.web.voice import STATUS_PATH
from memory.store import OrderRow, Store
from memory.store_orders import RETURN, OrderStatus

log = structlog.get_logger()


class Outward(Protocol):
    """What `ivr.adapters.twilio_outward.TwilioOutward` does."""

    async def send_text(self, to: str, from_: str, body: str, *, account_sid: str = "") -> str: ...

    async def place_call(
        self, to: str, from_: str, voice_url: str, status_url: str, *, account_sid: str = ""
    ) -> str: ...


@dataclass(frozen=True, slots=True)
class Orders:
    """The job `orders.carry_out`. At most once: what may have been done is not tried again."""

    store: Store
    outward: Outward
    public_url: str
    returns: Returns

    async def carry_out(self, call_sid: str, key: str) -> None:
        """Raises: `NotDone`, `StorageUnavailable`: tried again then."""
        order = await self.store.order(call_sid, key)
        if order is None or order.status is not OrderStatus.DUE:
            return
        if order.kind == RETURN and not await self._is_now(order):
            return
        once_in = None if order.kind == "sms" else CALL_BACK_ONCE_IN
        status = await self.store.begin_order(order, once_in)
        if status is OrderStatus.REFUSED:
            log.info("order_refused", kind=order.kind, business=order.business_id)
        if status is not OrderStatus.BEGUN:
            return
        try:
            sid = await self._done(order)
        except NotDone:
            await self.store.order_over(order, OrderStatus.DUE)
            raise
        except TelephonyError as error:
            log.warning("order_failed", kind=order.kind, business=order.business_id, error=str(error))
            await self.store.order_over(order, OrderStatus.FAILED)
            return
        await self.store.order_over(order, OrderStatus.DONE, sid)
        log.info("order_done", kind=order.kind, business=order.business_id, sid=sid)

    async def _is_now(self, order: OrderRow) -> bool:
        """Whether who was cut off is to be called now; else the order is put off, or refused."""
        now = datetime.now(UTC)
        due_at = await self.returns.due_at(order, now)
        if due_at is None:
            await self.store.refuse_order(order)
            log.info("order_refused", kind=order.kind, business=order.business_id)
        elif due_at > now:
            await self.store.put_off(order, due_at)
        else:
            return True
        return False

    async def _done(self, order: OrderRow) -> str:
        if order.kind == "sms":
            return await self.outward.send_text(
                order.to_number, order.from_number, order.body, account_sid=order.account_sid
            )
        if not self.public_url:
            raise NotDone("nobody can be called back: set IVR_PUBLIC_URL")
        voice, status = f"{self.public_url}{VOICE_PATH}", f"{self.public_url}{STATUS_PATH}"
        return await self.outward.place_call(
            order.to_number, order.from_number, voice, status, account_sid=order.account_sid
        )
