"""What we say to an OpenAI Realtime (GA) server: commands → one message's JSON, UTF-8. Pure.

Shapes: the OpenAI SDK's `openai.types.realtime`. Every reply is out of band (`conversation: "none"`), so no
message here truncates, creates or commits anything in the provider's own conversation.
"""

import re
from binascii import b2a_base64
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ivr.core.commands import (
    AssistantText,
    CallOutput,
    FunctionTool,
    InputItem,
    ItemRef,
    SessionConfig,
    StartReply,
    SystemText,
    UserText,
)
from ivr.core.units import MODEL_RATE_HZ

_APPEND_HEAD = b'{"type":"input_audio_buffer.append","audio":"'
_APPEND_TAIL = b'"}'
_REPLY_EVENT = "reply."
_REASONING = re.compile(r"gpt-realtime-([2-9]|[1-9][0-9])(\.[0-9]+)?(-.*)?")

PROBE_REPLY_ID = "probe"
MIN_SPEED, MAX_SPEED = 0.25, 1.5

_encode = msgspec.json.Encoder().encode


class ModelProfile(Struct, frozen=True):
    """The model names of a server. Empty `transcribe_model`: the caller's words are not transcribed."""

    model: str
    transcribe_model: str
    reasoning_effort: str = "minimal"


def reasons(model: str) -> bool:
    """Whether a model takes `reasoning`: gpt-realtime-2 and later (`gpt-realtime-2025-08-28` is a date)."""
    return _REASONING.fullmatch(model) is not None


# -- the shapes ----------------------------------------------------------------------------------------------


class _Tagged(Struct, frozen=True, tag_field="type"):
    """Base of the objects that carry a `type`."""


class _Format(_Tagged, frozen=True, tag="audio/pcm"):
    rate: int = MODEL_RATE_HZ


class _Transcription(Struct, frozen=True):
    model: str
    language: str | UnsetType = UNSET


class _ServerVad(_Tagged, frozen=True, tag="server_vad"):
    # Sent whole each time. No idle_timeout_ms ever: it would commit silence and answer it.
    threshold: float
    prefix_padding_ms: int
    silence_duration_ms: int
    create_response: bool = False
    interrupt_response: bool = False


class _AudioInput(Struct, frozen=True):
    transcription: _Transcription | None
    turn_detection: _ServerVad
    format: _Format = _Format()
    noise_reduction: None = None


class _AudioOutput(Struct, frozen=True):
    format: _Format = _Format()
    voice: str | UnsetType = UNSET
    speed: float | UnsetType = UNSET


class _Audio(Struct, frozen=True):
    input: _AudioInput
    output: _AudioOutput


class _Reasoning(Struct, frozen=True):
    effort: str


class _Function(_Tagged, frozen=True, tag="function"):
    name: str
    description: str
    parameters: dict[str, Any]


class _Session(_Tagged, frozen=True, tag="realtime"):
    instructions: str
    tools: list[_Function]
    audio: _Audio
    output_modalities: tuple[str, ...] = ("audio",)
    tool_choice: str = "auto"
    reasoning: _Reasoning | UnsetType = UNSET


class _SessionUpdate(_Tagged, frozen=True, tag="session.update"):
    event_id: str
    session: _Session


class _InputText(_Tagged, frozen=True, tag="input_text"):
    text: str


class _OutputText(_Tagged, frozen=True, tag="output_text"):
    text: str


class _Message(_Tagged, frozen=True, tag="message"):
    role: Literal["user", "assistant", "system"]
    content: tuple[_InputText | _OutputText]


class _Reference(_Tagged, frozen=True, tag="item_reference"):
    id: str


class _Call(_Tagged, frozen=True, tag="function_call"):
    call_id: str
    name: str
    arguments: str


class _CallOutput(_Tagged, frozen=True, tag="function_call_output"):
    call_id: str
    output: str


_Item = _Message | _Reference | _Call | _CallOutput


class _Metadata(Struct, frozen=True):
    reply_id: str


class _Response(Struct, frozen=True):
    input: list[_Item]
    instructions: str
    tools: list[_Function]
    tool_choice: str
    metadata: _Metadata
    output_modalities: tuple[str, ...] = ("audio",)
    conversation: str = "none"
    max_output_tokens: int | UnsetType = UNSET


class _ResponseCreate(_Tagged, frozen=True, tag="response.create"):
    event_id: str
    response: _Response


class _ResponseCancel(_Tagged, frozen=True, tag="response.cancel"):
    response_id: str


class _ItemDelete(_Tagged, frozen=True, tag="conversation.item.delete"):
    item_id: str


# -- the messages --------------------------------------------------------------------------------------------


def encode_append(pcm24k: bytes) -> bytes:
    """`input_audio_buffer.append` of PCM16 24 kHz. The hot path: base64 needs no JSON escaping."""
    return _APPEND_HEAD + b2a_base64(pcm24k, newline=False) + _APPEND_TAIL


def encode_session(
    config: SessionConfig, profile: ModelProfile, event_id: str, *, voice: bool, speed: bool
) -> bytes:
    """`session.update` with all settings but the model, which the address names and no update may change.

    `voice` and `speed` say whether these two may be sent now (`SessionSettings` knows).
    """
    language = config.language.partition("-")[0].lower()
    transcription = _Transcription(profile.transcribe_model, language or UNSET)
    audio = _Audio(
        _AudioInput(
            transcription if profile.transcribe_model else None,
            _ServerVad(config.vad_threshold, config.prefix_padding_ms, config.silence_ms),
        ),
        _AudioOutput(
            voice=config.voice if voice and config.voice else UNSET,
            speed=min(max(config.speed, MIN_SPEED), MAX_SPEED) if speed else UNSET,
        ),
    )
    thinks = bool(profile.reasoning_effort) and reasons(profile.model)
    session = _Session(
        config.instructions,
        _functions(config.tools),
        audio,
        reasoning=_Reasoning(profile.reasoning_effort) if thinks else UNSET,
    )
    return _encode(_SessionUpdate(event_id, session))


def encode_reply(command: StartReply) -> bytes:
    """`response.create`, out of band: `input` is the whole context; event_id `reply_event_id(reply_id)`."""
    response = _Response(
        _items(command.input),
        command.instructions,
        _functions(command.tools),
        # A string always: an object here made OpenAI's server fail.
        "auto" if command.tools else "none",
        _Metadata(command.reply_id),
    )
    return _encode(_ResponseCreate(reply_event_id(command.reply_id), response))


def encode_probe() -> bytes:
    """The smallest out-of-band `response.create`: text, few tokens, no tools, short instructions."""
    response = _Response(
        [_Message("user", (_InputText("Say: ok"),))],
        "Answer with one word.",
        [],
        "none",
        _Metadata(PROBE_REPLY_ID),
        output_modalities=("text",),
        max_output_tokens=16,
    )
    return _encode(_ResponseCreate(reply_event_id(PROBE_REPLY_ID), response))


def encode_cancel(response_id: str) -> bytes:
    """`response.cancel` by id: without one only a reply of the default conversation would be cancelled."""
    return _encode(_ResponseCancel(response_id))


def encode_delete(item_id: str) -> bytes:
    """`conversation.item.delete`."""
    return _encode(_ItemDelete(item_id))


def reply_event_id(reply_id: str) -> str:
    """The client event id under which a refused `response.create` comes back in `error.event_id`."""
    return _REPLY_EVENT + reply_id


def reply_of_event(event_id: str | None) -> str:
    """The reverse of `reply_event_id`; empty for any other event."""
    return event_id.removeprefix(_REPLY_EVENT) if event_id and event_id.startswith(_REPLY_EVENT) else ""


def _functions(tools: tuple[FunctionTool, ...]) -> list[_Function]:
    return [_Function(tool.name, tool.description, tool.parameters) for tool in tools]


def _items(given: tuple[InputItem, ...]) -> list[_Item]:
    return [item for each in given for item in _item(each)]


def _item(item: InputItem) -> tuple[_Item, ...]:
    match item:
        case UserText(text):
            return (_Message("user", (_InputText(text),)),)
        case AssistantText(text):
            return (_Message("assistant", (_OutputText(text),)),)
        case SystemText(text):
            return (_Message("system", (_InputText(text),)),)
        case ItemRef(item_id):
            return (_Reference(item_id),)
        case CallOutput(call_id, name, arguments, output):
            # The output alone is refused: the call it answers is in no conversation.
            return (_Call(call_id, name, arguments), _CallOutput(call_id, output))
