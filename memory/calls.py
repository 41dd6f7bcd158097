"""A call as the store keeps it. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.model import CallSnapshot, EndedBy, Owner, Trust


class CallStatus(StrEnum):
    """`DROPPED`: the call ended, its flow had not: it can be taken up. `FAILED`: our side broke, nothing can."""

    ACTIVE = "active"
    FINISHED = "finished"
    TRANSFERRED = "transferred"
    DROPPED = "dropped"
    FAILED = "failed"


LEAVES_MESSAGE = "voicemail"
"""How the flow's state names a call that has left our stream to leave a message."""
_ENDINGS = {
    (CallStatus.FINISHED, EndedBy.CALLER): "finished: hung up after the goodbye",
    (CallStatus.DROPPED, EndedBy.CALLER): "hung up before the goodbye",
    (CallStatus.DROPPED, EndedBy.US): "dropped: nobody was heard",
    (CallStatus.DROPPED, EndedBy.NETWORK): "dropped by the caller's network",
    (CallStatus.DROPPED, EndedBy.WORKER): "dropped by a worker of ours",
    (CallStatus.DROPPED, EndedBy.TWILIO): "dropped by Twilio",
    (CallStatus.FAILED, EndedBy.MODEL): "failed: no speech model",
    (CallStatus.FAILED, EndedBy.TWILIO): "failed: its streams came and went",
}


@dataclass(frozen=True, slots=True)
class CallRow:
    """One row of `calls`. `epoch` 0: no stream has claimed the call yet."""

    call_sid: str
    business_id: str
    caller: str | None
    to_number: str
    status: CallStatus
    started_at: datetime
    last_activity_at: datetime
    ended_at: datetime | None
    epoch: int
    stream_sid: str | None
    snapshot: CallSnapshot | None
    flow_hash: str
    resumed_from: str | None
    trust: Trust = Trust.NUMBER
    """What the first webhook said of who calls."""
    ended_by: EndedBy | None = None
    """`None`: it goes on, or nobody knows."""
    account_sid: str = ""
    """The Twilio account that it came by; empty for the main one."""

    @property
    def owner(self) -> Owner:
        """Whose memory this call reads and writes."""
        return Owner(self.business_id, self.caller)

    @property
    def ending(self) -> str:
        """How it stands, in words for people: who hung up, or what broke."""
        if self.leaves_message:
            return "left a message"
        if self.status is CallStatus.ACTIVE or self.ended_by is None:
            return self.status.value
        return _ENDINGS.get((self.status, self.ended_by), self.status.value)

    @property
    def leaves_message(self) -> bool:
        """The last that was heard of it is that the caller was to leave a message: nobody was connected."""
        flow = (self.snapshot.state.get("flow") if self.snapshot is not None else None) or {}
        return self.status is CallStatus.TRANSFERRED and flow.get("ended") == LEAVES_MESSAGE

    @property
    def brief_ending(self) -> str:
        """The same for a column of a table."""
        if self.leaves_message:
            return "message"
        by_us = self.ended_by in (None, EndedBy.US)
        return self.status.value if by_us else f"{self.status.value} by {self.ended_by}"
