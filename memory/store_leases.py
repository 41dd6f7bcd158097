"""Which calls are alive: leases renewed, calls of nobody found, taken, dropped, and brought back to life."""

from collections.abc import Collection, Mapping
from datetime import timedelta

from sqlalchemy import ColumnElement, case, func, select, text, update

from memory.calls import CallStatus
from memory.database import Database, check_business
from memory.model import EndedBy
from memory.schema import calls
from memory.store_calls import call_row
from memory.store_orders import drop_return, note_return

PRESUMED = (EndedBy.WORKER, EndedBy.TWILIO)
"""Nobody hung up: the call was not heard of any more."""

WORKER_PREFIX = "callthread-worker-"
OTHER_WORKERS = text(
    """
    SELECT count(DISTINCT application_name) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE :like AND application_name <> :mine
    """
)


RENEW_LEASES = text("SELECT renew_leases(CAST(:sids AS text[]), CAST(:epochs AS integer[]))")
LAPSED_LEASES = text("SELECT sid, held FROM lapsed_leases(CAST(:older AS interval))")


class LeaseStore(Database):
    """Statements about leases: rows of `calls` that somebody renews."""

    async def stale_calls(self, business_id: str, caller: str, older_than: timedelta) -> list[str]:
        """This caller's calls under way that nobody has written to for so long (database's clock)."""
        check_business(business_id)
        stale = select(calls.c.call_sid).where(
            calls.c.business_id == business_id,
            calls.c.caller == caller,
            calls.c.status == CallStatus.ACTIVE,
            calls.c.last_activity_at < func.clock_timestamp() - older_than,
        )
        async with self.transaction(business_id) as connection:
            return list((await connection.execute(stale)).scalars())

    async def drop_stale(
        self, older_than: timedelta, *, business_id: str | None = None, only: Collection[str] | None = None
    ) -> list[str]:
        """Calls under way that nobody has written to for so long (on the database's clock) are dropped.

        Of one business, and `only` these, if given. They ended when they were last heard of. Returns their CallSids.
        """
        among = [business_id] if business_id is not None else await self.businesses()
        return [call_sid for one in among for call_sid in await self._drop_stale_of(one, older_than, only)]

    async def _drop_stale_of(
        self, business_id: str, older_than: timedelta, only: Collection[str] | None
    ) -> list[str]:
        stale = update(calls).where(
            calls.c.business_id == business_id,
            calls.c.status == CallStatus.ACTIVE,
            calls.c.last_activity_at < func.clock_timestamp() - older_than,
        )
        if only is not None:
            stale = stale.where(calls.c.call_sid.in_(only))
        by = case((calls.c.epoch > 0, EndedBy.WORKER.value))  # without a stream nobody knows
        ended = stale.values(status=CallStatus.DROPPED, ended_by=by, ended_at=calls.c.last_activity_at)
        async with self.transaction(business_id) as connection:
            rows = [call_row(row) for row in await connection.execute(ended.returning(*calls.c))]
            for row in rows:
                await note_return(connection, row)
            return [row.call_sid for row in rows]

    async def revive(self, call_sid: str) -> bool:
        """A call that was dropped by presumption lives, and goes on with a new epoch. False if it did not end so."""
        back = (
            update(calls)
            .where(
                calls.c.call_sid == call_sid,
                calls.c.status == CallStatus.DROPPED,
                calls.c.ended_by.in_(PRESUMED),
            )
            .values(
                status=CallStatus.ACTIVE,
                ended_by=None,
                ended_at=None,
                last_activity_at=func.clock_timestamp(),
                epoch=calls.c.epoch + 1,
            )
            .returning(calls.c.call_sid)
        )
        async with self.call_transaction(call_sid) as connection:
            if (await connection.execute(back)).first() is None:
                return False
            await drop_return(connection, call_sid)
            return True

    async def renew(self, call_sid: str) -> None:
        """Twilio asks for the call's next stream: for so long as a lease lasts it is not taken from anybody."""
        seen = update(calls).where(calls.c.call_sid == call_sid, calls.c.status == CallStatus.ACTIVE)
        async with self.call_transaction(call_sid) as connection:
            await connection.execute(seen.values(last_activity_at=func.clock_timestamp()))

    async def renew_all(self, held: Mapping[str, int]) -> list[str]:
        """Say that these calls are alive, with the epoch of each. Returns those that somebody else holds by now."""
        if not held:
            return []
        sids = sorted(held)  # in one order everywhere: two workers do not wait for each other
        values = {"sids": sids, "epochs": [held[sid] for sid in sids]}
        async with self.shared_transaction() as connection:
            return list((await connection.execute(RENEW_LEASES, values)).scalars())

    async def lapsed(self, older_than: timedelta) -> list[tuple[str, int]]:
        """Calls with a stream that nobody has renewed for so long (database's clock): CallSid and epoch of each."""
        async with self.shared_transaction() as connection:
            rows = await connection.execute(LAPSED_LEASES, {"older": older_than})
            return [(row.sid, row.held) for row in rows]

    async def take_lapsed(self, call_sid: str, epoch: int, older_than: timedelta) -> int | None:
        """Take a call from a worker that is gone: its writes are refused from now on. One taker wins.

        Returns the new epoch; `None` if the call was renewed, claimed or ended meanwhile.
        """
        taken = (
            update(calls)
            .where(calls.c.call_sid == call_sid, calls.c.epoch == epoch, *_lapsed(older_than))
            .values(epoch=calls.c.epoch + 1, last_activity_at=func.clock_timestamp())
            .returning(calls.c.epoch)
        )
        async with self.call_transaction(call_sid) as connection:
            new: int | None = (await connection.execute(taken)).scalar()
            return new

    async def other_workers(self) -> int:
        """How many workers beside this one are connected to the database now (by their names, `WORKER_PREFIX`)."""
        async with self.shared_transaction() as connection:
            found = await connection.execute(OTHER_WORKERS, {"like": f"{WORKER_PREFIX}%", "mine": self._name})
            return int(found.scalar_one())


def _lapsed(older_than: timedelta) -> tuple[ColumnElement[bool], ...]:
    return (
        calls.c.status == CallStatus.ACTIVE,
        calls.c.epoch > 0,
        calls.c.last_activity_at < func.clock_timestamp() - older_than,
    )
