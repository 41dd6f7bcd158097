"""The business as its file was when a call began: a call under way goes on with the flow that it began with."""

import asyncio

import structlog

from callflows.model import Business
from callflows.parse import FlowErrors, parse_text
from ivr.shelf import Flows
from memory.calls import CallRow
from memory.store import Store

log = structlog.get_logger()


async def as_begun(book: Flows, store: Store, row: CallRow) -> Business | None:
    """As the call's file was; as it is now, if that is not to be had; None for a business whose file is gone.

    Raises: the store's `StorageUnavailable`.
    """
    business = book.businesses.get(row.business_id)
    if business is None or row.flow_hash == book.hash_of(business.id):
        return business
    text = await store.get_flow(row.flow_hash)
    try:
        if text is None:
            return business
        return await asyncio.to_thread(parse_text, text, f"{business.id} as the call began")
    except FlowErrors:  # written for an older release
        log.warning("older_flow_unreadable", business=business.id)
        return business
