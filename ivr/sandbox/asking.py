"""From a `response.create` to a `Question`: what the response is given, in plain lines."""

import hashlib
from dataclasses import dataclass

import msgspec

from ivr.sandbox.brain import HearPlan, Line, Question, ToolSpec, Who
from ivr.sandbox.conversation import Conversation, Entry, check_item, item_id
from ivr.sandbox.faults import Fault
from ivr.sandbox.hearing import Hearing
from ivr.sandbox.requests import ResponseParams
from ivr.sandbox.shapes import (
    AudioFormat,
    FunctionCall,
    FunctionCallOutput,
    InputItem,
    Item,
    ItemReference,
    Message,
    SessionObject,
    Tool,
    ToolChoiceFunction,
)
from ivr.sandbox.usage import INSTRUCTION_LIMIT_TOKENS, limit_tokens


@dataclass(frozen=True)
class Material:
    """What a response is made from. `keys` are the audio pieces whose words count, in order."""

    instructions: str
    tools: tuple[Tool, ...]
    items: tuple[Item, ...]
    keys: tuple[str, ...]
    audio_ms: float

    @property
    def prefix(self) -> str:
        """Tools and instructions as text: what a provider would cache."""
        return tools_text(self.tools) + self.instructions


def tools_text(tools: tuple[Tool, ...] | list[Tool]) -> str:
    """Tools as the JSON text they count as."""
    return msgspec.json.encode(list(tools)).decode() if tools else ""


def check_size(instructions: str, tools: tuple[Tool, ...] | list[Tool], param: str) -> None:
    """Refuse instructions and tools over the provider's limit."""
    tokens = limit_tokens(len(instructions) + len(tools_text(tools)))
    if tokens > INSTRUCTION_LIMIT_TOKENS:
        message = (
            f"Instructions and tools have {tokens} tokens; at most {INSTRUCTION_LIMIT_TOKENS} are allowed."
        )
        raise Fault("string_above_max_length", message, param)


def audio_key(audio: bytes) -> str:
    """A name for audio given in an `input`: the same audio is heard once a session."""
    return "audio_" + hashlib.sha256(audio).hexdigest()[:24]


def gather(
    params: ResponseParams, session: SessionObject, conversation: Conversation, hearing: Hearing
) -> Material:
    """Check a `response.create` and begin to hear whatever audio in it was not heard yet."""
    instructions = session.instructions if params.instructions is None else params.instructions
    tools = session.tools if params.tools is None else params.tools
    check_size(instructions, tools, "response.instructions")
    audio_format = session.audio.input.format
    entries = (
        conversation.entries() if params.input is None else _entries(params.input, conversation, audio_format)
    )
    keys = tuple(key for entry in entries if (key := _listen(entry, hearing)))
    return Material(
        instructions,
        _usable(tools, session.tool_choice if params.tool_choice is None else params.tool_choice),
        tuple(entry.item for entry in entries),
        keys,
        sum(entry.audio_ms for entry in entries if _is_user(entry.item)),
    )


def question(material: Material, hearing: Hearing, *, text_only: bool) -> Question:
    """The material as lines, with the words heard so far."""
    names = {
        item.call_id: item.name for item in material.items if isinstance(item, FunctionCall) and item.call_id
    }
    lines = tuple(_line(item, hearing, names) for item in material.items)
    tools = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in material.tools)
    return Question(material.instructions, lines, tools, text_only)


def input_characters(material: Material) -> int:
    """Characters of text in the input; audio counts by its length instead."""
    return sum(_characters(item) for item in material.items)


def _usable(tools: list[Tool], choice: object) -> tuple[Tool, ...]:
    if choice == "none":
        return ()
    if isinstance(choice, ToolChoiceFunction):
        chosen = tuple(tool for tool in tools if tool.name == choice.name)
        if not chosen:
            raise Fault("invalid_value", f"There is no tool '{choice.name}'.", "response.tool_choice")
        return chosen
    return tuple(tools)


def _entries(items: list[InputItem], conversation: Conversation, audio_format: AudioFormat) -> list[Entry]:
    known_calls: set[str] = set()
    entries: list[Entry] = []
    for index, item in enumerate(items):
        entry = _entry(item, conversation, audio_format, f"response.input[{index}]")
        if not isinstance(item, ItemReference):  # what is in the conversation was checked when it came
            check_item(item, known_calls, f"response.input[{index}]")
        if isinstance(entry.item, FunctionCall) and entry.item.call_id:
            known_calls.add(entry.item.call_id)
        entries.append(entry)
    return entries


def _entry(item: InputItem, conversation: Conversation, audio_format: AudioFormat, where: str) -> Entry:
    if not isinstance(item, ItemReference):
        return entry_of(item, audio_format)
    found = conversation.find(item.id)
    if found is None:
        raise Fault("invalid_value", f"Item with id '{item.id}' not found.", f"{where}.id")
    return found


def entry_of(item: Item, audio_format: AudioFormat) -> Entry:
    """An item a client gave, with the audio in it set apart."""
    if isinstance(item, Message) and item.role == "user":
        audio = b"".join(part.audio or b"" for part in item.content)
        if audio:
            return Entry(item, audio, audio_format)
    return Entry(item)


def _is_user(item: Item) -> bool:
    return isinstance(item, Message) and item.role == "user"


def _listen(entry: Entry, hearing: Hearing) -> str:
    """The key of the item's audio, or nothing if all its words are there already."""
    item = entry.item
    if not (isinstance(item, Message) and item.role == "user" and entry.audio_format):
        return ""
    if all(part.transcript for part in item.content if part.type == "input_audio"):
        return ""
    key = _key(item)
    if not hearing.knows(key):
        # A client's own audio is heard by ear in scripts too: there it has no words (nothing is loaded).
        hearing.listen(key, entry.audio, entry.audio_format, HearPlan(listen=True), told=False)
    return key


def _key(item: Message) -> str:
    audio = b"".join(part.audio or b"" for part in item.content)
    return audio_key(audio) if audio else item_id(item)


def _line(item: Item, hearing: Hearing, names: dict[str, str]) -> Line:
    if isinstance(item, FunctionCall):
        return Line(Who.CALL, item.arguments, item.name, item_id(item))
    if isinstance(item, FunctionCallOutput):
        return Line(Who.OUTPUT, item.output, names.get(item.call_id, ""), item_id(item))
    words = [part.text or part.transcript or "" for part in item.content]
    if any(part.type == "input_audio" and not part.transcript for part in item.content):
        words.append(hearing.words(_key(item)))
    return Line(Who(item.role), " ".join(word for word in words if word), "", item_id(item))


def _characters(item: Item) -> int:
    if isinstance(item, FunctionCall):
        return len(item.name) + len(item.arguments)
    if isinstance(item, FunctionCallOutput):
        return len(item.output)
    spoken = item.role == "user"
    return sum(len(part.text or ("" if spoken else part.transcript) or "") for part in item.content)
