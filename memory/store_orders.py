"""What is to be done beside a call: written with the snapshot that holds it, begun once, never twice."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import delete, exists, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.calls import CallRow, CallStatus
from memory.database import Database, clean_text
from memory.jobqueue import enqueue_order
from memory.model import MAY_RETURN, CallSnapshot, EndedBy
from memory.schema import calls, orders

RETURN = "return"
"""The kind of an order to call back who was cut off."""
RETURN_AFTER = timedelta(seconds=30)
RETURNED = (EndedBy.NETWORK, EndedBy.WORKER, EndedBy.TWILIO)
"""Not who hung up, nor whom nobody heard."""


class OrderStatus(StrEnum):
    """`BEGUN`: Twilio was, or may have been, asked; it is not asked again. `REFUSED`: not to be done."""

    DUE = "due"
    BEGUN = "begun"
    DONE = "done"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class OrderRow:
    """One order. `from_number`: the business's number that was called."""

    business_id: str
    order_key: str
    call_sid: str
    kind: str
    to_number: str
    body: str
    from_number: str
    due_at: datetime
    status: OrderStatus
    account_sid: str = ""
    """The Twilio account that its call came by; empty for the main one."""


async def note_orders(connection: AsyncConnection, call_sid: str, snapshot: CallSnapshot) -> None:
    """Keep and queue the orders of a snapshot that are not kept yet, in the snapshot's own transaction."""
    listed = snapshot.state.get("orders")
    for order in listed if isinstance(listed, list) else ():
        await _note(connection, call_sid, order)


async def _note(connection: AsyncConnection, call_sid: str, order: Mapping[str, Any]) -> None:
    due_at = datetime.fromisoformat(order["due"]) if order["due"] else None
    row = select(
        calls.c.business_id,
        calls.c.call_sid,
        literal(order["key"]),
        literal(order["kind"]),
        literal(order["to"]),
        literal(clean_text(order["text"])),
        func.now() if due_at is None else literal(due_at),
    ).where(calls.c.call_sid == call_sid)
    names = ["business_id", "call_sid", "order_key", "kind", "to_number", "body", "due_at"]
    fresh = insert(orders).from_select(names, row).on_conflict_do_nothing().returning(orders.c.order_key)
    if (await connection.execute(fresh)).first() is not None:
        await enqueue_order(connection, call_sid, order["key"], due_at)


async def note_return(connection: AsyncConnection, row: CallRow) -> None:
    """A call that has ended: if its caller may be called back for that, order it, in the end's own transaction.

    Not at once: who calls again by themselves need not be called.
    """
    may = row.snapshot is not None and row.snapshot.state.get(MAY_RETURN) is True
    if row.status is not CallStatus.DROPPED or row.ended_by not in RETURNED or not may or not row.caller:
        return
    due = datetime.now(UTC) + RETURN_AFTER
    order = {"kind": RETURN, "to": row.caller, "text": "", "due": due.isoformat()}
    await _note(connection, row.call_sid, {**order, "key": return_key(row.call_sid)})


async def drop_return(connection: AsyncConnection, call_sid: str) -> None:
    """The call lives after all."""
    gone = delete(orders).where(
        orders.c.call_sid == call_sid, orders.c.kind == RETURN, orders.c.status == OrderStatus.DUE
    )
    await connection.execute(gone)


def return_key(call_sid: str) -> str:
    """The same however often the end of a call is noted."""
    return hashlib.sha256(f"{call_sid}\nreturn".encode()).hexdigest()[:32]


class OrderStore(Database):
    """Statements about orders."""

    async def order(self, call_sid: str, key: str) -> OrderRow | None:
        """An order, unless its caller was erased."""
        ours = (orders.c.business_id == calls.c.business_id) & (orders.c.call_sid == calls.c.call_sid)
        query = (
            select(
                orders.c.business_id,
                orders.c.order_key,
                orders.c.call_sid,
                orders.c.kind,
                orders.c.to_number,
                orders.c.body,
                calls.c.to_number.label("from_number"),
                orders.c.due_at,
                orders.c.status,
                calls.c.account_sid,
            )
            .select_from(orders.join(calls, ours))
            .where(orders.c.order_key == key, calls.c.call_sid == call_sid)
        )
        async with self.call_transaction(call_sid) as connection:
            row = (await connection.execute(query)).first()
            return None if row is None else OrderRow(**{**row._mapping, "status": OrderStatus(row.status)})

    async def called_back(self, business_id: str, number: str) -> tuple[bool, datetime | None]:
        """Whether a number is still to be called back, and when calling it was begun last."""
        of_number = (
            (orders.c.business_id == business_id)
            & (orders.c.to_number == number)
            & (orders.c.kind == "callback")
        )
        is_due = func.coalesce(func.bool_or(orders.c.status == OrderStatus.DUE), False)
        async with self.transaction(business_id) as connection:
            query = select(is_due, func.max(orders.c.begun_at)).where(of_number)
            due, begun_at = (await connection.execute(query)).one()
            return bool(due), begun_at

    async def begin_order(self, order: OrderRow, once_in: timedelta | None) -> OrderStatus:
        """Begin an order that is due: it is this caller's to do from now on, and nobody else's.

        With `once_in` it is refused if one of its kind to the same number was begun within that time. Returns
        what it was made, or is already.
        """
        this = (orders.c.business_id == order.business_id) & (orders.c.order_key == order.order_key)
        async with self.transaction(order.business_id) as connection:
            # One after the other for one number: two that begin at once would not see each other.
            lock = func.pg_advisory_xact_lock(func.hashtext(f"{order.business_id}\n{order.to_number}"))
            await connection.execute(select(lock))
            status = OrderStatus.BEGUN
            if once_in is not None:
                earlier = exists().where(
                    orders.c.business_id == order.business_id,
                    orders.c.kind == order.kind,
                    orders.c.to_number == order.to_number,
                    orders.c.order_key != order.order_key,
                    orders.c.begun_at > func.clock_timestamp() - once_in,
                )
                if (await connection.execute(select(earlier))).scalar():
                    status = OrderStatus.REFUSED
            begun_at = func.clock_timestamp() if status is OrderStatus.BEGUN else None
            begun = update(orders).where(this, orders.c.status == OrderStatus.DUE)
            changed = await connection.execute(
                begun.values(status=status, begun_at=begun_at).returning(orders.c.status)
            )
            if changed.first() is not None:
                return status
            return OrderStatus.DONE

    async def put_off(self, order: OrderRow, due_at: datetime) -> None:
        """Not now: an order that is due is to be done then."""
        this = (orders.c.business_id == order.business_id) & (orders.c.order_key == order.order_key)
        later = update(orders).where(this, orders.c.status == OrderStatus.DUE).values(due_at=due_at)
        async with self.transaction(order.business_id) as connection:
            if (await connection.execute(later)).rowcount:
                await enqueue_order(connection, order.call_sid, order.order_key, due_at)

    async def refuse_order(self, order: OrderRow) -> None:
        """An order that is due is not to be done after all."""
        this = (orders.c.business_id == order.business_id) & (orders.c.order_key == order.order_key)
        refused = update(orders).where(this, orders.c.status == OrderStatus.DUE)
        async with self.transaction(order.business_id) as connection:
            await connection.execute(refused.values(status=OrderStatus.REFUSED))

    async def order_over(self, order: OrderRow, status: OrderStatus, sid: str = "") -> None:
        """How it went. `DUE`: it was certainly not done, and is to be tried again."""
        this = (orders.c.business_id == order.business_id) & (orders.c.order_key == order.order_key)
        values: dict[str, Any] = {"status": status, "sid": sid}
        if status is OrderStatus.DUE:
            values["begun_at"] = None
        async with self.transaction(order.business_id) as connection:
            await connection.execute(
                update(orders).where(this, orders.c.status == OrderStatus.BEGUN).values(**values)
            )
