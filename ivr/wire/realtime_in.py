"""What an OpenAI Realtime (GA) server sends: one message's bytes → one typed event. Pure; never raises.

Shapes: the OpenAI SDK's `openai.types.realtime`. Only the fields we use are decoded, all others may change.
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from ivr.core.events import (
    ModelEvent,
    ReplyStatus,
    SpeechStarted,
    SpeechStopped,
    TranscriptDelta,
    TranscriptDone,
    TranscriptFailed,
    TurnCommitted,
    Usage,
)
from ivr.core.units import MODEL_RATE_HZ

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Largest server message read. A second of audio is 64 KB of base64, a `session.updated` echo seldom more."""

PCM = "audio/pcm"
_PASSING = ("rate_limit", "server_error", "insufficient_quota", "overloaded")

Milliseconds = Annotated[int, Meta(ge=0)]
Tokens = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=512)]


class Ignored(Struct, frozen=True):
    """An event of a type we have no use for, or do not know yet."""

    type: str


class Unreadable(Struct, frozen=True):
    """A message that is not what its type promises. `reason` holds no content of it."""

    reason: str


class _Event(Struct, frozen=True, tag_field="type"):
    """Base of the events we read; `tag` is the protocol's `type`."""


# -- the session ---------------------------------------------------------------------------------------------


class AudioFormat(Struct, frozen=True):
    """`{"type": "audio/pcm", "rate": 24000}`."""

    type: str = ""
    rate: int | None = None


class TurnDetection(Struct, frozen=True):
    """The part of the VAD's settings that decides whose the turns are."""

    type: str = ""
    create_response: bool | None = None


class AudioInput(Struct, frozen=True):
    """`session.audio.input`."""

    format: AudioFormat | None = None
    turn_detection: TurnDetection | None = None


class AudioOutput(Struct, frozen=True):
    """`session.audio.output`."""

    format: AudioFormat | None = None


class SessionAudio(Struct, frozen=True):
    """`session.audio`."""

    input: AudioInput | None = None
    output: AudioOutput | None = None


class Session(Struct, frozen=True):
    """The session as the server has it."""

    id: str | None = None
    audio: SessionAudio | None = None
    expires_at: float | None = None
    """Unix time, s."""

    def fault(self) -> str:
        """What in these settings would make the call noise or take its turns from us; empty if nothing."""
        audio = self.audio or SessionAudio()
        hears = audio.input or AudioInput()
        speaks = audio.output or AudioOutput()
        detection = hears.turn_detection or TurnDetection()
        if not _is_pcm24k(hears.format):
            return f"its input audio is not PCM16 at {MODEL_RATE_HZ} Hz"
        if not _is_pcm24k(speaks.format):
            return f"its output audio is not PCM16 at {MODEL_RATE_HZ} Hz"
        if detection.type != "server_vad":
            return "it has no server_vad turn detection"
        if detection.create_response is not False:
            return "it answers turns by itself (create_response was not switched off)"
        return ""


def _is_pcm24k(audio: AudioFormat | None) -> bool:
    # The protocol knows no other rate for audio/pcm, so a server may leave it out.
    return audio is not None and audio.type == PCM and audio.rate in (None, MODEL_RATE_HZ)


class SessionCreated(_Event, frozen=True, tag="session.created"):
    """The connection is a session; its settings are still the server's own."""

    session: Session


class SessionUpdated(_Event, frozen=True, tag="session.updated"):
    """The settings in force."""

    session: Session


class ErrorBody(Struct, frozen=True):
    """`error.error`. `event_id` is the client event it answers, if any."""

    type: str | None = None
    code: str | int | None = None
    message: str | None = None
    event_id: str | None = None

    @property
    def name(self) -> str:
        """The code, or the type where there is no code; never empty."""
        return str(self.code or self.type or "unknown_error")

    @property
    def passing(self) -> bool:
        """Whether the same request may well succeed later."""
        return self.name.startswith(_PASSING)


class ErrorEvent(_Event, frozen=True, tag="error"):
    """The server refused something, or broke. Most leave the session alive."""

    error: ErrorBody


# -- the caller's audio --------------------------------------------------------------------------------------


class SpeechStartedEvent(_Event, frozen=True, tag="input_audio_buffer.speech_started"):
    """See `SpeechStarted`."""

    item_id: Name
    audio_start_ms: Milliseconds

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return SpeechStarted(self.item_id, self.audio_start_ms)


class SpeechStoppedEvent(_Event, frozen=True, tag="input_audio_buffer.speech_stopped"):
    """See `SpeechStopped`."""

    item_id: Name
    audio_end_ms: Milliseconds

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return SpeechStopped(self.item_id, self.audio_end_ms)


class CommittedEvent(_Event, frozen=True, tag="input_audio_buffer.committed"):
    """See `TurnCommitted`."""

    item_id: Name

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return TurnCommitted(self.item_id)


class TranscriptDeltaEvent(_Event, frozen=True, tag="conversation.item.input_audio_transcription.delta"):
    """See `TranscriptDelta`."""

    item_id: Name
    delta: str | None = None

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return TranscriptDelta(self.item_id, self.delta or "")


class TranscriptDoneEvent(_Event, frozen=True, tag="conversation.item.input_audio_transcription.completed"):
    """See `TranscriptDone`."""

    item_id: Name
    transcript: str

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return TranscriptDone(self.item_id, self.transcript)


class TranscriptFailedEvent(_Event, frozen=True, tag="conversation.item.input_audio_transcription.failed"):
    """See `TranscriptFailed`."""

    item_id: Name
    error: ErrorBody = field(default_factory=ErrorBody)

    def core(self) -> ModelEvent:
        """As the core knows it."""
        return TranscriptFailed(self.item_id, self.error.name)


# -- replies -------------------------------------------------------------------------------------------------


class CachedTokens(Struct, frozen=True):
    """`usage.input_token_details.cached_tokens_details`."""

    text_tokens: Tokens | None = None
    audio_tokens: Tokens | None = None


class InputTokens(Struct, frozen=True):
    """`usage.input_token_details`: cached tokens are counted among the others too."""

    text_tokens: Tokens | None = None
    audio_tokens: Tokens | None = None
    cached_tokens: Tokens | None = None
    cached_tokens_details: CachedTokens | None = None


class OutputTokens(Struct, frozen=True):
    """`usage.output_token_details`."""

    text_tokens: Tokens | None = None
    audio_tokens: Tokens | None = None


class ResponseUsage(Struct, frozen=True):
    """`response.usage`."""

    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    input_token_details: InputTokens | None = None
    output_token_details: OutputTokens | None = None

    def core(self) -> Usage:
        """As the core knows it. A server that gives only totals has them counted as text."""
        given = self.input_token_details or InputTokens(text_tokens=self.input_tokens)
        cached = given.cached_tokens_details or CachedTokens(text_tokens=given.cached_tokens)
        made = self.output_token_details or OutputTokens(text_tokens=self.output_tokens)
        return Usage(
            input_text_tokens=given.text_tokens or 0,
            input_audio_tokens=given.audio_tokens or 0,
            cached_text_tokens=cached.text_tokens or 0,
            cached_audio_tokens=cached.audio_tokens or 0,
            output_text_tokens=made.text_tokens or 0,
            output_audio_tokens=made.audio_tokens or 0,
        )


class StatusDetails(Struct, frozen=True):
    """`response.status_details`."""

    reason: str | None = None
    error: ErrorBody | None = None


class OutputItem(Struct, frozen=True):
    """One item of `response.output`; the last three fields belong to function calls."""

    type: str = ""
    status: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class Response(Struct, frozen=True):
    """A response as `response.created` and `response.done` carry it."""

    id: Name
    status: str | None = None
    conversation_id: str | None = None
    metadata: dict[str, str] | None = None
    status_details: StatusDetails | None = None
    output: list[OutputItem] | None = None
    usage: ResponseUsage | None = None

    @property
    def reply_id(self) -> str:
        """Our own id, if this response is one we asked for."""
        return (self.metadata or {}).get("reply_id", "")

    def end_status(self) -> ReplyStatus:
        """How it ended. A status we do not know is a failure: nothing can be relied on."""
        try:
            return ReplyStatus(self.status or "")
        except ValueError:
            return ReplyStatus.FAILED

    def code(self) -> str:
        """Why it did not complete: the error's code, or the reason; empty for a complete one."""
        details = self.status_details or StatusDetails()
        if details.error is not None:
            return details.error.name
        if self.end_status() is ReplyStatus.COMPLETED:
            return ""
        return details.reason or ("unknown_error" if self.end_status() is ReplyStatus.FAILED else "")


class ResponseCreated(_Event, frozen=True, tag="response.created"):
    """A reply exists at the server."""

    response: Response


class ResponseDone(_Event, frozen=True, tag="response.done"):
    """A reply is complete, or will never be."""

    response: Response


class AudioDelta(_Event, frozen=True, tag="response.output_audio.delta"):
    """Some of a reply's audio, base64-decoded: PCM16 24 kHz, cut at any byte."""

    response_id: Name
    delta: bytes


class SpokenDelta(_Event, frozen=True, tag="response.output_audio_transcript.delta"):
    """Some of the text of what a reply says."""

    response_id: Name
    delta: str


class CallDone(_Event, frozen=True, tag="response.function_call_arguments.done"):
    """A function call is complete. Older servers leave `name` out; `response.done` has it again."""

    response_id: Name
    call_id: Name
    arguments: str
    name: str | None = None


CallerEvent = (
    SpeechStartedEvent
    | SpeechStoppedEvent
    | CommittedEvent
    | TranscriptDeltaEvent
    | TranscriptDoneEvent
    | TranscriptFailedEvent
)
ReplyEvent = AudioDelta | SpokenDelta | CallDone | ResponseCreated | ResponseDone
ServerEvent = CallerEvent | ReplyEvent | SessionCreated | SessionUpdated | ErrorEvent


class _Head(Struct, frozen=True):
    type: Annotated[str, Meta(min_length=1)]


_KNOWN = frozenset(struct.__struct_config__.tag for struct in ServerEvent.__args__)
_decode_event = msgspec.json.Decoder(ServerEvent).decode
_decode_head = msgspec.json.Decoder(_Head).decode


def decode(message: bytes) -> ServerEvent | Ignored | Unreadable:
    """Read one message of the server.

    Audio deltas come base64-decoded. What is unknown comes as `Ignored`, what is broken as `Unreadable`.
    """
    if len(message) > MAX_EVENT_BYTES:
        return Unreadable(f"{len(message)} bytes, more than {MAX_EVENT_BYTES}")
    try:
        return _decode_event(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        return _unread(message, fault)


def _unread(message: bytes, fault: Exception) -> Ignored | Unreadable:
    """Tell an event we have no use for from a broken one. msgspec's faults name types and paths only."""
    try:
        head = _decode_head(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        return Unreadable(f"no event: {broken}"[:200])
    if head.type in _KNOWN:
        return Unreadable(f"{head.type}: {fault}"[:200])
    return Ignored(head.type[:100])
