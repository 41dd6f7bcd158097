"""What can happen to a call: frozen facts that adapters hand to `CallCore.receive(event, now_ms)`."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from callflows.engine import Override
from memory.model import Window

SESSION_MS = 60 * 60_000.0
"""How long OpenAI lets a session last, where it does not say when it ends."""


class ReplyStatus(StrEnum):
    """How a reply ended, as the Realtime protocol's `response.status` names it."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    INCOMPLETE = "incomplete"


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one reply, as the provider counted them (`response.done.usage`), or as we did: `is_estimate`."""

    input_text_tokens: int = 0
    input_audio_tokens: int = 0
    cached_text_tokens: int = 0
    cached_audio_tokens: int = 0
    output_text_tokens: int = 0
    output_audio_tokens: int = 0
    is_estimate: bool = False


# -- the caller's line -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LineFrame:
    """One media message. `timestamp_ms` is Twilio's, since the stream began; nothing is promised of its grid."""

    sequence: int
    chunk: int
    timestamp_ms: int
    ulaw: bytes


@dataclass(frozen=True, slots=True)
class LineDigit:
    """One key (`0-9*#ABCD`)."""

    digit: str


@dataclass(frozen=True, slots=True)
class LineMark:
    """Twilio returned a mark: played to there, or thrown away by a clear (the name's epoch tells)."""

    name: str


@dataclass(frozen=True, slots=True)
class LineStopped:
    """Twilio's `stop`: the caller left, or REST moved the call."""


@dataclass(frozen=True, slots=True)
class LineClosed:
    """The media socket is gone. `code` is the WebSocket close code (1006 when there was none)."""

    code: int


# -- the speech model --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelReady:
    """The session's settings are confirmed (`session.updated`); audio may be appended.

    `lifetime_ms`: the provider ends the session after so long.
    """

    session_id: str
    lifetime_ms: float = SESSION_MS


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """Provider VAD: speech began. `audio_start_ms` counts appended audio and includes the prefix padding."""

    item_id: str
    audio_start_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """Provider VAD: silence lasted D_VAD. `audio_end_ms` counts appended audio and includes that silence."""

    item_id: str
    audio_end_ms: int


@dataclass(frozen=True, slots=True)
class TurnCommitted:
    """The caller's audio became item `item_id` of the provider's conversation and can be referenced."""

    item_id: str


@dataclass(frozen=True, slots=True)
class TranscriptDelta:
    """Partial transcript of the caller's item; text to append."""

    item_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class TranscriptDone:
    """Final transcript of the caller's item; may be empty (noise), late, or repeated."""

    item_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TranscriptFailed:
    """The provider could not transcribe the item; there will be no text."""

    item_id: str
    code: str


@dataclass(frozen=True, slots=True)
class ReplyAudio:
    """Some of a reply's audio, already at the line's rate (µ-law 8 kHz), any length."""

    reply_id: str
    ulaw: bytes


@dataclass(frozen=True, slots=True)
class ReplyPcm:
    """Some of a reply's audio as the model sent it: PCM16 24 kHz, cut at any byte. `ivr.call` makes `ReplyAudio`."""

    reply_id: str
    pcm24k: bytes


@dataclass(frozen=True, slots=True)
class ReplyText:
    """Some of the transcript of what a reply says."""

    reply_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ReplySpoken:
    """A reply of our own words is spoken by the text-to-speech endpoint, not by the model: its audio follows."""

    reply_id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplyCall:
    """A reply called a function. `arguments` is the model's raw JSON text and is never trusted."""

    reply_id: str
    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ReplyDone:
    """A reply is complete at the provider; its audio may still be playing for a long time."""

    reply_id: str
    status: ReplyStatus
    code: str = ""
    usage: Usage | None = None
    """None: it was not told."""


@dataclass(frozen=True, slots=True)
class ModelFault:
    """The provider reported an error the session survives."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ModelLost:
    """The model session ended and was not asked to. `permanent`: connecting again would not help."""

    reason: str
    permanent: bool = False


# -- our own side ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recalled:
    """The answer to a `Recall` command: the window projected for turn `turn_no`.

    `query` is the command's; `None` stands for the last one's.
    """

    turn_no: int
    window: Window
    query: str | None = None


@dataclass(frozen=True, slots=True)
class CeilingReached:
    """What the business lets a call cost, or all calls of the month, is spent: come to an end."""


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """What came of a `UseTool` command, once for its key. `body` is JSON as it came; None where it failed."""

    key: str
    body: object
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class HoursByHand:
    """The schedules that are set by hand now, all of them: somebody set one, or took it back."""

    overrides: Mapping[str, Override]


@dataclass(frozen=True, slots=True)
class Tick:
    """The worker's pacing tick, or a deadline the core asked for."""


@dataclass(frozen=True, slots=True)
class Handover:
    """This worker stops: bring the call to a point where another can take it."""


LineEvent = LineFrame | LineDigit | LineMark | LineStopped | LineClosed
ModelEvent = (
    ModelReady
    | SpeechStarted
    | SpeechStopped
    | TurnCommitted
    | TranscriptDelta
    | TranscriptDone
    | TranscriptFailed
    | ReplyAudio
    | ReplyText
    | ReplySpoken
    | ReplyCall
    | ReplyDone
    | ModelFault
    | ModelLost
)
Event = LineEvent | ModelEvent | Recalled | CeilingReached | ToolAnswered | HoursByHand | Tick | Handover
