"""What turns have cost, by the estimates kept with their pages: of a call, a caller, a business, a month."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Float, cast, func, select

from memory.database import Database, check_business
from memory.schema import pages

USD = cast(pages.c.usage["usd"].astext, Float)
INPUT = ("input_text_tokens", "input_audio_tokens")
CACHED = ("cached_text_tokens", "cached_audio_tokens")
OUTPUT = ("output_text_tokens", "output_audio_tokens")


class CostKey(StrEnum):
    """What costs are added up by."""

    CALL = "call"
    CALLER = "caller"
    MONTH = "month"


@dataclass(frozen=True, slots=True)
class Costs:
    """Turns added up. `key`: the CallSid, the caller's number (empty when withheld) or the month (2026-11)."""

    key: str
    turns: int
    usd: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Spent:
    """US dollars, up to this page."""

    usd: float = 0.0
    page_id: int = 0


class CostStore(Database):
    """Statements about money. Pages without an estimate (an exchange without a reply) cost nothing."""

    async def spent_in_call(self, business_id: str, call_sid: str) -> float:
        """What the call's turns have cost so far, in US dollars."""
        check_business(business_id)
        query = select(func.coalesce(func.sum(USD), 0.0)).where(
            pages.c.business_id == business_id, pages.c.call_id == call_sid
        )
        async with self.transaction(business_id) as connection:
            return float((await connection.execute(query)).scalar_one())

    async def spent_since(self, business_id: str, since: datetime, known: Spent) -> Spent:
        """What the business's turns have cost since a time; `known` was read before, and only later pages are now."""
        check_business(business_id)
        query = select(
            func.coalesce(func.sum(USD), 0.0), func.coalesce(func.max(pages.c.page_id), known.page_id)
        ).where(
            pages.c.business_id == business_id,
            pages.c.page_id > known.page_id,
            pages.c.created_at >= since,
        )
        async with self.transaction(business_id) as connection:
            usd, page_id = (await connection.execute(query)).one()
        return Spent(known.usd + usd, page_id)

    async def costs_by(
        self, business_id: str, key: CostKey, zone: str, since: datetime | None, until: datetime | None
    ) -> list[Costs]:
        """The business's turns in this time, added up, newest group first; months are those of `zone`."""
        check_business(business_id)
        group = _group(key, zone)
        query = (
            select(
                group.label("key"),
                func.count().label("turns"),
                func.coalesce(func.sum(USD), 0.0).label("usd"),
                *(_tokens(names).label(label) for label, names in _TOKENS.items()),
            )
            .where(pages.c.business_id == business_id)
            .group_by(group)
            .order_by(func.max(pages.c.page_id).desc())
        )
        query = query if since is None else query.where(pages.c.created_at >= since)
        query = query if until is None else query.where(pages.c.created_at < until)
        async with self.transaction(business_id) as connection:
            rows = (await connection.execute(query)).all()
        return [
            Costs(row.key or "", row.turns, row.usd, int(row.read), int(row.cached), int(row.written))
            for row in rows
        ]


_TOKENS = {"read": INPUT, "cached": CACHED, "written": OUTPUT}


def _group(key: CostKey, zone: str) -> ColumnElement[Any]:
    match key:
        case CostKey.CALL:
            return pages.c.call_id
        case CostKey.CALLER:
            return pages.c.caller
        case CostKey.MONTH:
            return func.to_char(func.timezone(zone, pages.c.created_at), "YYYY-MM")


def _tokens(names: Sequence[str]) -> ColumnElement[Any]:
    first, second = (func.coalesce(cast(pages.c.usage[name].astext, Float), 0.0) for name in names)
    return func.coalesce(func.sum(first + second), 0.0)
