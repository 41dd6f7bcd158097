"""Erasure: rows go at once, files by a job; a keyed hash of the caller stays, so that a restore brings nobody back."""

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Select, delete, func, insert, literal, or_, select, union_all, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.calls import CallStatus
from memory.database import Database, check_business, check_owner
from memory.jobqueue import enqueue_thread
from memory.model import Owner
from memory.schema import (
    caller_revisions,
    callers,
    calls,
    charges,
    doomed_files,
    erasure_key,
    erasures,
    pages,
    spent_tokens,
    thread_pages,
    threads,
    voicemails,
)


@dataclass(frozen=True, slots=True)
class Erased:
    """How much an erasure took."""

    calls: int = 0
    pages: int = 0
    files: int = 0


@dataclass(frozen=True, slots=True)
class Erasure:
    """One line of the ledger. `caller_hash` tells nobody who it was without the database's key."""

    business_id: str
    caller_hash: str
    erased_at: datetime


@dataclass(frozen=True, slots=True)
class DoomedFile:
    """A file of erased pages that is still to be deleted."""

    file_id: int
    path: str


@dataclass(frozen=True, slots=True)
class Topic:
    """One of a caller's threads, as a person would look at it."""

    summary: str
    turns: int


class ErasureStore(Database):
    """Statements that erase, and those that see to it that what was erased stays so."""

    async def topics(self, owner: Owner) -> list[Topic]:
        """A caller's threads, the latest first. None for nobody."""
        check_owner(owner)
        query = (
            select(threads.c.summary, func.count().label("turns"))
            .join(thread_pages, thread_pages.c.thread_id == threads.c.thread_id)
            .where(threads.c.business_id == owner.business_id, threads.c.caller == owner.caller)
            .group_by(threads.c.business_id, threads.c.thread_id)
            .order_by(threads.c.updated_at.desc())
        )
        async with self.transaction(owner.business_id) as connection:
            return [Topic(row.summary, row.turns) for row in await connection.execute(query)]

    async def forget(self, owner: Owner, before: datetime | None = None) -> tuple[Erased, Erasure]:
        """Erase a caller: calls, pages, vectors, threads, now; whatever is under way for them is refused from now on.

        With `before`, only what began until then (an erasure that is done again). Raises: `ValueError` for nobody.
        """
        check_owner(owner)
        if not owner.caller:
            raise ValueError("a withheld number owns no memory to forget")
        async with self.transaction(owner.business_id) as connection:
            hashed = caller_hash(await _key(connection), owner.business_id, owner.caller)
            entry = upsert(erasures).values(business_id=owner.business_id, caller_hash=hashed)
            at: datetime = (
                await connection.execute(
                    entry.on_conflict_do_update(
                        index_elements=["business_id", "caller_hash"], set_={"erased_at": func.now()}
                    ).returning(erasures.c.erased_at)
                )
            ).scalar_one()
            whose = [calls.c.business_id == owner.business_id, calls.c.caller == owner.caller]
            erased = await _erase(connection, [*whose, calls.c.started_at <= (before or at)])
            since = func.greatest(callers.c.shared_at, callers.c.enrolled_at)
            await connection.execute(
                delete(callers).where(
                    callers.c.business_id == owner.business_id,
                    callers.c.caller == owner.caller,
                    or_(since.is_(None), since <= (before or at)),
                )
            )
            return erased, Erasure(owner.business_id, hashed, at)

    async def was_erased_since(self, owner: Owner, when: datetime) -> bool:
        """Whether this caller was erased after `when`: what was said to them before is not to be written any more."""
        check_owner(owner)
        if not owner.caller:
            return False
        async with self.transaction(owner.business_id) as connection:
            hashed = caller_hash(await _key(connection), owner.business_id, owner.caller)
            found = select(erasures.c.erased_at).where(
                erasures.c.business_id == owner.business_id,
                erasures.c.caller_hash == hashed,
                erasures.c.erased_at > when,
            )
            return (await connection.execute(found)).first() is not None

    async def erase_again(self, entries: Sequence[Erasure]) -> Erased:
        """Do erasures again that this database does not know, as after a restore. Done twice, it changes nothing."""
        total = Erased()
        for business_id in sorted({entry.business_id for entry in entries}):
            due = await self._unknown(business_id, [e for e in entries if e.business_id == business_id])
            for caller, before in due:
                erased, _ = await self.forget(Owner(business_id, caller), before)
                total = _sum(total, erased)
        return total

    async def expire(self, business_id: str, before: datetime) -> Erased:
        """Erase the calls of a business that ended before this time, whoever made them."""
        check_business(business_id)
        async with self.transaction(business_id) as connection:
            return await _erase(
                connection,
                [
                    calls.c.business_id == business_id,
                    calls.c.status != CallStatus.ACTIVE,
                    func.coalesce(calls.c.ended_at, calls.c.last_activity_at) < before,
                ],
            )

    async def doomed(self, limit: int) -> list[DoomedFile]:
        """Files to be deleted, one business after the other."""
        found: list[DoomedFile] = []
        for business_id in await self.businesses():
            found += await self._doomed_of(business_id, limit - len(found))
        return found

    async def _doomed_of(self, business_id: str, limit: int) -> list[DoomedFile]:
        query = (
            select(doomed_files.c.file_id, doomed_files.c.path)
            .where(doomed_files.c.business_id == business_id)
            .order_by(doomed_files.c.file_id)
        )
        async with self.transaction(business_id) as connection:
            return [DoomedFile(row.file_id, row.path) for row in await connection.execute(query.limit(limit))]

    async def undoom(self, file_ids: Sequence[int]) -> None:
        """These are deleted."""
        these = delete(doomed_files).where(doomed_files.c.file_id.in_(file_ids))
        for business_id in await self.businesses():
            async with self.transaction(business_id) as connection:
                await connection.execute(these.where(doomed_files.c.business_id == business_id))

    async def _unknown(self, business_id: str, entries: Sequence[Erasure]) -> list[tuple[str, datetime]]:
        """The callers of a business who are in an entry that the database has not carried out."""
        async with self.transaction(business_id) as connection:
            rows = await connection.execute(
                select(erasures.c.caller_hash, erasures.c.erased_at).where(
                    erasures.c.business_id == business_id
                )
            )
            known = {row.caller_hash: row.erased_at for row in rows}
            due = {
                e.caller_hash: e.erased_at
                for e in entries
                if known.get(e.caller_hash) is None or known[e.caller_hash] < e.erased_at
            }
            if not due:
                return []
            key = await _key(connection)
            callers = await connection.execute(
                select(calls.c.caller)
                .where(calls.c.business_id == business_id, calls.c.caller.is_not(None))
                .distinct()
            )
            found = [(row.caller, caller_hash(key, business_id, row.caller)) for row in callers]
            return [(caller, due[hashed]) for caller, hashed in found if hashed in due]


def caller_hash(key: str, business_id: str, caller: str) -> str:
    """HMAC-SHA256 over business and number, in hex."""
    said = f"{len(business_id)}:{business_id}{caller}".encode()
    return hmac.new(key.encode(), said, hashlib.sha256).hexdigest()


async def _key(connection: AsyncConnection) -> str:
    key: str = (await connection.execute(select(erasure_key.c.key))).scalar_one()
    return key


async def _erase(connection: AsyncConnection, which: list[ColumnElement[bool]]) -> Erased:
    """The calls that `which` selects, with all that hangs on them."""
    gone = (
        select(calls.c.business_id, calls.c.call_sid, calls.c.caller)
        .where(*which)
        .with_for_update()
        .cte("gone")
    )
    sids = (await connection.execute(select(gone))).all()
    if not sids:
        return Erased()
    business_id, names = sids[0].business_id, [row.call_sid for row in sids]
    theirs = (pages.c.business_id == business_id, pages.c.call_id.in_(names))
    files = await connection.execute(
        insert(doomed_files).from_select(["business_id", "path"], _paths(theirs)).returning(literal(1))
    )
    messages = select(voicemails.c.business_id, voicemails.c.audio_path).where(
        voicemails.c.business_id == business_id,
        voicemails.c.call_sid.in_(names),
        voicemails.c.audio_path != "",
    )
    recordings = await connection.execute(
        insert(doomed_files).from_select(["business_id", "path"], messages).returning(literal(1))
    )
    count = len(files.all()) + len(recordings.all())
    touched = (
        select(thread_pages.c.thread_id)
        .join(pages, pages.c.page_id == thread_pages.c.page_id)
        .where(thread_pages.c.business_id == business_id, *theirs)
        .distinct()
    )
    thread_ids = list((await connection.execute(touched)).scalars())
    page_count = (await connection.execute(delete(pages).where(*theirs))).rowcount
    left = select(thread_pages.c.thread_id).where(thread_pages.c.business_id == business_id)
    await connection.execute(
        delete(threads).where(
            threads.c.business_id == business_id,
            threads.c.thread_id.in_(thread_ids),
            threads.c.thread_id.not_in(left),
        )
    )
    for row in (await connection.execute(_still(business_id, thread_ids))).all():
        await enqueue_thread(connection, row.thread_id)  # its summary still tells what is gone
    unnamed = update(charges).where(charges.c.business_id == business_id, charges.c.call_id.in_(names))
    await connection.execute(unnamed.values(call_id=None, caller=None))
    await connection.execute(delete(spent_tokens).where(spent_tokens.c.call_sid.in_(names)))
    await connection.execute(
        delete(calls).where(calls.c.business_id == business_id, calls.c.call_sid.in_(names))
    )
    still = select(calls.c.caller).where(calls.c.business_id == business_id, calls.c.caller.is_not(None))
    await connection.execute(
        delete(caller_revisions).where(
            caller_revisions.c.business_id == business_id,
            caller_revisions.c.caller.in_({row.caller for row in sids if row.caller}),
            caller_revisions.c.caller.not_in(still),
        )
    )
    return Erased(len(names), page_count, count)


def _still(business_id: str, thread_ids: Sequence[int]) -> Select[tuple[int]]:
    return select(threads.c.thread_id).where(
        threads.c.business_id == business_id, threads.c.thread_id.in_(thread_ids)
    )


def _paths(theirs: tuple[ColumnElement[bool], ...]) -> Select[tuple[str, str]]:
    sides = union_all(
        *(
            select(pages.c.business_id, column.label("path")).where(*theirs, column != "")
            for column in (pages.c.user_audio_path, pages.c.reply_audio_path)
        )
    ).subquery()
    return select(sides.c.business_id, sides.c.path)


def _sum(a: Erased, b: Erased) -> Erased:
    return Erased(a.calls + b.calls, a.pages + b.pages, a.files + b.files)
