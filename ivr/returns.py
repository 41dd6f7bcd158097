"""Whether, and when, a caller whose call was dropped is to be called back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from callflows import moving
from callflows.engine import Moment
from callflows.model import Business
from callflows.orders import may_reach
from ivr.override import overrides_of
from memory.model import Owner
from memory.store import OrderRow, Store


@dataclass(frozen=True, slots=True)
class Returns:
    """By the business's file as it is when the call is due."""

    store: Store
    businesses: Callable[[], Mapping[str, Business]]

    async def due_at(self, order: OrderRow, now: datetime) -> datetime | None:
        """When to call: `now`, or once the business opens; `None`: not at all.

        Not who has called again meanwhile, or talks with us now; not after the time in which the call can be taken
        up. Raises: `StorageUnavailable`.
        """
        business = self.businesses().get(order.business_id)
        back = business.resume.call_back if business is not None else None
        if business is None or back is None or order.to_number in business.callers.blocked:
            return None
        moment = Moment(now, order.to_number, await overrides_of(self.store, business, now))
        here = moving.here(business, moving.at_node(business, business.start), moment)
        if not may_reach(order.to_number, back.countries or (here.region,)):
            return None
        due_at: datetime | None = now
        if back.hours is not None and not here.is_open(back.hours):
            due_at = here.next_open(back.hours)
        if due_at is None or not await self._is_waiting(business, order, due_at):
            return None
        return due_at.astimezone(ZoneInfo("UTC"))

    async def _is_waiting(self, business: Business, order: OrderRow, due_at: datetime) -> bool:
        """The call can still be taken up then, and nobody has."""
        owner = Owner(business.id, order.to_number)
        within = business.resume.within
        dropped = await self.store.find_dropped(business.id, owner.caller, within, due_at)
        if dropped is None or dropped.call_sid != order.call_sid:
            return False
        return not (await self.store.caller_facts(owner)).is_beside
