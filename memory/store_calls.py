"""Calls in the database: opened, claimed by streams, journalled, ended once, resumed."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, Select, and_, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from memory.calls import CallRow, CallStatus
from memory.database import Database, check_business, clean_json
from memory.errors import CallOver, StaleEpoch, UnknownCall
from memory.model import CallSnapshot, EndedBy, Trust
from memory.schema import calls, flow_documents, pages, spent_tokens
from memory.store_orders import note_orders, note_return

SETTLED = (CallStatus.FINISHED, CallStatus.TRANSFERRED)
"""Ways to end that leave nothing to resume."""


FLOWS_KEPT = timedelta(days=31)
"""A day longer than any call may be resumed after its end."""


class CallStore(Database):
    """Every statement about calls, tokens and flow documents."""

    async def open_call(
        self,
        call_sid: str,
        business_id: str,
        caller: str | None,
        to_number: str,
        flow_hash: str,
        trust: Trust = Trust.NUMBER,
        account_sid: str = "",
    ) -> CallRow:
        """The call's row, made if this is its first webhook; a repeated webhook changes nothing.

        `caller` is E.164, an address, or `None` (empty counts as `None`): nobody. Raises: `ValueError` for an empty
        business.
        """
        check_business(business_id)
        row = insert(calls).values(
            call_sid=call_sid,
            business_id=business_id,
            caller=caller or None,
            to_number=to_number,
            flow_hash=flow_hash,
            trust=int(trust if caller else Trust.NONE),
            account_sid=account_sid,
        )
        async with self.transaction(business_id) as connection:
            await connection.execute(row.on_conflict_do_nothing(index_elements=["call_sid"]))
            return await _fetch(connection, call_sid)

    async def get_call(self, call_sid: str) -> CallRow | None:
        """The call's row, if it was ever opened."""
        async with self.call_transaction(call_sid) as connection:
            return await _one(connection, select(calls).where(calls.c.call_sid == call_sid))

    async def spend_token(self, nonce: str, call_sid: str, expires_at: datetime) -> bool:
        """Use a token up. False if it was used before. Kept until it would have expired anyway."""
        row = insert(spent_tokens).values(nonce=nonce, call_sid=call_sid, expires_at=expires_at)
        async with self.shared_transaction() as connection:
            spent = await connection.execute(row.on_conflict_do_nothing().returning(spent_tokens.c.nonce))
            return spent.first() is not None

    async def forget_spent_tokens(self, now: datetime) -> int:
        """Delete the tokens that have expired. Returns how many."""
        async with self.shared_transaction() as connection:
            gone = await connection.execute(delete(spent_tokens).where(spent_tokens.c.expires_at < now))
            return gone.rowcount

    async def claim_stream(self, call_sid: str, stream_sid: str) -> int:
        """Make this stream the call's owner; whoever owned it before is refused from now on.

        Returns the new epoch. Raises: `UnknownCall`, `CallOver`.
        """
        claim = (
            update(calls)
            .where(calls.c.call_sid == call_sid, calls.c.status == CallStatus.ACTIVE)
            .values(epoch=calls.c.epoch + 1, stream_sid=stream_sid, last_activity_at=func.clock_timestamp())
            .returning(calls.c.epoch)
        )
        async with self.call_transaction(call_sid) as connection:
            epoch: int | None = (await connection.execute(claim)).scalar()
            if epoch is None:
                row = await _fetch(connection, call_sid)
                raise CallOver(f"call {call_sid} is {row.status}")
            return epoch

    async def save_snapshot(self, call_sid: str, epoch: int, snapshot: CallSnapshot) -> bool:
        """Replace the journalled state. False if the call has ended meanwhile (it is kept all the same).

        Raises: `StaleEpoch`, `UnknownCall`.
        """
        return await self._write(call_sid, epoch, {"snapshot": snapshot_json(snapshot)}, snapshot)

    async def touch(self, call_sid: str, epoch: int) -> bool:
        """Say that the call is alive. False if it has ended. Raises: `StaleEpoch`, `UnknownCall`."""
        return await self._write(call_sid, epoch, {})

    async def end_call(
        self, call_sid: str, status: CallStatus, epoch: int | None = None, *, by: EndedBy | None = None
    ) -> bool:
        """Write how the call ended, and `by` whom: the first end counts, a later one changes nothing: False.

        Raises: `UnknownCall`; `StaleEpoch` if a newer stream than `epoch` holds the call, which then lives
        on.
        """
        if status is CallStatus.ACTIVE:
            raise ValueError("a call does not end as active")
        async with self.call_transaction(call_sid) as connection:
            row = await _fetch(connection, call_sid, lock=True)
            if row.status is not CallStatus.ACTIVE:
                return False
            _check_epoch(row, epoch)
            now = func.clock_timestamp()
            await connection.execute(
                update(calls)
                .where(calls.c.call_sid == call_sid)
                .values(status=status, ended_by=by, ended_at=now, last_activity_at=now)
            )
            await note_return(connection, replace(row, status=status, ended_by=by))
            return True

    async def find_dropped(
        self, business_id: str, caller: str | None, within: timedelta, now: datetime
    ) -> CallRow | None:
        """The call that this caller should be taken back to: the latest dropped one, no older than `within`.

        None if the caller is nobody, or if the call was gone on with or followed by a settled one. Calls
        under way do not count (the asking call is one), failed ones neither.
        """
        check_business(business_id)
        if not caller:
            return None
        later = calls.alias()
        overtaken = (
            select(later.c.call_sid)
            .where(
                later.c.business_id == business_id,
                later.c.caller == caller,
                later.c.call_sid != calls.c.call_sid,
                (later.c.status.in_(SETTLED) & (later.c.started_at >= calls.c.started_at))
                | ((later.c.resumed_from == calls.c.call_sid) & (later.c.status != CallStatus.FAILED)),
            )
            .exists()
        )
        latest = (
            select(calls)
            .where(
                calls.c.business_id == business_id,
                calls.c.caller == caller,
                calls.c.status == CallStatus.DROPPED,
                # A call that rang and got no stream, or broke before a word, has no thread to go on with.
                or_(
                    calls.c.resumed_from.is_not(None),
                    select(pages.c.page_id).where(pages.c.call_id == calls.c.call_sid).exists(),
                ),
            )
            .where(calls.c.last_activity_at >= now - within, ~overtaken)
            .order_by(calls.c.last_activity_at.desc())
            .limit(1)
        )
        async with self.transaction(business_id) as connection:
            return await _one(connection, latest)

    async def mark_resumed(self, call_sid: str, from_call_sid: str) -> bool:
        """Note that this call goes on with an earlier one of the same caller of the same business.

        False (and nothing noted) for anybody else's call, and for calls of nobody.
        """
        earlier = calls.alias()
        mine = and_(
            earlier.c.call_sid == from_call_sid,
            earlier.c.call_sid != calls.c.call_sid,
            earlier.c.business_id == calls.c.business_id,
            earlier.c.caller == calls.c.caller,
        )
        mark = update(calls).where(
            calls.c.call_sid == call_sid, select(earlier.c.call_sid).where(mine).exists()
        )
        async with self.call_transaction(call_sid) as connection:
            marked = await connection.execute(
                mark.values(resumed_from=from_call_sid).returning(calls.c.call_sid)
            )
            return marked.first() is not None

    async def list_calls(
        self, business_id: str, *, caller: str | None = None, limit: int = 50, before: datetime | None = None
    ) -> list[CallRow]:
        """A business's calls, newest first; of one caller, and started before a time, if given."""
        check_business(business_id)
        query = select(calls).where(calls.c.business_id == business_id)
        if caller is not None:
            query = query.where(calls.c.caller == caller)
        if before is not None:
            query = query.where(calls.c.started_at < before)
        return await self._rows(business_id, query.order_by(calls.c.started_at.desc()).limit(limit))

    async def active_calls(self) -> list[CallRow]:
        """Every call under way, one business after the other: for the operator and for takeover, not for callers."""
        active = select(calls).where(calls.c.status == CallStatus.ACTIVE).order_by(calls.c.started_at)
        return [
            row
            for business_id in await self.businesses()
            for row in await self._rows(business_id, active.where(calls.c.business_id == business_id))
        ]

    async def save_flow(self, flow_hash: str, yaml: str) -> None:
        """Keep a flow document under its hash: a call is restored on the version it began with.

        One that is in use is to be saved again once a day: see `forget_flows`.
        """
        row = insert(flow_documents).values(flow_hash=flow_hash, yaml=yaml, used_at=func.clock_timestamp())
        in_use = {"used_at": row.excluded.used_at}
        async with self.shared_transaction() as connection:
            await connection.execute(row.on_conflict_do_update(index_elements=["flow_hash"], set_=in_use))

    async def forget_flows(self, now: datetime) -> int:
        """Delete documents unused for `FLOWS_KEPT` that no call needs which lives or may resume. Returns how many."""
        since = now - FLOWS_KEPT
        needing = select(calls.c.flow_hash).where(
            or_(calls.c.status == CallStatus.ACTIVE, calls.c.last_activity_at > since)
        )
        needed: set[str] = set()
        for business_id in await self.businesses():
            async with self.transaction(business_id) as connection:
                ours = needing.where(calls.c.business_id == business_id).distinct()
                needed.update((await connection.execute(ours)).scalars())
        unused = delete(flow_documents).where(
            flow_documents.c.used_at < since, flow_documents.c.flow_hash.not_in(needed)
        )
        async with self.shared_transaction() as connection:
            return (await connection.execute(unused)).rowcount

    async def get_flow(self, flow_hash: str) -> str | None:
        """The YAML kept under this hash."""
        query = select(flow_documents.c.yaml).where(flow_documents.c.flow_hash == flow_hash)
        async with self.shared_transaction() as connection:
            found: str | None = (await connection.execute(query)).scalar()
            return found

    async def _write(
        self, call_sid: str, epoch: int, values: dict[str, Any], snapshot: CallSnapshot | None = None
    ) -> bool:
        """Update the call for the stream that owns it. True while the call is active."""
        statement = (
            update(calls)
            .where(calls.c.call_sid == call_sid, calls.c.epoch == epoch)
            .values(
                # A late write must not make an ended call look younger: how long ago it dropped is counted.
                last_activity_at=func.coalesce(calls.c.ended_at, func.clock_timestamp()),
                **values,
            )
            .returning(calls.c.status)
        )
        async with self.call_transaction(call_sid) as connection:
            status = (await connection.execute(statement)).scalar()
            if status is None:
                _check_epoch(await _fetch(connection, call_sid), epoch)
            if snapshot is not None:
                await note_orders(connection, call_sid, snapshot)
            return bool(status == CallStatus.ACTIVE)

    async def _rows(self, business_id: str, query: Select[Any]) -> list[CallRow]:
        async with self.transaction(business_id) as connection:
            return [call_row(row) for row in await connection.execute(query)]


async def lock_call(connection: AsyncConnection, call_sid: str, epoch: int | None) -> CallRow:
    """The call's row, locked until the transaction ends. Raises: `UnknownCall`, `StaleEpoch`."""
    row = await _fetch(connection, call_sid, lock=True)
    _check_epoch(row, epoch)
    return row


def snapshot_json(snapshot: CallSnapshot) -> dict[str, Any]:
    """As the column keeps it."""
    return {"version": snapshot.version, "state": clean_json(snapshot.state)}


def _check_epoch(row: CallRow, epoch: int | None) -> None:
    if epoch is not None and epoch != row.epoch:
        raise StaleEpoch(row.call_sid, epoch, row.epoch)


async def _fetch(connection: AsyncConnection, call_sid: str, *, lock: bool = False) -> CallRow:
    query = select(calls).where(calls.c.call_sid == call_sid)
    row = await _one(connection, query.with_for_update(key_share=True) if lock else query)
    if row is None:
        raise UnknownCall(call_sid)
    return row


async def _one(connection: AsyncConnection, query: Select[Any]) -> CallRow | None:
    row = (await connection.execute(query)).first()
    return None if row is None else call_row(row)


def call_row(row: Row[Any]) -> CallRow:
    values = dict(row._mapping)
    snapshot = values.pop("snapshot")
    status = CallStatus(values.pop("status"))
    trust = Trust(values.pop("trust"))
    by = values.pop("ended_by")
    kept = None if snapshot is None else CallSnapshot(snapshot["version"], snapshot["state"])
    return CallRow(
        status=status, snapshot=kept, trust=trust, ended_by=None if by is None else EndedBy(by), **values
    )
