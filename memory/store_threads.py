"""Vthreads in the database: references to pages, many to many; no payload is copied."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Float, Select, cast, func, insert, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Database, check_owner, clean_text
from memory.jobqueue import enqueue_thread
from memory.model import Owner, Page
from memory.schema import page_vectors, pages, thread_pages, threads
from memory.store_pages import PAGE_COLUMNS, Side, StoredPage, check_vector, fetch_pages
from memory.threads import Append, PageLink, Spawn, ThreadLink

SIMILAR_PAGES_MAX = 10

Place = Callable[[Sequence[ThreadLink], Sequence[PageLink]], Append | Spawn]


@dataclass(frozen=True, slots=True)
class ThreadRow:
    """A thread and the pages it refers to, oldest first."""

    thread_id: int
    summary: str
    flow_node: str
    page_ids: tuple[int, ...]


class ThreadStore(Database):
    """Every statement about threads."""

    async def join_threads(self, stored: StoredPage, model: str | None, place: Place) -> tuple[int, ...]:
        """Put a page into the threads that `place` decides on, and queue their refresh. Idempotent.

        With no vector of `model`, the page is linked to the thread of the page before it in the same call.
        Returns the ids of the threads the page is in; nothing for nobody.
        """
        owner = stored.owner
        check_owner(owner)
        if not owner.caller:
            return ()
        async with self.transaction(owner.business_id) as connection:
            # One page of a caller at a time: two that run together would each found the same thread.
            key = f"{owner.business_id}\x1f{owner.caller}"
            await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(key, 0))))
            already = await _threads_with(connection, owner, stored.page.page_id)
            if already:
                return already
            near, similar = await _links(connection, stored, model)
            match place(near, similar):
                case Append(thread_ids):
                    joined: tuple[int, ...] = thread_ids
                    members: tuple[int, ...] = (stored.page.page_id,)
                case Spawn(page_ids):
                    joined = (await _found(connection, owner, stored.flow_node),)
                    members = (*page_ids, stored.page.page_id)
            await _refer(connection, owner, joined, members)
            for thread_id in joined:
                await enqueue_thread(connection, thread_id)
            return joined

    async def threads_of(self, owner: Owner, page_ids: Sequence[int]) -> list[ThreadRow]:
        """The caller's threads that hold any of these pages, with all their pages. Empty for nobody."""
        check_owner(owner)
        if not owner.caller or not page_ids:
            return []
        holding = select(thread_pages.c.thread_id).where(
            thread_pages.c.business_id == owner.business_id, thread_pages.c.page_id.in_(page_ids)
        )
        query = (
            select(
                threads.c.thread_id,
                threads.c.summary,
                threads.c.flow_node,
                func.array_agg(thread_pages.c.page_id).label("page_ids"),
            )
            .join_from(threads, thread_pages, _same_thread())
            .where(
                threads.c.business_id == owner.business_id,
                threads.c.caller == owner.caller,
                threads.c.thread_id.in_(holding),
            )
            .group_by(threads.c.thread_id, threads.c.summary, threads.c.flow_node)
        )
        async with self.transaction(owner.business_id) as connection:
            return [
                ThreadRow(row.thread_id, row.summary, row.flow_node, tuple(sorted(row.page_ids)))
                for row in await connection.execute(query)
            ]

    async def pages_by_id(self, owner: Owner, page_ids: Sequence[int]) -> list[Page]:
        """The caller's pages among these. Empty for nobody."""
        check_owner(owner)
        if not owner.caller or not page_ids:
            return []
        query = select(*PAGE_COLUMNS).where(
            pages.c.business_id == owner.business_id,
            pages.c.caller == owner.caller,
            pages.c.page_id.in_(page_ids),
        )
        async with self.transaction(owner.business_id) as connection:
            return await fetch_pages(connection, query.order_by(pages.c.page_id))

    async def thread_content(self, thread_id: int) -> tuple[str, list[Page]]:
        """A thread's business and its pages, oldest first, for the job that refreshes it; none if it was deleted."""
        query = (
            select(*PAGE_COLUMNS)
            .join(
                thread_pages,
                (thread_pages.c.business_id == pages.c.business_id)
                & (thread_pages.c.page_id == pages.c.page_id),
            )
            .where(thread_pages.c.thread_id == thread_id)
            .order_by(pages.c.created_at, pages.c.page_id)
        )
        async with self.thread_transaction(thread_id) as connection:
            business_id = (
                await connection.execute(select(func.current_setting("app.business")))
            ).scalar_one()
            return business_id, await fetch_pages(connection, query)

    async def save_thread(
        self, thread_id: int, summary: str, model: str | None, embedding: Sequence[float] | None
    ) -> None:
        """Replace a thread's summary and its embedding (None: it has none until a later refresh).

        Where its flow stood is copied from its newest page. Raises: `WrongDimension`, `ValueError`.
        """
        if embedding is not None:
            check_vector(embedding, model or "")
        newest = (
            select(pages.c.flow_node)
            .join(
                thread_pages,
                (thread_pages.c.business_id == pages.c.business_id)
                & (thread_pages.c.page_id == pages.c.page_id),
            )
            .where(thread_pages.c.thread_id == thread_id)
            .order_by(pages.c.created_at.desc(), pages.c.page_id.desc())
            .limit(1)
            .scalar_subquery()
        )
        statement = (
            update(threads)
            .where(threads.c.thread_id == thread_id)
            .values(
                summary=clean_text(summary),
                model=model if embedding is not None else None,
                embedding=None if embedding is None else list(embedding),
                flow_node=func.coalesce(newest, threads.c.flow_node),
                updated_at=func.clock_timestamp(),
            )
        )
        async with self.thread_transaction(thread_id) as connection:
            await connection.execute(statement)


def _same_thread() -> Any:
    return (thread_pages.c.business_id == threads.c.business_id) & (
        thread_pages.c.thread_id == threads.c.thread_id
    )


async def _threads_with(connection: AsyncConnection, owner: Owner, page_id: int) -> tuple[int, ...]:
    query = select(thread_pages.c.thread_id).where(
        thread_pages.c.business_id == owner.business_id, thread_pages.c.page_id == page_id
    )
    return tuple(row.thread_id for row in await connection.execute(query))


async def _links(
    connection: AsyncConnection, stored: StoredPage, model: str | None
) -> tuple[list[ThreadLink], list[PageLink]]:
    mine = page_vectors.alias("mine")
    vector = select(mine.c.embedding).where(
        mine.c.business_id == stored.owner.business_id,
        mine.c.caller == stored.owner.caller,
        mine.c.page_id == stored.page.page_id,
        mine.c.model == model,
        mine.c.side == Side.WHOLE,
        mine.c.chunk == 0,
    )
    embedded = model is not None and (await connection.execute(vector)).first() is not None
    if not embedded:
        return await _thread_before(connection, stored), []
    others = _other_pages(stored, model, vector)
    cosine = others.c.cosine
    near = (
        select(thread_pages.c.thread_id, func.avg(cosine).label("link"))
        .join(others, thread_pages.c.page_id == others.c.page_id)
        .where(thread_pages.c.business_id == stored.owner.business_id)
        .group_by(thread_pages.c.thread_id)
    )
    similar = select(others.c.page_id, cosine).order_by(cosine.desc()).limit(SIMILAR_PAGES_MAX)
    return (
        [ThreadLink(row.thread_id, row.link) for row in await connection.execute(near)],
        [PageLink(row.page_id, row.cosine) for row in await connection.execute(similar)],
    )


def _other_pages(stored: StoredPage, model: str | None, vector: Select[Any]) -> Any:
    distance = page_vectors.c.embedding.cosine_distance(vector.scalar_subquery())
    return (
        select(page_vectors.c.page_id, (1.0 - cast(distance, Float)).label("cosine"))
        .where(
            page_vectors.c.business_id == stored.owner.business_id,
            page_vectors.c.caller == stored.owner.caller,
            page_vectors.c.model == model,
            page_vectors.c.side == Side.WHOLE,
            page_vectors.c.chunk == 0,
            page_vectors.c.page_id != stored.page.page_id,
        )
        .subquery()
    )


async def _thread_before(connection: AsyncConnection, stored: StoredPage) -> list[ThreadLink]:
    """Without a vector the order of talk is the only hint: the thread of the call's page before this one."""
    query = (
        select(thread_pages.c.thread_id)
        .join(
            pages,
            (pages.c.business_id == thread_pages.c.business_id) & (pages.c.page_id == thread_pages.c.page_id),
        )
        .where(
            pages.c.business_id == stored.owner.business_id,
            pages.c.caller == stored.owner.caller,
            pages.c.call_id == stored.page.call_id,
            tuple_(pages.c.created_at, pages.c.exchange_no)
            < tuple_(stored.page.created_at, stored.page.exchange_no),
        )
        .order_by(pages.c.created_at.desc(), pages.c.exchange_no.desc())
        .limit(1)
    )
    return [ThreadLink(row.thread_id, 1.0) for row in await connection.execute(query)]


async def _found(connection: AsyncConnection, owner: Owner, flow_node: str) -> int:
    row = insert(threads).values(business_id=owner.business_id, caller=owner.caller, flow_node=flow_node)
    thread_id: int = (await connection.execute(row.returning(threads.c.thread_id))).scalar_one()
    return thread_id


async def _refer(
    connection: AsyncConnection, owner: Owner, thread_ids: Sequence[int], page_ids: Sequence[int]
) -> None:
    rows = [
        {"business_id": owner.business_id, "thread_id": thread_id, "page_id": page_id}
        for thread_id in thread_ids
        for page_id in page_ids
    ]
    await connection.execute(upsert(thread_pages).on_conflict_do_nothing(), rows)
