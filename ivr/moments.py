"""What a flow may know of the world as a call begins, comes back, or goes on by keys."""

from datetime import datetime
from zoneinfo import ZoneInfo

from callflows import engine
from callflows.model import Business
from callflows.nodes.later import CallbackNode
from callflows.orders import NEVER_CALLED_BACK, CalledBack
from ivr.override import overrides_of
from memory.store import Store


async def moment_of(store: Store, business: Business, caller: str | None, call_id: str) -> engine.Moment:
    """This moment of a call. Raises: `memory.errors`."""
    now = datetime.now(ZoneInfo(business.timezone))
    overrides = await overrides_of(store, business, now)
    called_back = NEVER_CALLED_BACK
    if caller is not None and any(isinstance(node, CallbackNode) for node in business.nodes.values()):
        called_back = CalledBack(*await store.called_back(business.id, caller))
    return engine.Moment(now, caller, overrides, call_id, called_back)
