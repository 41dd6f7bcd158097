"""Turns as people look at them: a call's pages with their figures, and calls given back after a transfer."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select, update

from memory.calls import CallStatus
from memory.database import Database, check_owner
from memory.model import CallSnapshot, EndedBy, Exchange, Owner, Page
from memory.schema import calls, pages
from memory.store_calls import snapshot_json
from memory.store_orders import note_orders
from memory.store_pages import PAGE_COLUMNS, page_of


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """A page, what it cost and what the model was shown for it."""

    page: Page
    usage: dict[str, Any]
    states: dict[str, Any]


class TurnStore(Database):
    """Statements for `ivr calls show` and for a caller whom a transfer could not place."""

    async def turns_of(self, owner: Owner, call_sid: str) -> list[TurnRecord]:
        """The call's own turns, oldest first. Empty for another owner's call."""
        check_owner(owner)
        query = (
            select(*PAGE_COLUMNS, pages.c.usage, pages.c.states)
            .where(
                pages.c.business_id == owner.business_id,
                pages.c.caller.is_not_distinct_from(owner.caller or None),
                pages.c.call_id == call_sid,
            )
            .order_by(pages.c.created_at, pages.c.exchange_no)
        )
        async with self.transaction(owner.business_id) as connection:
            return [
                TurnRecord(page_of(row), row.usage, row.states) for row in await connection.execute(query)
            ]

    async def next_exchange_no(self, call_sid: str, below: int) -> int:
        """The number after the last page of this call; numbers from `below` on do not count.

        A worker may die between a page and the snapshot that counts it.
        """
        last = select(func.max(pages.c.exchange_no)).where(
            pages.c.call_id == call_sid, pages.c.exchange_no < below
        )
        async with self.call_transaction(call_sid) as connection:
            return int((await connection.execute(last)).scalar() or 0) + 1

    async def has_exchange(self, exchange: Exchange) -> bool:
        """Whether the call has this very exchange as a page."""
        same = select(pages.c.page_id).where(
            pages.c.call_id == exchange.call_id,
            pages.c.exchange_no == exchange.exchange_no,
            pages.c.user_text == exchange.user_text,
            pages.c.reply_text == exchange.reply_text,
        )
        async with self.call_transaction(exchange.call_id) as connection:
            return (await connection.execute(same)).first() is not None

    async def save_after_end(self, call_sid: str, snapshot: CallSnapshot) -> None:
        """Keep where a failed call stands that goes on without us: by keys. Nothing for any other call."""
        kept = update(calls).where(calls.c.call_sid == call_sid, calls.c.status == CallStatus.FAILED)
        async with self.call_transaction(call_sid) as connection:
            await connection.execute(kept.values(snapshot=snapshot_json(snapshot)))
            await note_orders(connection, call_sid, snapshot)

    async def return_call(
        self, call_sid: str, before: CallSnapshot | None, snapshot: CallSnapshot, status: CallStatus
    ) -> bool:
        """A transferred call comes back, leaves again or is over: once, by whoever saw it as it was `before`.

        An active call has a new epoch, so that nothing of its earlier streams holds for it. False if it is not as
        it was.
        """
        is_back = status is CallStatus.ACTIVE
        back = (
            update(calls)
            .where(
                calls.c.call_sid == call_sid,
                calls.c.status == CallStatus.TRANSFERRED,
                calls.c.snapshot.is_(None) if before is None else calls.c.snapshot == snapshot_json(before),
            )
            .values(
                status=status,
                ended_by=None if is_back else EndedBy.US,
                ended_at=None if is_back else func.clock_timestamp(),
                last_activity_at=func.clock_timestamp(),
                epoch=calls.c.epoch + (1 if is_back else 0),
                snapshot=snapshot_json(snapshot),
            )
            .returning(calls.c.call_sid)
        )
        async with self.call_transaction(call_sid) as connection:
            if (await connection.execute(back)).first() is None:
                return False
            await note_orders(connection, call_sid, snapshot)
            return True
