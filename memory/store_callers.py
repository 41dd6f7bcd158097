"""What is known of a caller beside what they said: whether others use the number, their PIN, a wish to be forgotten."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Select, exists, func, select, update
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.calls import CallRow, CallStatus
from memory.database import Database, check_owner
from memory.model import Owner
from memory.schema import callers, calls, pages

PARALLEL_AFTER = timedelta(seconds=30)
"""What is kept of a call so long after another one of the number began was said beside it: a reply that was under way
when a line was lost, and the words of its turn, are kept sooner."""


@dataclass(frozen=True, slots=True)
class CallerFacts:
    """`heard_at`: the last sign of any other call of theirs; `is_beside`: another one is under way now."""

    is_shared: bool = False
    is_enrolled: bool = False
    is_beside: bool = False
    heard_at: datetime | None = None
    forget_at: datetime | None = None


NOTHING_KNOWN = CallerFacts()


class CallerStore(Database):
    """Statements about callers. Nobody is never known, enrolled or forgotten."""

    async def caller_facts(self, owner: Owner, but_call: str = "") -> CallerFacts:
        """What is known of a caller, `but_call` left out of account."""
        check_owner(owner)
        if not owner.caller:
            return NOTHING_KNOWN
        others = (
            calls.c.business_id == owner.business_id,
            calls.c.caller == owner.caller,
            calls.c.call_sid != but_call,
        )
        mine = select(callers).where(
            callers.c.business_id == owner.business_id, callers.c.caller == owner.caller
        )
        heard = select(
            func.max(calls.c.last_activity_at).label("at"),
            func.coalesce(func.bool_or(calls.c.status == CallStatus.ACTIVE), False).label("is_beside"),
        ).where(*others)
        async with self.transaction(owner.business_id) as connection:
            row = (await connection.execute(mine)).first()
            last = (await connection.execute(heard)).one()
        if row is None:
            return CallerFacts(is_beside=last.is_beside, heard_at=last.at)
        return CallerFacts(
            row.shared_at is not None, row.pin_hash is not None, last.is_beside, last.at, row.forget_at
        )

    async def new_since(self, owner: Owner, silence: timedelta) -> datetime | None:
        """When a caller was heard of again after the last silence longer than that: a number may be another's since.

        `None` if there was no such silence.
        """
        check_owner(owner)
        if not owner.caller:
            return None
        before = func.max(calls.c.last_activity_at).over(order_by=calls.c.started_at, rows=(None, -1))
        heard = (
            select(calls.c.started_at, before.label("before"))
            .where(calls.c.business_id == owner.business_id, calls.c.caller == owner.caller)
            .subquery()
        )
        since = select(func.max(heard.c.started_at)).where(heard.c.started_at - heard.c.before > silence)
        async with self.transaction(owner.business_id) as connection:
            found: datetime | None = (await connection.execute(since)).scalar()
            return found

    async def set_shared(self, owner: Owner, *, is_shared: bool) -> None:
        """Note that several people use the number, or that they do not after all. Raises: `ValueError` for nobody."""
        await self._set(owner, shared_at=func.now() if is_shared else None)

    async def enrol(self, owner: Owner, pin_hash: str | None) -> None:
        """Keep the hash of a caller's PIN; None takes it away. Raises: `ValueError` for nobody."""
        await self._set(owner, pin_hash=pin_hash, enrolled_at=None if pin_hash is None else func.now())

    async def pin_hash_of(self, owner: Owner) -> str | None:
        """The hash of the caller's PIN, if the business gave them one."""
        check_owner(owner)
        query = select(callers.c.pin_hash).where(
            callers.c.business_id == owner.business_id, callers.c.caller == owner.caller
        )
        async with self.transaction(owner.business_id) as connection:
            found: str | None = (await connection.execute(query)).scalar()
            return found

    async def ask_to_forget(self, owner: Owner, wait: timedelta) -> None:
        """The caller wants to be forgotten: it is done after so long; an earlier wish stands. Raises: `ValueError`."""
        at = func.now() + wait
        wish = _row(owner, forget_at=at)
        async with self.transaction(owner.business_id) as connection:
            await connection.execute(
                wish.on_conflict_do_update(
                    index_elements=["business_id", "caller"],
                    set_={"forget_at": func.coalesce(callers.c.forget_at, wish.excluded.forget_at)},
                )
            )

    async def keep_after_all(self, owner: Owner) -> bool:
        """Undo a wish to be forgotten. False if there was none, or it was carried out."""
        check_owner(owner)
        statement = (
            update(callers)
            .where(
                callers.c.business_id == owner.business_id,
                callers.c.caller == owner.caller,
                callers.c.forget_at.is_not(None),
            )
            .values(forget_at=None)
            .returning(callers.c.caller)
        )
        async with self.transaction(owner.business_id) as connection:
            return (await connection.execute(statement)).first() is not None

    async def due_to_forget(self, now: datetime) -> list[Owner]:
        """Callers whose wish to be forgotten is to be carried out, one business after the other."""
        due: list[Owner] = []
        for business_id in await self.businesses():
            query = select(callers.c.caller).where(
                callers.c.business_id == business_id, callers.c.forget_at <= now
            )
            async with self.transaction(business_id) as connection:
                due += [Owner(business_id, row.caller) for row in await connection.execute(query)]
        return due

    async def _set(self, owner: Owner, **values: object) -> None:
        statement = _row(owner, **values).on_conflict_do_update(
            index_elements=["business_id", "caller"], set_=values
        )
        async with self.transaction(owner.business_id) as connection:
            await connection.execute(statement)


async def note_parallel(connection: AsyncConnection, call: CallRow) -> None:
    """A page of `call` is kept, just spoken: if a later call of the number was talked in, the number is shared."""
    if not call.caller:
        return
    if (await connection.execute(_begun_beside(call))).first() is None:
        return
    statement = _row(call.owner, shared_at=func.now())
    await connection.execute(
        statement.on_conflict_do_update(
            index_elements=["business_id", "caller"],
            set_={"shared_at": func.coalesce(callers.c.shared_at, statement.excluded.shared_at)},
        )
    )


def _begun_beside(call: CallRow) -> Select[tuple[str]]:
    """A call of the number that began during this one, long enough ago, and was talked in."""
    said = exists().where(pages.c.business_id == calls.c.business_id, pages.c.call_id == calls.c.call_sid)
    return (
        select(calls.c.call_sid)
        .where(
            calls.c.business_id == call.business_id,
            calls.c.caller == call.caller,
            calls.c.call_sid != call.call_sid,
            calls.c.last_activity_at > call.started_at,
            calls.c.started_at > call.started_at,
            calls.c.started_at < func.clock_timestamp() - PARALLEL_AFTER,
            said,
        )
        .limit(1)
    )


def _row(owner: Owner, **values: object) -> Insert:
    check_owner(owner)
    if not owner.caller:
        raise ValueError("nobody is not known to anybody")
    return insert(callers).values(business_id=owner.business_id, caller=owner.caller, **values)
