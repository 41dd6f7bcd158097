"""Vpages in the database: committed once, found again within one caller of one business, never across."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, case, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.database import Database, check_business, check_owner, clean_json, clean_text
from memory.errors import WrongDimension
from memory.jobqueue import enqueue_page
from memory.languages import configuration_of
from memory.model import CallSnapshot, Exchange, Owner, Page
from memory.schema import VECTOR_DIMENSION, calls, page_vectors, pages
from memory.store_callers import note_parallel
from memory.store_calls import lock_call, snapshot_json

ULAW_BYTES_PER_MS = 8
RESUME_CHAIN_MAX = 5
"""How many calls back a resumed call's pages are looked for."""

PAGE_COLUMNS = tuple(pages.c[name] for name in Page.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class AudioPaths:
    """Where the exchange's two sides lie in the audio store; empty where there is none."""

    user: str = ""
    reply: str = ""


class Side(IntEnum):
    """What a vector is of: the whole page (threads are built on it), or what one side said (search is)."""

    WHOLE = 0
    USER = 1
    REPLY = 2


@dataclass(frozen=True, slots=True)
class PageVectors:
    """A page's vectors, one a chunk; a side that said nothing has none."""

    whole: Sequence[Sequence[float]] = ()
    user: Sequence[Sequence[float]] = ()
    reply: Sequence[Sequence[float]] = ()

    def by_side(self) -> Iterator[tuple[Side, int, Sequence[float]]]:
        """Side, number of the chunk, vector."""
        for side, vectors in ((Side.WHOLE, self.whole), (Side.USER, self.user), (Side.REPLY, self.reply)):
            for chunk, vector in enumerate(vectors):
                yield side, chunk, vector


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A page as a job sees it."""

    page: Page
    owner: Owner
    flow_node: str
    embedded_with: str | None


class PageStore(Database):
    """Every statement about pages and their vectors."""

    async def commit_page(
        self,
        owner: Owner,
        exchange: Exchange,
        audio: AudioPaths,
        *,
        epoch: int | None = None,
        snapshot: CallSnapshot | None = None,
    ) -> int | None:
        """Page, job, the call's activity and (if given) its flow state in one transaction.

        Returns the page's id, or None if this exchange was committed before (nothing changes then).
        Raises: `StaleEpoch`; `UnknownCall`; `ValueError` if the call belongs to another owner.
        """
        check_owner(owner)
        async with self.transaction(owner.business_id) as connection:
            call = await lock_call(connection, exchange.call_id, epoch)
            if call.owner != owner:
                raise ValueError(f"call {exchange.call_id} belongs to another owner")
            row = insert(pages).values(_page_values(owner, exchange, audio)).on_conflict_do_nothing()
            page_id: int | None = (await connection.execute(row.returning(pages.c.page_id))).scalar()
            if page_id is None:
                return None
            await enqueue_page(connection, page_id)
            state = {} if snapshot is None else {"snapshot": snapshot_json(snapshot)}
            await connection.execute(
                update(calls)
                .where(calls.c.call_sid == exchange.call_id)
                .values(last_activity_at=func.coalesce(calls.c.ended_at, func.clock_timestamp()), **state)
            )
            if not exchange.is_late:
                await note_parallel(connection, call)
            return page_id

    async def recent_pages(self, owner: Owner, call_id: str, n: int) -> list[Page]:
        """The last `n` pages of this call, and before them of the calls it went on with, oldest first.

        For nobody: this call's own pages only.
        """
        check_owner(owner)
        chain = (
            select(calls.c.call_sid, went_on_with(), literal(0).label("back"))
            .where(calls.c.business_id == owner.business_id, calls.c.call_sid == call_id)
            .cte("chain", recursive=True)
        )
        earlier = (
            select(calls.c.call_sid, went_on_with(), chain.c.back + 1)
            .join(chain, calls.c.call_sid == chain.c.resumed_from)
            .where(
                calls.c.business_id == owner.business_id,
                calls.c.caller == owner.caller,
                chain.c.back < RESUME_CHAIN_MAX,
            )
        )
        chain = chain.union(earlier)
        query = (
            select(*PAGE_COLUMNS)
            .join(chain, chain.c.call_sid == pages.c.call_id)
            .where(
                pages.c.business_id == owner.business_id,
                pages.c.caller.is_not_distinct_from(owner.caller or None),
            )
            .order_by(chain.c.back, pages.c.created_at.desc(), pages.c.exchange_no.desc())
            .limit(n)
        )
        return list(reversed(await self._pages(owner.business_id, query)))

    async def load_page(self, page_id: int) -> StoredPage | None:
        """One page by its id, for the job that works on it; None if it was deleted."""
        query = select(
            *PAGE_COLUMNS, pages.c.business_id, pages.c.caller, pages.c.flow_node, pages.c.embedded_with
        ).where(pages.c.page_id == page_id)
        async with self.page_transaction(page_id) as connection:
            row = (await connection.execute(query)).first()
        if row is None:
            return None
        return StoredPage(page_of(row), Owner(row.business_id, row.caller), row.flow_node, row.embedded_with)

    async def save_summary(self, page_id: int, summary: str) -> None:
        """Replace the page's summary."""
        statement = update(pages).where(pages.c.page_id == page_id).values(summary=clean_text(summary))
        async with self.page_transaction(page_id) as connection:
            await connection.execute(statement)

    async def save_vectors(self, owner: Owner, page_id: int, model: str, vectors: PageVectors) -> None:
        """Replace the page's vectors of this model, and mark the page as embedded with it (also with none).

        They are stored with length one.

        Raises: `WrongDimension`; `ValueError` for a vector without a direction (zero, NaN, infinite) or for
        nobody.
        """
        check_owner(owner)
        if not owner.caller:
            raise ValueError("nobody owns no vectors")
        for _, _, vector in vectors.by_side():
            check_vector(vector, model)
        key = {"business_id": owner.business_id, "caller": owner.caller, "page_id": page_id, "model": model}
        rows = [
            {**key, "side": int(side), "chunk": chunk, "embedding": _unit(vector)}
            for side, chunk, vector in vectors.by_side()
        ]
        mine = (page_vectors.c[name] == value for name, value in key.items())
        async with self.transaction(owner.business_id) as connection:
            await connection.execute(delete(page_vectors).where(*mine))
            if rows:
                await connection.execute(insert(page_vectors), rows)
            marked = update(pages).where(
                pages.c.business_id == owner.business_id,
                pages.c.caller == owner.caller,
                pages.c.page_id == page_id,
            )
            await connection.execute(marked.values(embedded_with=model))

    async def enqueue_unembedded(self, model: str, older_than: timedelta, limit: int) -> int:
        """Queue again the pages that this model has not embedded: its process was down, or it is a new model.

        One business after the other. Returns how many.
        """
        waiting = 0
        for business_id in await self.businesses():
            if waiting < limit:
                waiting += await self._enqueue_unembedded(business_id, model, older_than, limit - waiting)
        return waiting

    async def _enqueue_unembedded(
        self, business_id: str, model: str, older_than: timedelta, limit: int
    ) -> int:
        query = (
            select(pages.c.page_id)
            .where(
                *_unembedded(business_id, model),
                pages.c.created_at < func.now() - older_than,
            )
            .order_by(pages.c.page_id.desc())
            .limit(limit)
        )
        async with self.transaction(business_id) as connection:
            waiting = [row.page_id for row in await connection.execute(query)]
            for page_id in waiting:
                await enqueue_page(connection, page_id)
        return len(waiting)

    async def count_unembedded(self, business_id: str, model: str) -> int:
        """How many of a business's pages this model has not embedded."""
        check_business(business_id)
        query = select(func.count()).select_from(pages).where(*_unembedded(business_id, model))
        async with self.transaction(business_id) as connection:
            return int((await connection.execute(query)).scalar_one())

    async def unembedded(self, business_id: str, model: str, below: int | None, limit: int) -> list[int]:
        """Ids of such pages, newest first; only those below an id, if given."""
        check_business(business_id)
        query = select(pages.c.page_id).where(*_unembedded(business_id, model))
        query = query if below is None else query.where(pages.c.page_id < below)
        async with self.transaction(business_id) as connection:
            found = await connection.execute(query.order_by(pages.c.page_id.desc()).limit(limit))
            return list(found.scalars())

    async def audio_of_calls(self, business_id: str, call_ids: Sequence[str]) -> set[str]:
        """The audio files that pages of these calls name."""
        check_business(business_id)
        query = select(pages.c.user_audio_path, pages.c.reply_audio_path).where(
            pages.c.business_id == business_id, pages.c.call_id.in_(call_ids)
        )
        async with self.transaction(business_id) as connection:
            return {path for row in await connection.execute(query) for path in row if path}

    async def _pages(self, business_id: str, query: Select[Any]) -> list[Page]:
        async with self.transaction(business_id) as connection:
            return await fetch_pages(connection, query)


async def fetch_pages(connection: AsyncConnection, query: Select[Any]) -> list[Page]:
    """The pages of a query that selects `PAGE_COLUMNS`, and nothing else."""
    return [Page(*row) for row in await connection.execute(query)]


def went_on_with() -> ColumnElement[str]:
    """The call that a call took up; NULL where it was only offered, or declined."""
    resumed = calls.c.snapshot["state"]["resumed"].as_boolean()
    return case((resumed.is_(True), calls.c.resumed_from)).label("resumed_from")


def _unembedded(business_id: str, model: str) -> tuple[ColumnElement[bool], ...]:
    return (
        pages.c.business_id == business_id,
        pages.c.caller.is_not(None),
        pages.c.embedded_with.is_distinct_from(model),
    )


def page_of(row: Any) -> Page:
    """The page in a row that has `PAGE_COLUMNS` among its columns."""
    return Page(**{name: row._mapping[name] for name in Page.__dataclass_fields__})


def check_vector(vector: Sequence[float], model: str) -> None:
    """Raises: `WrongDimension`; `ValueError` if the vector has no direction."""
    if len(vector) != VECTOR_DIMENSION:
        raise WrongDimension(model, len(vector), VECTOR_DIMENSION)
    length = math.hypot(*vector)
    if not (math.isfinite(length) and length > 0.0):
        raise ValueError("a vector without a direction cannot be ranked")


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.hypot(*vector)
    return [value / length for value in vector]


def _page_values(owner: Owner, exchange: Exchange, audio: AudioPaths) -> dict[str, Any]:
    return {
        "business_id": owner.business_id,
        "caller": owner.caller or None,
        "call_id": exchange.call_id,
        "exchange_no": exchange.exchange_no,
        "user_text": clean_text(exchange.user_text),
        "reply_text": clean_text(exchange.reply_text),
        "user_audio_path": audio.user,
        "reply_audio_path": audio.reply,
        "user_audio_ms": len(exchange.user_ulaw) // ULAW_BYTES_PER_MS,
        "reply_audio_ms": len(exchange.reply_ulaw) // ULAW_BYTES_PER_MS,
        "interrupted": exchange.interrupted,
        "user_item_id": exchange.user_item_id,
        "flow_node": exchange.flow_node,
        "usage": clean_json(exchange.usage),
        "states": clean_json(exchange.states),
        "text_config": func.memory_config(configuration_of(exchange.language)),
        "trust": int(exchange.trust),
        **_written_at(exchange),
    }


def _written_at(exchange: Exchange) -> dict[str, Any]:
    """A late page's place is where it was spoken; never after now, however wrong the worker's clock was."""
    if exchange.spoken_at is None:
        return {}
    return {"created_at": func.least(exchange.spoken_at, func.now())}
