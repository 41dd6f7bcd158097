"""What both sides of the Realtime protocol share: conversation items, formats, tools, the session object.

Field names and values are the protocol's: `openai/types/realtime` in the OpenAI SDK.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Status = Literal["completed", "incomplete", "in_progress"]
Modality = Literal["text", "audio"]


class Wire(Struct, forbid_unknown_fields=True):
    """A shape of the protocol. Fields it does not know are refused, as OpenAI does."""


# -- conversation items ------------------------------------------------------------------------------------


class Part(Wire, omit_defaults=True, kw_only=True):
    """A piece of a message. `audio` is in the session's input format (base64 on the wire)."""

    type: Literal["input_text", "input_audio", "output_text", "output_audio"]
    text: str | None = None
    audio: bytes | None = None
    transcript: str | None = None


class Message(Wire, tag_field="type", tag="message", kw_only=True):
    """Something said or written by system, user or assistant."""

    role: Literal["system", "user", "assistant"]
    content: list[Part]
    id: str | None = None
    object: Literal["realtime.item"] = "realtime.item"
    status: Status = "completed"


class FunctionCall(Wire, tag_field="type", tag="function_call", kw_only=True):
    """A call the model made. `arguments` is JSON text."""

    name: str
    arguments: str
    call_id: str | None = None
    id: str | None = None
    object: Literal["realtime.item"] = "realtime.item"
    status: Status = "completed"


class FunctionCallOutput(Wire, tag_field="type", tag="function_call_output", kw_only=True):
    """What came of a call."""

    call_id: str
    output: str
    id: str | None = None
    object: Literal["realtime.item"] = "realtime.item"
    status: Status = "completed"


class ItemReference(Wire, tag_field="type", tag="item_reference", kw_only=True):
    """Stands for an item of the session's conversation, in a response's `input` only."""

    id: str


Item = Message | FunctionCall | FunctionCallOutput
InputItem = Message | FunctionCall | FunctionCallOutput | ItemReference


# -- formats, tools ----------------------------------------------------------------------------------------


class Pcm(Wire, tag_field="type", tag="audio/pcm", kw_only=True):
    """PCM16 little-endian, 24 kHz, mono."""

    rate: Literal[24000] = 24000


class Pcmu(Wire, tag_field="type", tag="audio/pcmu", kw_only=True):
    """G.711 µ-law, 8 kHz."""


class Pcma(Wire, tag_field="type", tag="audio/pcma", kw_only=True):
    """G.711 A-law, 8 kHz."""


AudioFormat = Pcm | Pcmu | Pcma


class Tool(Wire, omit_defaults=True, kw_only=True):
    """A function the model may call; `parameters` is a JSON Schema object."""

    type: Literal["function"]
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


class ToolChoiceFunction(Wire, kw_only=True):
    """One function that must be called."""

    name: str
    type: Literal["function"] = "function"


ToolChoice = Literal["auto", "none", "required"] | ToolChoiceFunction
MaxTokens = Annotated[int, Meta(ge=1, le=4096)] | Literal["inf"]


# -- the session -------------------------------------------------------------------------------------------


class Transcription(Wire, omit_defaults=True, kw_only=True):
    """Which model writes down what the user says. The sandbox has one and ignores the choice."""

    model: str | None = None
    language: str | None = None
    languages: list[str] | None = None
    prompt: str | None = None
    keywords: list[str] | None = None
    delay: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class NoiseReduction(Wire, omit_defaults=True, kw_only=True):
    """Accepted and echoed; the sandbox reduces no noise."""

    type: Literal["near_field", "far_field"] | None = None
    strength: float | None = None


class ServerVad(Wire, tag_field="type", tag="server_vad", kw_only=True):
    """Turn detection. `threshold` 0.5 is −50 dBFS, ±0.1 is ±4 dB."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    prefix_padding_ms: Annotated[int, Meta(ge=0, le=5_000)] = 300
    silence_duration_ms: Annotated[int, Meta(ge=20, le=60_000)] = 500
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: None = None


Speed = Annotated[float, Meta(ge=0.25, le=1.5)]


class VoiceId(Wire, kw_only=True):
    """A voice made for one account. The sandbox takes the name as any other."""

    id: str


class InputAudio(Wire, kw_only=True):
    """How the user's audio comes in."""

    format: AudioFormat = field(default_factory=Pcm)
    transcription: Transcription | None = None
    noise_reduction: NoiseReduction | None = None
    turn_detection: ServerVad | None = field(default_factory=ServerVad)


class OutputAudio(Wire, kw_only=True):
    """How replies sound."""

    format: AudioFormat = field(default_factory=Pcm)
    voice: str | VoiceId = "alloy"
    speed: Speed = 1.0


class Audio(Wire, kw_only=True):
    """Both directions."""

    input: InputAudio = field(default_factory=InputAudio)
    output: OutputAudio = field(default_factory=OutputAudio)


class Reasoning(Wire, kw_only=True):
    """Accepted and echoed; the sandbox does not reason."""

    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None


class SessionObject(Wire, kw_only=True):
    """A session as `session.created` and `session.updated` show it."""

    id: str
    model: str
    expires_at: int
    type: Literal["realtime"] = "realtime"
    object: Literal["realtime.session"] = "realtime.session"
    output_modalities: list[Modality] = field(default_factory=lambda: ["audio"])
    instructions: str = ""
    tools: list[Tool] = field(default_factory=list)
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    max_output_tokens: MaxTokens = "inf"
    reasoning: Reasoning | None = None
    tracing: Any = None
    truncation: Any = "auto"
    prompt: Any = None
    include: list[str] | None = None
    audio: Audio = field(default_factory=Audio)


class InputAudioChange(Wire, kw_only=True):
    """What `session.update` may say of the input. An object replaces the one in force; null is off."""

    format: AudioFormat | UnsetType = UNSET
    transcription: Transcription | UnsetType | None = UNSET
    noise_reduction: NoiseReduction | UnsetType | None = UNSET
    turn_detection: ServerVad | UnsetType | None = UNSET


class OutputAudioChange(Wire, kw_only=True):
    """What `session.update` may say of the output."""

    format: AudioFormat | UnsetType = UNSET
    voice: str | VoiceId | UnsetType = UNSET
    speed: Speed | UnsetType = UNSET


class AudioChange(Wire, kw_only=True):
    """Both directions of a `session.update`."""

    input: InputAudioChange = field(default_factory=InputAudioChange)
    output: OutputAudioChange = field(default_factory=OutputAudioChange)


class SessionChange(Wire, kw_only=True):
    """The `session` of a `session.update`. What is left out stays as it is."""

    type: Literal["realtime"]
    model: str | UnsetType = UNSET
    output_modalities: Annotated[list[Modality], Meta(min_length=1, max_length=1)] | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    tools: list[Tool] | UnsetType = UNSET
    tool_choice: ToolChoice | UnsetType = UNSET
    parallel_tool_calls: bool | UnsetType = UNSET
    max_output_tokens: MaxTokens | UnsetType = UNSET
    reasoning: Reasoning | UnsetType | None = UNSET
    tracing: Any = UNSET
    truncation: Any = UNSET
    prompt: UnsetType | None = UNSET
    include: list[Literal["item.input_audio_transcription.logprobs"]] | UnsetType | None = UNSET
    audio: AudioChange = field(default_factory=AudioChange)
