"""Server events of the Realtime protocol (GA names). `event_id` is filled in when an event is sent."""

from typing import Literal

from msgspec import Struct, field

from ivr.sandbox.shapes import AudioFormat, Item, MaxTokens, Modality, SessionObject, VoiceId


class Event(Struct, tag_field="type", kw_only=True):
    """Anything the server says."""

    event_id: str = ""


class ErrorDetail(Struct, kw_only=True):
    """What was wrong with a client event, whose `event_id` it names."""

    type: str
    code: str | None
    message: str
    param: str | None = None
    event_id: str | None = None


class ErrorEvent(Event, tag="error", kw_only=True):
    """A client event was refused; the session goes on unless `session_expired`."""

    error: ErrorDetail


class SessionCreated(Event, tag="session.created", kw_only=True):
    """First event of a session."""

    session: SessionObject


class SessionUpdated(Event, tag="session.updated", kw_only=True):
    """A `session.update` was taken; the whole session as it now is."""

    session: SessionObject


# -- the user's audio --------------------------------------------------------------------------------------


class SpeechStarted(Event, tag="input_audio_buffer.speech_started", kw_only=True):
    """Speech began; `audio_start_ms` includes the prefix padding."""

    audio_start_ms: int
    item_id: str


class SpeechStopped(Event, tag="input_audio_buffer.speech_stopped", kw_only=True):
    """Silence lasted `silence_duration_ms`; `audio_end_ms` includes it."""

    audio_end_ms: int
    item_id: str


class Committed(Event, tag="input_audio_buffer.committed", kw_only=True):
    """The buffer became item `item_id`."""

    item_id: str
    previous_item_id: str | None = None


class Cleared(Event, tag="input_audio_buffer.cleared", kw_only=True):
    """The buffer is empty."""


# -- conversation ------------------------------------------------------------------------------------------


class ItemAdded(Event, tag="conversation.item.added", kw_only=True):
    """An item is in the conversation."""

    item: Item
    previous_item_id: str | None = None


class ItemDone(Event, tag="conversation.item.done", kw_only=True):
    """An item is complete."""

    item: Item
    previous_item_id: str | None = None


class ItemRetrieved(Event, tag="conversation.item.retrieved", kw_only=True):
    """An item with its audio."""

    item: Item


class ItemDeleted(Event, tag="conversation.item.deleted", kw_only=True):
    """An item is gone."""

    item_id: str


class ItemTruncated(Event, tag="conversation.item.truncated", kw_only=True):
    """An assistant item was cut."""

    item_id: str
    content_index: int
    audio_end_ms: int


class DurationUsage(Struct, kw_only=True, tag_field="type", tag="duration"):
    """Billed by length of audio, in seconds."""

    seconds: float


class TranscriptDelta(Event, tag="conversation.item.input_audio_transcription.delta", kw_only=True):
    """Part of what the user said."""

    item_id: str
    delta: str
    content_index: int = 0


class TranscriptCompleted(Event, tag="conversation.item.input_audio_transcription.completed", kw_only=True):
    """All of what the user said."""

    item_id: str
    transcript: str
    usage: DurationUsage
    content_index: int = 0


class TranscriptionError(Struct, kw_only=True):
    """Why there is no transcript."""

    type: str
    code: str
    message: str
    param: str | None = None


class TranscriptFailed(Event, tag="conversation.item.input_audio_transcription.failed", kw_only=True):
    """There will be no transcript of the item."""

    item_id: str
    error: TranscriptionError
    content_index: int = 0


# -- responses ---------------------------------------------------------------------------------------------


class CachedDetails(Struct, kw_only=True):
    """Input tokens that were cached, by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0


class InputDetails(Struct, kw_only=True):
    """Input tokens by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0
    image_tokens: int = 0
    cached_tokens: int = 0
    cached_tokens_details: CachedDetails = field(default_factory=CachedDetails)


class OutputDetails(Struct, kw_only=True):
    """Output tokens by kind."""

    text_tokens: int = 0
    audio_tokens: int = 0


class Usage(Struct, kw_only=True):
    """Tokens of one response."""

    total_tokens: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    input_token_details: InputDetails = field(default_factory=InputDetails)
    output_token_details: OutputDetails = field(default_factory=OutputDetails)


class FailureDetail(Struct, kw_only=True):
    """Why a response failed."""

    type: str
    code: str
    message: str


class StatusDetails(Struct, kw_only=True, omit_defaults=True):
    """More about how a response ended."""

    type: Literal["completed", "cancelled", "incomplete", "failed"]
    reason: Literal["turn_detected", "client_cancelled", "max_output_tokens"] | None = None
    error: FailureDetail | None = None


class ResponseOutput(Struct, kw_only=True):
    """How the response sounds."""

    format: AudioFormat
    voice: str | VoiceId


class ResponseAudio(Struct, kw_only=True):
    """The audio part of a response."""

    output: ResponseOutput


class ResponseObject(Struct, kw_only=True):
    """A response."""

    id: str
    conversation_id: str | None
    output_modalities: list[Modality]
    max_output_tokens: MaxTokens
    audio: ResponseAudio
    metadata: dict[str, str] | None = None
    object: Literal["realtime.response"] = "realtime.response"
    status: Literal["completed", "cancelled", "failed", "incomplete", "in_progress"] = "in_progress"
    status_details: StatusDetails | None = None
    output: list[Item] = field(default_factory=list)
    usage: Usage | None = None


class ResponseCreated(Event, tag="response.created", kw_only=True):
    """A response began."""

    response: ResponseObject


class ResponseDone(Event, tag="response.done", kw_only=True):
    """A response ended, one way or another."""

    response: ResponseObject


class RateLimit(Struct, kw_only=True):
    """How much may still be asked for."""

    name: Literal["requests", "tokens"]
    limit: int
    remaining: int
    reset_seconds: float


class RateLimitsUpdated(Event, tag="rate_limits.updated", kw_only=True):
    """Sent when a response begins; the sandbox limits nothing and says so with large numbers."""

    rate_limits: list[RateLimit]


class OutputItemAdded(Event, tag="response.output_item.added", kw_only=True):
    """The response begins an item."""

    response_id: str
    output_index: int
    item: Item


class OutputItemDone(Event, tag="response.output_item.done", kw_only=True):
    """The item is complete."""

    response_id: str
    output_index: int
    item: Item


class ContentPart(Struct, kw_only=True, omit_defaults=True):
    """A piece of an output message."""

    type: Literal["text", "audio"]
    text: str | None = None
    transcript: str | None = None


class InContent(Event, kw_only=True):
    """Fields of every event about one content part."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int = 0


class PartAdded(InContent, tag="response.content_part.added", kw_only=True):
    """A content part begins."""

    part: ContentPart


class PartDone(InContent, tag="response.content_part.done", kw_only=True):
    """A content part is complete."""

    part: ContentPart


class AudioTranscriptDelta(InContent, tag="response.output_audio_transcript.delta", kw_only=True):
    """Some of the words being spoken."""

    delta: str


class AudioTranscriptDone(InContent, tag="response.output_audio_transcript.done", kw_only=True):
    """All the words spoken."""

    transcript: str


class AudioDelta(InContent, tag="response.output_audio.delta", kw_only=True):
    """Some audio, in the response's format (base64 on the wire)."""

    delta: bytes


class AudioDone(InContent, tag="response.output_audio.done", kw_only=True):
    """No more audio in this part."""


class TextDelta(InContent, tag="response.output_text.delta", kw_only=True):
    """Some text."""

    delta: str


class TextDone(InContent, tag="response.output_text.done", kw_only=True):
    """All the text."""

    text: str


class ArgumentsDelta(Event, tag="response.function_call_arguments.delta", kw_only=True):
    """Some of a call's arguments."""

    response_id: str
    item_id: str
    output_index: int
    call_id: str
    delta: str


class ArgumentsDone(Event, tag="response.function_call_arguments.done", kw_only=True):
    """All of a call's arguments: JSON text."""

    response_id: str
    item_id: str
    output_index: int
    call_id: str
    name: str
    arguments: str


class RawEvent(Struct):
    """JSON text to send as it is: scripts say things no client knows."""

    text: str
