"""What the web part needs of the rest. The composition root gives it; tests have their own."""

import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from ivr.observe import Metrics
from ivr.ports import CallerLink
from ivr.web.slots import CallSlots
from ivr.wire.signature import SignatureChecker
from ivr.wire.tokens import Grant, StreamTokens
from ivr.wire.twilio import StartInfo


@dataclass(frozen=True, slots=True)
class BusinessInfo:
    """What the web part says in a business's name, in Twilio's own voice."""

    id: str
    name: str
    language: str = "en-US"
    busy_say: str = "All our lines are busy at the moment. Please call again in a few minutes."
    busy_number: str | None = None
    """Where to connect whom we have no room for."""
    blocked: frozenset[str] = frozenset()
    """Numbers that are connected with nobody."""
    down_say: str = "We are sorry, we cannot take your call right now. Please call again later."
    down_number: str | None = None
    """Where to connect the caller when nothing of ours works."""
    not_reached_say: str = "I am sorry, nobody could take the call."


class FlowLookup(Protocol):
    """The businesses, in memory."""

    def business_for(self, to_number: str) -> BusinessInfo | None:
        """The business that owns the called number (`To`, E.164)."""
        ...


class OpenResult(StrEnum):
    """What a call is to the registry when its voice webhook comes."""

    NEW = "new"
    KNOWN = "known"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class GoOn:
    """The call goes on with a new stream; `say` comes before it."""

    say: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """The call is over; `say` comes before the hang-up. `language`: of `say`; the business's own when empty."""

    say: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class TransferTo:
    """The caller is to be connected to `number`, which comes from the flow's own targets only."""

    number: str
    say: str = ""
    timeout_s: int = 20
    others: tuple[str, ...] = ()
    """Numbers that are rung at the same time."""
    whispers: bool = False
    """Who answers is asked first, at our whisper URL."""
    leg: int = 0
    """Which dial of the call it is: comes back in its callback, so that one that comes twice is known."""
    language: str = ""
    """Of `say`; the business's own when empty."""


@dataclass(frozen=True, slots=True)
class ByKeys:
    """The call goes on without a speech model, by keys; `say` comes first, in its `language` as above."""

    say: str = ""
    language: str = ""


@dataclass(frozen=True, slots=True)
class AskKeys:
    """The caller is asked for keys. `most`: so many are enough; 0: a pause ends them."""

    say: str
    silence_s: int
    most: int = 0
    language: str = ""


@dataclass(frozen=True, slots=True)
class RecordMessage:
    """The caller is to leave a message after a tone. `leg`, `language`: as for a transfer."""

    say: str
    max_s: int
    silence_s: int
    finish: str
    transcribe: bool
    leg: int
    language: str


@dataclass(frozen=True, slots=True)
class PutInLine:
    """The caller is to wait in a line. `leg`, `language`: as for a transfer."""

    line: str
    say: str
    leg: int
    language: str


@dataclass(frozen=True, slots=True)
class TakeFromLine:
    """Who calls is to be connected to the first who waits in a line, or to wait so long for one."""

    line: str
    wait_s: int
    say: str
    leg: int
    language: str


Outcome = GoOn | Ended | TransferTo | RecordMessage | ByKeys | AskKeys | PutInLine | TakeFromLine


@dataclass(frozen=True, slots=True)
class PlaceInLine:
    """Where somebody who waits stands: `position` from 1 on, 0 where it was not told; the key they pressed, if any."""

    call_sid: str
    leg: int
    position: int
    waited_s: int
    key: str = ""


@dataclass(frozen=True, slots=True)
class WaitOn:
    """What they hear for `for_s` seconds. `leave`: the key by which they leave the line; empty for none."""

    text: str = ""
    language: str = ""
    has_music: bool = False
    leave: str = ""
    for_s: int = 20


@dataclass(frozen=True, slots=True)
class LeaveLine:
    """They are to leave the line; `reason` is for the log."""

    reason: str


@dataclass(frozen=True, slots=True)
class MusicPiece:
    """Some seconds of the music of a call's line; it begins again where it ends."""

    call_sid: str
    from_s: int
    for_s: int


@dataclass(frozen=True, slots=True)
class LineReport:
    """How somebody's time in a line ended: `QueueResult`, and whether the caller is gone."""

    call_sid: str
    leg: int
    result: str
    waited_s: int
    call_over: bool = False


@dataclass(frozen=True, slots=True)
class DialReport:
    """How a dial went: `DialCallStatus`, `DialBridged` (`true`, `false` or nothing), and whether the caller is gone."""

    call_sid: str
    leg: int
    status: str
    bridged: str = ""
    call_over: bool = False


@dataclass(frozen=True, slots=True)
class RecordingReport:
    """What is told of a recording: that it is there (with its length), or what was said in it."""

    call_sid: str
    recording_sid: str
    duration_s: int = 0
    transcript: str = ""
    wants_text: bool = False


@dataclass(frozen=True, slots=True)
class Whispered:
    """What who answers a transfer hears alone; by the key they take the call."""

    text: str
    accept: str
    language: str


OVER = frozenset({"completed", "busy", "failed", "no-answer", "canceled"})
"""What `CallStatus` is when a call is over."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """A status callback. Twilio sends them unordered, repeated, or not at all; empty where not given."""

    call_sid: str
    call_status: str
    stream_sid: str = ""
    stream_event: str = ""
    """`stream-started`, `stream-stopped` or `stream-error`."""
    stream_error: str = ""

    @property
    def call_over(self) -> bool:
        """Whether it says that the call is over."""
        return self.call_status in OVER


class CallRegistry(Protocol):
    """The calls, kept where every worker sees them. Each method may raise `StorageUnavailable`."""

    async def open_call(
        self,
        call_sid: str,
        business_id: str,
        caller: str | None,
        to_number: str,
        *,
        is_attested: bool = False,
        account_sid: str = "",
    ) -> OpenResult:
        """Create the call or find it: the webhook may come twice."""
        ...

    async def outcome(self, call_sid: str) -> Outcome:
        """What to answer after a stream. A call nobody knows goes on."""
        ...

    async def status(self, report: StatusReport) -> None:
        """Take note of a status callback. Nothing may be sent to Twilio for it while a stream runs (B063)."""
        ...

    async def give_up(self, call_sid: str) -> Outcome:
        """Its streams come and go: the call has failed. Returns what comes then."""
        ...

    async def keys(self, call_sid: str, digits: str | None) -> Outcome:
        """What comes of keys in a call that goes on without a model; `None`: it just begins to."""
        ...

    async def transfer_result(self, report: DialReport) -> Outcome:
        """How a dial went, and what comes next; `Ended` for a call nobody knows. Told twice, it answers twice alike."""
        ...

    async def message_left(self, call_sid: str, leg: int, *, is_empty: bool, call_over: bool) -> Outcome:
        """The caller has left a message, or nothing; what comes next. Told twice, it answers twice alike."""
        ...

    async def waiting(self, place: PlaceInLine) -> WaitOn | LeaveLine:
        """What somebody in a line hears next; a reason to leave is kept, so that it is the same told twice."""
        ...

    async def hold_music(self, piece: MusicPiece) -> bytes | None:
        """Some of what who waits hears, as a WAV file; None: there is none."""
        ...

    async def out_of_line(self, report: LineReport) -> Outcome:
        """Somebody has left a line; what comes next. Told twice, it answers twice alike."""
        ...

    async def recording(self, report: RecordingReport) -> None:
        """Take note of a message: in any order, as often as it is told of."""
        ...

    async def whisper(self, call_sid: str) -> Whispered | None:
        """What who is called for this call hears first; `None`: they are to be connected at once."""
        ...

    async def spend_token(self, nonce: str, call_sid: str, expires_at: int) -> bool:
        """Spend a stream token; `False` if it was spent before, by any worker."""
        ...


@dataclass(frozen=True, slots=True)
class Readiness:
    """What works, by name; ready when all of it does."""

    checks: dict[str, bool] = field(hash=False)
    warnings: tuple[str, ...] = ()
    """What works, and should not be left as it is."""

    @property
    def ok(self) -> bool:
        """Whether calls can be taken in full."""
        return all(self.checks.values())


@dataclass(frozen=True, slots=True)
class WebLimits:
    """Bounds. A webhook's answer takes `answer_s` at most, each thing it asks of the registry `registry_s`."""

    answer_s: float = 0.9
    registry_s: float = 0.6
    body_bytes: int = 64 * 1024
    body_s: float = 5.0
    start_s: float = 5.0
    waiting_sockets: int = 64
    streams_per_call: int = 20
    """Streams one call may come back with before it gets the apology; short ones in a row get it sooner."""


RunCall = Callable[[CallerLink, StartInfo, Grant], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class WebDeps:
    """Everything `create_app` needs."""

    checker: SignatureChecker
    tokens: StreamTokens
    metrics: Metrics
    slots: CallSlots
    flows: FlowLookup
    calls: CallRegistry
    run_call: RunCall
    """Runs one whole call on an accepted stream. The link is closed after it."""
    ready: Callable[[], Awaitable[Readiness]]
    draining: Callable[[], bool]
    pause_s: Callable[[], int] = lambda: 2
    """How long a caller waits whom a draining worker sends on."""
    limits: WebLimits = field(default_factory=WebLimits)
    now: Callable[[], float] = time.time
    """Unix time, s: tokens cross workers."""
    new_nonce: Callable[[], str] = field(default=lambda: secrets.token_urlsafe(12))
