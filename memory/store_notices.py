"""Notices for a business's systems, and hours that somebody has set by hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Text, cast, delete, exists, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from memory.calls import CallStatus
from memory.database import Database, check_business, clean_json
from memory.jobqueue import enqueue_notice
from memory.schema import calls, hours_overrides, notices

CALL_ENDED = "call_ended"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a business's systems are to be told, once. `body`: what its event alone has."""

    notice_id: int
    business_id: str
    call_sid: str
    event: str
    subject: str
    body: dict[str, Any]
    created_at: datetime
    is_sent: bool


@dataclass(frozen=True, slots=True)
class HoursOverride:
    """A schedule is open, or closed, until a time, whatever the file says."""

    schedule: str
    is_open: bool
    until: datetime


class NoticeStore(Database):
    """Statements about notices and overrides."""

    async def add_notice(
        self,
        business_id: str,
        call_sid: str,
        event: str,
        subject: str = "",
        body: Mapping[str, Any] | None = None,
    ) -> bool:
        """Have it told by a job. False if the same was told, or is about to be: then nothing happens."""
        check_business(business_id)
        values = {"business_id": business_id, "call_sid": call_sid, "event": event, "subject": subject}
        row = insert(notices).values(**values, body=clean_json(dict(body or {})))
        async with self.transaction(business_id) as connection:
            added = await connection.execute(row.on_conflict_do_nothing().returning(notices.c.notice_id))
            notice_id: int | None = added.scalar()
            if notice_id is not None:
                await enqueue_notice(connection, notice_id)
            return notice_id is not None

    async def notice_ended_calls(self, business_id: str, since: datetime) -> int:
        """Notices for calls that ended since then and have none: whoever carried them could not. Returns how many."""
        check_business(business_id)
        epoch = cast(calls.c.epoch, Text)
        told = exists().where(
            notices.c.business_id == calls.c.business_id,
            notices.c.call_sid == calls.c.call_sid,
            notices.c.event == CALL_ENDED,
            notices.c.subject == epoch,
        )
        ended = select(calls.c.business_id, calls.c.call_sid, literal(CALL_ENDED), epoch).where(
            calls.c.business_id == business_id,
            calls.c.status != CallStatus.ACTIVE,
            calls.c.ended_at >= since,
            ~told,
        )
        add = insert(notices).from_select(["business_id", "call_sid", "event", "subject"], ended)
        async with self.transaction(business_id) as connection:
            return (await connection.execute(add.on_conflict_do_nothing())).rowcount

    async def requeue_notices(self, business_id: str, since: datetime) -> int:
        """Queue again what is not sent and has no job that waits. Returns how many are not sent."""
        check_business(business_id)
        waiting = select(notices.c.notice_id).where(
            notices.c.business_id == business_id, notices.c.sent_at.is_(None), notices.c.created_at >= since
        )
        async with self.transaction(business_id) as connection:
            found = list((await connection.execute(waiting)).scalars())
            for notice_id in found:
                await enqueue_notice(connection, notice_id)
            return len(found)

    async def load_notice(self, notice_id: int) -> Notice | None:
        """None if it, or its call, was erased meanwhile."""
        query = select(notices).where(notices.c.notice_id == notice_id)
        async with self.notice_transaction(notice_id) as connection:
            row = (await connection.execute(query)).first()
        if row is None:
            return None
        return Notice(
            row.notice_id,
            row.business_id,
            row.call_sid,
            row.event,
            row.subject,
            row.body,
            row.created_at,
            row.sent_at is not None,
        )

    async def mark_sent(self, notice_id: int) -> None:
        """It was told."""
        sent = update(notices).where(notices.c.notice_id == notice_id).values(sent_at=func.clock_timestamp())
        async with self.notice_transaction(notice_id) as connection:
            await connection.execute(sent)

    async def set_override(self, business_id: str, override: HoursOverride) -> None:
        """It holds from now on; the last one set for a schedule counts."""
        check_business(business_id)
        values = {"is_open": override.is_open, "until": override.until, "set_at": func.now()}
        row = insert(hours_overrides).values(business_id=business_id, schedule=override.schedule, **values)
        async with self.transaction(business_id) as connection:
            await connection.execute(
                row.on_conflict_do_update(index_elements=["business_id", "schedule"], set_=values)
            )

    async def clear_override(self, business_id: str, schedule: str) -> bool:
        """The file's hours hold again. False if they did."""
        check_business(business_id)
        gone = delete(hours_overrides).where(
            hours_overrides.c.business_id == business_id, hours_overrides.c.schedule == schedule
        )
        async with self.transaction(business_id) as connection:
            return (await connection.execute(gone)).rowcount > 0

    async def overrides(self, business_id: str, now: datetime) -> list[HoursOverride]:
        """Those that hold now."""
        check_business(business_id)
        query = (
            select(hours_overrides.c.schedule, hours_overrides.c.is_open, hours_overrides.c.until)
            .where(hours_overrides.c.business_id == business_id, hours_overrides.c.until > now)
            .order_by(hours_overrides.c.schedule)
        )
        async with self.transaction(business_id) as connection:
            return [HoursOverride(*row) for row in await connection.execute(query)]
