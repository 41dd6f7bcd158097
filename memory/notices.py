"""Telling a business's systems what happened: put together here, sent by whoever knows how, until it is accepted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from memory.calls import CallRow, CallStatus
from memory.errors import MemoryFault
from memory.store import Store
from memory.store_notices import CALL_ENDED, Notice
from memory.summarise import extract_thread

TOLD_FOR = timedelta(hours=24)
"""What could not be told for so long never is."""
VOICEMAIL_LEFT = "voicemail"
"""The event of a message that a caller left."""
MESSAGE_TAKES = timedelta(minutes=15)
"""At most: ten minutes may be recorded."""


class NotSent(MemoryFault):
    """Nobody took the notice: the job tries it again later."""


@dataclass(frozen=True, slots=True)
class Message:
    """A notice ready to be sent. `message_id` is the same however often it is sent; `content` is JSON-compatible."""

    message_id: str
    business_id: str
    event: str
    content: dict[str, Any]


class Notifier(Protocol):
    """Sends messages to businesses' systems."""

    def businesses(self, event: str) -> Sequence[str]:
        """Who wants to be told of such events."""
        ...

    async def send(self, message: Message) -> None:
        """Raises: `NotSent`."""
        ...


async def send_notice(store: Store, notifier: Notifier, notice_id: int, now: datetime | None = None) -> None:
    """Tell it, unless it was told, or there is nothing to tell any more. Raises: `NotSent`, `StorageUnavailable`."""
    notice = await store.load_notice(notice_id)
    if notice is None or notice.is_sent or notice.business_id not in notifier.businesses(notice.event):
        return
    call = await store.get_call(notice.call_sid)
    if call is None or (notice.event == CALL_ENDED and goes_on(call, now or datetime.now(UTC))):
        return
    await notifier.send(await message_of(store, notice, call))
    await store.mark_sent(notice_id)


def goes_on(call: CallRow, now: datetime) -> bool:
    """Whether a call has not really ended: it came back from a transfer, and its end has a notice of its own; or a
    message is being left, and what comes of that is its end. Twilio may never tell us: nobody waits for ever.
    """
    if call.status is CallStatus.ACTIVE:
        return True
    return call.leaves_message and now - (call.ended_at or call.last_activity_at) < MESSAGE_TAKES


async def sweep_notices(store: Store, notifier: Notifier, now: datetime) -> int:
    """Queue what nobody told: calls whose worker died, and notices whose job was given up. Returns how many."""
    since, count = now - TOLD_FOR, 0
    for business_id in notifier.businesses(CALL_ENDED):
        await store.notice_ended_calls(business_id, since)
    told = {*notifier.businesses(CALL_ENDED), *notifier.businesses(VOICEMAIL_LEFT)}
    for business_id in sorted(told):
        count += await store.requeue_notices(business_id, since)
    return count


async def message_of(store: Store, notice: Notice, call: CallRow) -> Message:
    """Everything that the receiver learns. Secrets are in no snapshot, so they cannot be among the slots."""
    parts = (notice.business_id, notice.call_sid, notice.event, notice.subject)
    message_id = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]
    content = {
        "id": message_id,
        "event": notice.event,
        "business": notice.business_id,
        "at": notice.created_at.isoformat(timespec="seconds"),
        "call": await _call(store, call),
        **notice.body,
    }
    return Message(message_id, notice.business_id, notice.event, content)


async def _call(store: Store, call: CallRow) -> dict[str, Any]:
    turns = await store.turns_of(call.owner, call.call_sid)
    flow = (call.snapshot.state.get("flow") if call.snapshot is not None else None) or {}
    ended_at = call.ended_at or call.last_activity_at
    return {
        "id": call.call_sid,
        "caller": call.caller,
        "number": call.to_number,
        "started_at": call.started_at.isoformat(timespec="seconds"),
        "duration_s": max(0, round((ended_at - call.started_at).total_seconds())),
        "reason": (CallStatus.FINISHED if call.leaves_message else call.status).value,
        "ended_by": call.ended_by,
        "target": flow.get("target", ""),
        "turns": len(turns),
        "cost_usd": round(await store.spent_in_call(call.business_id, call.call_sid), 4),
        "summary": extract_thread([turn.page for turn in turns]),
        "slots": dict(flow.get("slots") or {}),
    }
