"""A call as the store keeps it. Pure."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.model import CallSnapshot, Owner, Trust


class CallStatus(StrEnum):
    """`DROPPED`: the call ended, its flow had not. `FAILED`: our side broke, there is nothing to resume."""

    ACTIVE = "active"
    FINISHED = "finished"
    TRANSFERRED = "transferred"
    DROPPED = "dropped"
    FAILED = "failed"


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

    @property
    def owner(self) -> Owner:
        """Whose memory this call reads and writes."""
        return Owner(self.business_id, self.caller)
