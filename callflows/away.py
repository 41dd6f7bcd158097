"""What a call does away from our stream: ringing somebody, leaving a message, waiting in a line. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

TRANSFERRED = "transferred"
VOICEMAIL = "voicemail"
QUEUED = "queued"
TAKING = "taking"
AWAY = frozenset({TRANSFERRED, VOICEMAIL, QUEUED, TAKING})
"""How `FlowState.ended` names a call that is away and may come back."""
MAX_TRIPS = 1_000


class Came(StrEnum):
    """What came of it."""

    REACHED = "reached"
    """They talked, and have hung up."""
    BUSY = "busy"
    NO_ANSWER = "no_answer"
    FAILED = "failed"
    CANCELED = "canceled"
    DECLINED = "declined"
    """Somebody answered and did not take the call."""
    HUNG_UP = "hung_up"
    """The caller is gone."""
    RECORDED = "recorded"
    EMPTY = "empty"
    """Nothing was said after the tone."""
    LEFT = "left"
    """The caller left the line by a key."""
    FULL = "full"
    TIMEOUT = "timeout"
    """They have waited in the line for as long as anybody may."""


@dataclass(frozen=True, slots=True)
class Trip:
    """The present, or last, time that a call was away. `no` counts them: a callback that comes twice is known by it."""

    no: int = 0
    ringing: tuple[str, ...] = ()
    """Names of the targets that are being rung."""
    after: tuple[str, ...] = ()
    """Who is rung then, one after the other."""
    say: str = ""
    """What the caller is told before, by the telephone network's own voice; empty where our stream has said it."""
    came: str = ""
    """Why the caller is about to leave a line: a `Came`; empty while they are to wait on."""

    def to_json(self) -> dict[str, Any]:
        """As a JSON-compatible dict."""
        stored = {"no": self.no, "ringing": list(self.ringing), "after": list(self.after), "say": self.say}
        return stored | ({"came": self.came} if self.came else {})


def trip_of(data: object, targets: Mapping[str, object]) -> Trip:
    """What `to_json` gave, without targets that are gone. Never raises."""
    stored: Mapping[str, Any] = data if isinstance(data, dict) else {}
    no, say, came = stored.get("no"), stored.get("say"), stored.get("came")
    return Trip(
        no if isinstance(no, int) and 0 <= no <= MAX_TRIPS else 0,
        _known(stored.get("ringing"), targets),
        _known(stored.get("after"), targets),
        say if isinstance(say, str) else "",
        came if isinstance(came, str) and came in set(Came) else "",
    )


def _known(names: object, targets: Mapping[str, object]) -> tuple[str, ...]:
    listed = names if isinstance(names, list) else []
    return tuple(name for name in listed if isinstance(name, str) and name in targets)


@dataclass(frozen=True, slots=True)
class Errand:
    """A node's wish: the call leaves our stream. `ended` is one of `AWAY`."""

    ended: str
    ringing: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    say: str = ""
    """Said before; for a target left empty, its own text."""


@dataclass(frozen=True, slots=True)
class Dial:
    """Ring these numbers (E.164, from the flow file) at the same time. `whispers`: who answers is asked first."""

    numbers: tuple[str, ...]
    timeout_s: int = 20
    whispers: bool = False


@dataclass(frozen=True, slots=True)
class Whisper:
    """What somebody who was called hears alone, before being connected by pressing `accept`."""

    text: str
    accept: str
    language: str


@dataclass(frozen=True, slots=True)
class Record:
    """Record a message of the caller's, after a tone."""

    max_s: int
    silence_s: int
    finish: str
    """The key that ends it; empty: none does."""
    transcribe: bool
    """What was said is to be written down."""


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait in a line, by the name that the telephone network knows it by. `leave`: the exit key, or empty."""

    line: str
    leave: str


@dataclass(frozen=True, slots=True)
class Take:
    """Talk to the first who waits in a line, or wait so long for one to come."""

    line: str
    wait_s: int


Away = Dial | Record | Wait | Take
