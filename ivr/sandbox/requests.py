"""Client events of the Realtime protocol, decoded straight into types."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta, field

from ivr.sandbox.faults import Fault, from_validation
from ivr.sandbox.shapes import (
    AudioFormat,
    InputItem,
    Item,
    MaxTokens,
    Modality,
    Reasoning,
    SessionChange,
    Tool,
    ToolChoice,
    VoiceId,
    Wire,
)

MAX_AUDIO_BYTES = 15 * 1024 * 1024
"""Largest audio in one event, as the protocol says."""


class Request(Wire, tag_field="type"):
    """A client event; `event_id` is the client's and comes back in an error about it."""

    event_id: str | None = None


class SessionUpdate(Request, tag="session.update", kw_only=True):
    """Change the session."""

    session: SessionChange


class Append(Request, tag="input_audio_buffer.append", kw_only=True):
    """More of the user's audio, in the session's input format."""

    audio: Annotated[bytes, Meta(max_length=MAX_AUDIO_BYTES)]


class Commit(Request, tag="input_audio_buffer.commit", kw_only=True):
    """What is in the buffer is a turn."""


class Clear(Request, tag="input_audio_buffer.clear", kw_only=True):
    """Forget what is in the buffer."""


class ItemCreate(Request, tag="conversation.item.create", kw_only=True):
    """Add an item, after `previous_item_id` ("root": first; absent: last)."""

    item: Item
    previous_item_id: str | None = None


class ItemDelete(Request, tag="conversation.item.delete", kw_only=True):
    """Remove an item."""

    item_id: str


class ItemRetrieve(Request, tag="conversation.item.retrieve", kw_only=True):
    """Give an item back, audio included."""

    item_id: str


class ItemTruncate(Request, tag="conversation.item.truncate", kw_only=True):
    """Cut an assistant item to what was heard."""

    item_id: str
    content_index: int
    audio_end_ms: Annotated[int, Meta(ge=0)]


class ResponseOutput(Wire, kw_only=True):
    """How this response sounds; there is no speed here."""

    format: AudioFormat | None = None
    voice: str | VoiceId | None = None


class ResponseAudio(Wire, kw_only=True):
    """The audio part of a `response.create`."""

    output: ResponseOutput = field(default_factory=ResponseOutput)


class ResponseParams(Wire, kw_only=True):
    """What a response is asked to be; None means as the session says."""

    conversation: Literal["auto", "none"] = "auto"
    input: list[InputItem] | None = None
    instructions: str | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    metadata: Annotated[dict[str, str], Meta(max_length=16)] | None = None
    output_modalities: Annotated[list[Modality], Meta(min_length=1, max_length=1)] | None = None
    max_output_tokens: MaxTokens | None = None
    reasoning: Reasoning | None = None
    prompt: None = None
    audio: ResponseAudio = field(default_factory=ResponseAudio)


class ResponseCreate(Request, tag="response.create", kw_only=True):
    """Reply now."""

    response: ResponseParams = field(default_factory=ResponseParams)


class ResponseCancel(Request, tag="response.cancel", kw_only=True):
    """Stop a reply: the named one, or the default conversation's."""

    response_id: str | None = None


AnyRequest = (
    SessionUpdate
    | Append
    | Commit
    | Clear
    | ItemCreate
    | ItemDelete
    | ItemRetrieve
    | ItemTruncate
    | ResponseCreate
    | ResponseCancel
)


class _Envelope(msgspec.Struct):
    """The two fields every client event has, for errors about events that do not fit."""

    type: str | None = None
    event_id: str | None = None


_decoder = msgspec.json.Decoder(AnyRequest)
_envelope = msgspec.json.Decoder(_Envelope)
_TYPES = frozenset(
    str(struct.__struct_config__.tag)
    for struct in (
        SessionUpdate,
        Append,
        Commit,
        Clear,
        ItemCreate,
        ItemDelete,
        ItemRetrieve,
        ItemTruncate,
        ResponseCreate,
        ResponseCancel,
    )
)


def decode(raw: str | bytes) -> AnyRequest | Fault:
    """A client event, or what is wrong with it. Never raises for bad input."""
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        return _explain(raw, from_validation(error))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return Fault("invalid_json", f"The event could not be parsed as JSON: {error}")


def _explain(raw: str | bytes, fault: Fault) -> Fault:
    try:
        envelope = _envelope.decode(raw)
    except msgspec.ValidationError:
        return Fault("invalid_event", "An event is an object with a string 'type'.", "type")
    if envelope.type is None:
        return Fault(
            "missing_required_parameter",
            "Missing required parameter: 'type'.",
            "type",
            event_id=envelope.event_id,
        )
    if envelope.type not in _TYPES:
        known = ", ".join(sorted(_TYPES))
        message = f"Unknown event type '{envelope.type}'. Supported: {known}."
        return Fault("invalid_value", message, "type", event_id=envelope.event_id)
    return Fault(fault.code, fault.message, fault.param, fault.kind, envelope.event_id)
