"""What a call may cost, and when that is spent: a business's ceilings, per call and per calendar month."""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

import structlog

from callflows.model import Business
from ivr.errors import StorageUnavailable
from ivr.remembering import in_our_terms
from memory.model import Charge
from memory.store import Store
from memory.store_costs import Spent

log = structlog.get_logger()

TIMEOUT_S = 1.0
"""A call that begins does not wait longer to be told what is left of the month."""


class Meter:
    """One call's money. `left_usd`: what it may still cost; None: there is no ceiling."""

    def __init__(self, left_usd: float | None) -> None:
        self._left_usd = left_usd

    @property
    def is_spent(self) -> bool:
        """Nothing is left."""
        return self._left_usd is not None and self._left_usd <= 0.0

    def add(self, charge: Charge) -> bool:
        """Count it; whether it was the one that reached the ceiling."""
        if self._left_usd is None or self.is_spent:
            return False
        self._left_usd -= charge.usd
        return self.is_spent


class Budgets:
    """What is left of each business's month. A month is read once, then only what came since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._months: dict[str, tuple[datetime, Spent]] = {}

    async def left_usd(self, business: Business, call_sid: str) -> float | None:
        """What this call may still cost; None without a ceiling. With the database down: one call's ceiling."""
        ceilings = business.spending
        if ceilings.per_call_usd is None and ceilings.per_month_usd is None:
            return None
        try:
            async with asyncio.timeout(TIMEOUT_S), in_our_terms():
                return await self._left(business, call_sid)
        except (StorageUnavailable, TimeoutError) as error:
            log.warning("spending_unknown", business=business.id, error=type(error).__name__)
            return ceilings.per_call_usd

    async def _left(self, business: Business, call_sid: str) -> float:
        ceilings, left = business.spending, []
        if ceilings.per_call_usd is not None:
            left.append(ceilings.per_call_usd - await self._store.spent_in_call(business.id, call_sid))
        if ceilings.per_month_usd is not None:
            left.append(ceilings.per_month_usd - await self._spent_this_month(business))
        return min(left)

    async def _spent_this_month(self, business: Business) -> float:
        month = month_start(datetime.now(ZoneInfo(business.timezone)))
        began, known = self._months.get(business.id, (month, Spent()))
        spent = await self._store.spent_since(business.id, month, known if began == month else Spent())
        self._months[business.id] = (month, spent)
        return spent.usd


def month_start(now: datetime) -> datetime:
    """The first moment of the month, in the same zone."""
    return now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
