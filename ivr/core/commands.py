"""What a call wants done: frozen orders that `ivr.call` carries out, in the order given."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from callflows import engine
from ivr.core.latency import Latency
from memory.model import ALL_OF_IT, Access, CallSnapshot, EndedBy, Exchange


class EndReason(StrEnum):
    """Why a call is over. `DROPPED` alone can be resumed."""

    FINISHED = "finished"
    TRANSFERRED = "transferred"
    DROPPED = "dropped"
    FAILED = "failed"


# -- what goes into a reply's `input` ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserText:
    """A user message as text."""

    text: str


@dataclass(frozen=True, slots=True)
class AssistantText:
    """An assistant message as text (a provider cannot take its own audio back)."""

    text: str


@dataclass(frozen=True, slots=True)
class SystemText:
    """A system message as text: the state snapshot goes last, so that the prefix stays cacheable."""

    text: str


@dataclass(frozen=True, slots=True)
class ItemRef:
    """A reference to an item of the live session: the turn just committed, or recent audio."""

    item_id: str


@dataclass(frozen=True, slots=True)
class CallOutput:
    """A function call and what came of it. Always as a pair: an output alone is refused by the provider."""

    call_id: str
    name: str
    arguments: str
    output: str


InputItem = UserText | AssistantText | SystemText | ItemRef | CallOutput


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function the model may call. `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any] = field(hash=False)


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """The model session's settings. `speed` takes hold between replies only; `voice` never changes once spoken."""

    instructions: str
    tools: tuple[FunctionTool, ...]
    voice: str
    language: str
    speed: float = 1.0
    vad_threshold: float = 0.5
    prefix_padding_ms: int = 300
    silence_ms: int = 500


# -- to the caller's line ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendMedia:
    """Whole 20 ms frames of µ-law for Twilio to play."""

    ulaw: bytes


@dataclass(frozen=True, slots=True)
class SendMark:
    """Ask Twilio to say when all that was sent before has been played."""

    name: str


@dataclass(frozen=True, slots=True)
class SendClear:
    """Throw away what Twilio has queued."""


# -- to the speech model -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hear:
    """Give the model a frame. `missing_ms` of audio before it were lost and are to be concealed first."""

    ulaw: bytes
    missing_ms: int = 0


@dataclass(frozen=True, slots=True)
class UpdateSession:
    """Change the session's settings."""

    config: SessionConfig


@dataclass(frozen=True, slots=True)
class ExactWords:
    """Words of ours, for a text-to-speech endpoint: one after the other, each spoken (and kept) by itself."""

    texts: tuple[str, ...]
    voice: str
    language: str


@dataclass(frozen=True, slots=True)
class StartReply:
    """One out-of-band reply: `input` is its whole context. `reply_id` is ours and comes back with its events.

    `tools` empty means no function may be called. `exact`: it is words of ours, which an endpoint may say in the
    model's place; that is then told by `ReplySpoken`.
    """

    reply_id: str
    instructions: str
    input: tuple[InputItem, ...]
    tools: tuple[FunctionTool, ...]
    exact: ExactWords | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PlayFile:
    """One reply that is a sound file of the business's; told of as any other, by the events of a reply.

    `path` is relative to the flow files' folder, `text` its words. A file that cannot be read is a failed reply.
    """

    reply_id: str
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class CancelReply:
    """Stop a reply, whether or not the provider has created it yet. Its later events are not wanted."""

    reply_id: str


@dataclass(frozen=True, slots=True)
class ForgetItem:
    """Delete an item of the provider's conversation: nobody will reference it again."""

    item_id: str


@dataclass(frozen=True, slots=True)
class ReopenModel:
    """Open a new model session after `delay_ms`; the core keeps what the caller says meanwhile."""

    delay_ms: int


# -- to memory and telephony -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recall:
    """Find what matters for the query; answered by `Recalled` with the same `turn_no`."""

    turn_no: int
    query: str
    live_items: tuple[str, ...]
    """Ids of user items still in the model session: their pages can be given as audio by reference."""
    access: Access = ALL_OF_IT
    """What of the caller's past may be looked at."""


@dataclass(frozen=True, slots=True)
class CommitExchange:
    """A finished exchange: becomes a vpage."""

    exchange: Exchange


@dataclass(frozen=True, slots=True)
class SaveSnapshot:
    """Journal the call's state, so that another worker, or a later call, can go on from it."""

    snapshot: CallSnapshot


@dataclass(frozen=True, slots=True)
class TransferCall:
    """Connect the caller to one of the business's own targets. `number` comes from the flow file only; `flow` is
    where the call then stands.
    """

    target: str
    number: str
    flow: engine.FlowState | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class EndCall:
    """The call is over for us. `say` (if any) is for Twilio's own voice, when the model cannot speak."""

    reason: EndReason
    say: str = ""
    by: EndedBy = EndedBy.US


@dataclass(frozen=True, slots=True)
class LeaveCall:
    """Close the stream without ending the call: it broke, or another worker takes over at the continue URL."""


@dataclass(frozen=True, slots=True)
class ReportTurn:
    """Figures of a finished turn, for logs, metrics and `ivr calls show`."""

    turn_no: int
    latency: Latency


UseTool = engine.UseTool
"""Use one of the business's tools, once for each key; answered by `ToolAnswered`."""

SetHours = engine.SetHours
"""Set a schedule of the business by hand."""
CheckPin = engine.CheckPin
"""Check a PIN, once for each key; answered by `ToolAnswered`, whose body is a bool."""

LineCommand = SendMedia | SendMark | SendClear
ModelCommand = Hear | UpdateSession | StartReply | CancelReply | ForgetItem
Command = (
    LineCommand
    | ModelCommand
    | PlayFile
    | ReopenModel
    | Recall
    | CommitExchange
    | SaveSnapshot
    | TransferCall
    | EndCall
    | LeaveCall
    | UseTool
    | CheckPin
    | SetHours
    | ReportTurn
)
