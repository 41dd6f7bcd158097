"""What was paid for, by the estimates of the price table: of a call, a caller, a business, a month."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Text, cast, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from memory.database import Database, check_business, clean_text
from memory.model import Charge
from memory.schema import calls, charges, pages

# The oldest transaction that is still under way as a statement begins: of those before it nothing more will appear.
SETTLED = cast(cast(func.pg_snapshot_xmin(func.pg_current_snapshot()), Text), BigInteger)


class CostKey(StrEnum):
    """What costs are added up by."""

    CALL = "call"
    CALLER = "caller"
    MONTH = "month"
    KIND = "kind"


@dataclass(frozen=True, slots=True)
class Costs:
    """Charges added up. `key`: the CallSid, the caller's number (empty when withheld, erased or not a call's), the
    month (2026-11) or a `ChargeKind`.

    `turns`: those that are kept. `estimated_usd`: how much of `usd` is by tokens that the provider did not tell.
    """

    key: str
    turns: int
    usd: float
    estimated_usd: float
    input_tokens: int
    cached_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Spent:
    """US dollars since some time. `settled_usd` of them were written by transactions before `horizon`; all those are
    over.
    """

    usd: float = 0.0
    settled_usd: float = 0.0
    horizon: int = 0


class CostStore(Database):
    """Statements about money."""

    async def add_charge(self, business_id: str, call_id: str, charge: Charge) -> None:
        """Write it down once. Of a call that is not known (any more) only the money stays."""
        check_business(business_id)
        theirs = (calls.c.business_id == business_id) & (calls.c.call_sid == call_id)
        one = select(literal(business_id).label("business_id")).subquery()
        values = {
            "charge_id": charge.charge_id,
            "kind": charge.kind.value,
            "model": clean_text(charge.model),
            "usd": charge.usd,
            "is_estimate": charge.is_estimate,
            "input_tokens": charge.input_tokens,
            "cached_tokens": charge.cached_tokens,
            "output_tokens": charge.output_tokens,
            "created_at": charge.at,
        }
        row = select(
            one.c.business_id,
            calls.c.call_sid,
            calls.c.caller,
            *(literal(value, charges.c[name].type) for name, value in values.items()),
        ).select_from(one.outerjoin(calls, theirs))
        statement = insert(charges).from_select(["business_id", "call_id", "caller", *values], row)
        async with self.transaction(business_id) as connection:
            await connection.execute(statement.on_conflict_do_nothing())

    async def spent_in_call(self, business_id: str, call_sid: str) -> float:
        """What the call has cost so far, in US dollars."""
        check_business(business_id)
        query = select(func.coalesce(func.sum(charges.c.usd), 0.0)).where(
            charges.c.business_id == business_id, charges.c.call_id == call_sid
        )
        async with self.transaction(business_id) as connection:
            return float((await connection.execute(query)).scalar_one())

    async def spent_since(self, business_id: str, since: datetime, known: Spent) -> Spent:
        """What the business has spent since a time; `known` was read before, and what is settled there is not read
        again. A charge that is committed late, by whatever transaction, is not missed.
        """
        check_business(business_id)
        usd = func.coalesce(func.sum(charges.c.usd), 0.0)
        before = func.coalesce(func.sum(charges.c.usd).filter(charges.c.written_by < SETTLED), 0.0)
        query = select(usd, before, SETTLED).where(
            charges.c.business_id == business_id,
            charges.c.written_by >= known.horizon,
            charges.c.created_at >= since,
        )
        async with self.transaction(business_id) as connection:
            spent, settled, horizon = (await connection.execute(query)).one()
        return Spent(known.settled_usd + spent, known.settled_usd + settled, horizon)

    async def costs_by(
        self, business_id: str, key: CostKey, zone: str, since: datetime | None, until: datetime | None
    ) -> list[Costs]:
        """What the business paid for in this time, added up, newest group first; months are those of `zone`."""
        check_business(business_id)

        def within(time: ColumnElement[Any]) -> list[ColumnElement[bool]]:
            return [
                *([time >= since] if since is not None else []),
                *([time < until] if until is not None else []),
            ]

        group = _charge_group(key, zone)
        query = (
            select(
                group.label("key"),
                func.sum(charges.c.usd).label("usd"),
                func.coalesce(func.sum(charges.c.usd).filter(charges.c.is_estimate), 0.0).label("estimated"),
                *(func.sum(charges.c[name]).label(name) for name in _TOKENS),
            )
            .where(charges.c.business_id == business_id, *within(charges.c.created_at))
            .group_by(group)
            .order_by(func.max(charges.c.created_at).desc())
        )
        of_pages = _page_group(key, zone)
        counts = (
            select(of_pages.label("key"), func.count().label("turns"))
            .where(pages.c.business_id == business_id, *within(pages.c.created_at))
            .group_by(of_pages)
        )
        async with self.transaction(business_id) as connection:
            rows = (await connection.execute(query)).all()
            turns = {row.key or "": row.turns for row in await connection.execute(counts)}
        return [
            Costs(
                row.key or "",
                turns.get(row.key or "", 0),
                row.usd,
                row.estimated,
                *(int(getattr(row, name)) for name in _TOKENS),
            )
            for row in rows
        ]


_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")


def _charge_group(key: CostKey, zone: str) -> ColumnElement[Any]:
    match key:
        case CostKey.CALL:
            return charges.c.call_id
        case CostKey.CALLER:
            return charges.c.caller
        case CostKey.MONTH:
            return func.to_char(func.timezone(zone, charges.c.created_at), "YYYY-MM")
        case CostKey.KIND:
            return charges.c.kind


def _page_group(key: CostKey, zone: str) -> ColumnElement[Any]:
    """Only an answer is a turn's; a transcription may be noise's."""
    match key:
        case CostKey.CALL:
            return pages.c.call_id
        case CostKey.CALLER:
            return pages.c.caller
        case CostKey.MONTH:
            return func.to_char(func.timezone(zone, pages.c.created_at), "YYYY-MM")
        case CostKey.KIND:
            return literal("speech")
