"""Messages that callers left: noted once however often they are told of, erased with their call."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, literal, select, update
from sqlalchemy.dialects.postgresql import insert

from memory.database import Database, check_business, clean_text
from memory.jobqueue import enqueue_voicemail
from memory.schema import calls, voicemails


@dataclass(frozen=True, slots=True)
class Voicemail:
    """One message. `audio_path` is empty until its recording has been fetched; `caller` is None for nobody."""

    business_id: str
    recording_sid: str
    call_sid: str
    caller: str | None
    duration_s: int
    wants_text: bool
    transcript: str
    audio_path: str
    created_at: datetime
    told_at: datetime | None
    account_sid: str = ""
    """The Twilio account that its call came by; empty for the main one."""


_COLUMNS = (
    voicemails.c.business_id,
    voicemails.c.recording_sid,
    voicemails.c.call_sid,
    calls.c.caller,
    voicemails.c.duration_s,
    voicemails.c.wants_text,
    voicemails.c.transcript,
    voicemails.c.audio_path,
    voicemails.c.created_at,
    voicemails.c.told_at,
    calls.c.account_sid,
)
_WITH_CALLER = voicemails.join(
    calls,
    (calls.c.business_id == voicemails.c.business_id) & (calls.c.call_sid == voicemails.c.call_sid),
)


class VoicemailStore(Database):
    """Statements about messages. A message belongs to its call: without the call there is none."""

    async def note_voicemail(
        self,
        call_sid: str,
        recording_sid: str,
        *,
        duration_s: int = 0,
        transcript: str = "",
        wants_text: bool = False,
    ) -> bool:
        """Keep what is told of a message, in any order and as often as it comes, and queue the work on it.

        False if no such call is known (any more).
        """
        row = select(
            calls.c.business_id,
            literal(recording_sid),
            calls.c.call_sid,
            literal(duration_s),
            literal(wants_text),
            literal(clean_text(transcript)),
        ).where(calls.c.call_sid == call_sid)
        names = ["business_id", "recording_sid", "call_sid", "duration_s", "wants_text", "transcript"]
        fresh = insert(voicemails).from_select(names, row)
        told = fresh.on_conflict_do_update(
            index_elements=["business_id", "recording_sid"],
            set_={
                "duration_s": func.greatest(voicemails.c.duration_s, fresh.excluded.duration_s),
                "wants_text": voicemails.c.wants_text | fresh.excluded.wants_text,
                "transcript": func.coalesce(
                    func.nullif(fresh.excluded.transcript, ""), voicemails.c.transcript
                ),
            },
        ).returning(voicemails.c.told_at)
        async with self.call_transaction(call_sid) as connection:
            found = (await connection.execute(told)).first()
            if found is not None and found.told_at is None:
                await enqueue_voicemail(connection, call_sid, recording_sid)
            return found is not None

    async def voicemail(self, call_sid: str, recording_sid: str) -> Voicemail | None:
        """A message, unless it was erased."""
        query = select(*_COLUMNS).select_from(_WITH_CALLER)
        query = query.where(voicemails.c.recording_sid == recording_sid, calls.c.call_sid == call_sid)
        async with self.call_transaction(call_sid) as connection:
            row = (await connection.execute(query)).first()
            return None if row is None else _voicemail(row)

    async def save_voicemail_audio(self, message: Voicemail, path: str) -> bool:
        """Its recording lies there now. False if the message was erased meanwhile."""
        return await self._change(message, audio_path=path)

    async def save_voicemail_text(self, message: Voicemail, text: str) -> bool:
        """What was said in it. False if the message was erased meanwhile."""
        return await self._change(message, transcript=clean_text(text))

    async def requeue_voicemails(self, since: datetime) -> int:
        """Queue the work again on what is not told and has no job that waits. Returns how many are not told."""
        waiting = select(voicemails.c.call_sid, voicemails.c.recording_sid).where(
            voicemails.c.told_at.is_(None), voicemails.c.created_at >= since
        )
        count = 0
        for business_id in await self.businesses():
            async with self.transaction(business_id) as connection:
                query = waiting.where(voicemails.c.business_id == business_id)
                for row in (await connection.execute(query)).all():
                    await enqueue_voicemail(connection, row.call_sid, row.recording_sid)
                    count += 1
        return count

    async def voicemail_told(self, message: Voicemail) -> bool:
        """The business has been told of it. False if the message was erased meanwhile."""
        return await self._change(message, told_at=func.clock_timestamp())

    async def list_voicemails(self, business_id: str, limit: int = 50) -> list[Voicemail]:
        """A business's messages, newest first."""
        check_business(business_id)
        query = select(*_COLUMNS).select_from(_WITH_CALLER).where(voicemails.c.business_id == business_id)
        async with self.transaction(business_id) as connection:
            rows = await connection.execute(query.order_by(voicemails.c.created_at.desc()).limit(limit))
            return [_voicemail(row) for row in rows]

    async def _change(self, message: Voicemail, **values: Any) -> bool:
        this = update(voicemails).where(
            voicemails.c.business_id == message.business_id,
            voicemails.c.recording_sid == message.recording_sid,
        )
        async with self.transaction(message.business_id) as connection:
            changed = await connection.execute(this.values(**values).returning(voicemails.c.recording_sid))
            return changed.first() is not None


def _voicemail(row: Any) -> Voicemail:
    return Voicemail(**row._mapping)
