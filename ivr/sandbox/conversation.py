"""The items of a session's conversation, in order, with the audio behind them."""

from dataclasses import dataclass

import msgspec

from ivr.sandbox.faults import Fault
from ivr.sandbox.pcm import layout
from ivr.sandbox.shapes import AudioFormat, FunctionCall, FunctionCallOutput, Item, Message, Part

ROOT = "root"
"""As `previous_item_id`: before everything."""


@dataclass
class Entry:
    """An item, and its audio if it has any."""

    item: Item
    audio: bytes = b""
    audio_format: AudioFormat | None = None

    @property
    def audio_ms(self) -> float:
        """Duration of the audio."""
        return layout(self.audio_format).ms(len(self.audio)) if self.audio_format is not None else 0.0


def item_id(item: Item) -> str:
    """The id of an item that is in a conversation (it has one by then)."""
    return item.id or ""


class Conversation:
    """Raises `Fault` for what a client gets wrong."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._order: list[str] = []

    def __contains__(self, identity: str) -> bool:
        return identity in self._entries

    @property
    def last_id(self) -> str | None:
        """The id of the newest item."""
        return self._order[-1] if self._order else None

    def entries(self) -> list[Entry]:
        """Everything, oldest first."""
        return [self._entries[identity] for identity in self._order]

    def add(self, entry: Entry, after: str | None = None) -> str | None:
        """Insert an item; returns the id before it. `after` None: at the end, `ROOT`: at the beginning."""
        identity = item_id(entry.item)
        if identity in self._entries:
            raise Fault("invalid_value", f"An item with id '{identity}' exists already.", "item.id")
        position = self._position(after)
        self._order.insert(position, identity)
        self._entries[identity] = entry
        return self._order[position - 1] if position else None

    def get(self, identity: str, action: str) -> Entry:
        """The item a client asks for by `action` (delete, retrieve, truncate)."""
        entry = self._entries.get(identity)
        if entry is None:
            code = f"item_{action}_invalid_item_id"
            raise Fault(code, f"Cannot {action} item '{identity}': it does not exist.", "item_id")
        return entry

    def find(self, identity: str) -> Entry | None:
        """The item, if it exists."""
        return self._entries.get(identity)

    def before(self, identity: str) -> str | None:
        """The id of the item before this one."""
        position = self._order.index(identity)
        return self._order[position - 1] if position else None

    def delete(self, identity: str) -> None:
        """Remove an item."""
        self.get(identity, "delete")
        del self._entries[identity]
        self._order.remove(identity)

    def truncate(self, identity: str, content_index: int, end_ms: int) -> None:
        """Cut an assistant item's audio; its transcript goes, since nobody knows which words were heard."""
        entry = self.get(identity, "truncate")
        item = entry.item
        spoken = isinstance(item, Message) and item.role == "assistant" and entry.audio_format is not None
        if not spoken or end_ms == 0 or content_index != 0:
            raise Fault(
                "unsupported_content_type", "Only audio of the model's messages can be truncated.", "item_id"
            )
        if end_ms > entry.audio_ms:
            message = f"Audio content of {int(entry.audio_ms)}ms is already shorter than {end_ms}ms"
            raise Fault("invalid_value", message, "audio_end_ms")
        assert isinstance(item, Message) and entry.audio_format is not None  # checked above
        entry.audio = entry.audio[: layout(entry.audio_format).size_bytes(end_ms)]
        content = [Part(type="output_audio")]
        entry.item = msgspec.structs.replace(item, content=content, status="incomplete")

    def calls(self) -> set[str]:
        """Ids of the function calls made so far."""
        return {
            entry.item.call_id
            for entry in self._entries.values()
            if isinstance(entry.item, FunctionCall) and entry.item.call_id
        }

    def _position(self, after: str | None) -> int:
        if after is None:
            return len(self._order)
        if after == ROOT:
            return 0
        if after not in self._entries:
            message = f"Cannot insert after item '{after}': it does not exist."
            raise Fault("item_create_invalid_previous_item_id", message, "previous_item_id")
        return self._order.index(after) + 1


_ROLE_PARTS = {
    "system": {"input_text"},
    "user": {"input_text", "input_audio"},
    "assistant": {"output_text", "output_audio"},
}


def check_item(item: Item, known_calls: set[str], param: str) -> None:
    """Refuse parts that do not fit the role, audio of the assistant, and outputs of unknown calls."""
    if isinstance(item, FunctionCallOutput):
        if item.call_id not in known_calls:
            message = f"Tool call ID '{item.call_id}' not found in conversation."
            raise Fault("invalid_tool_call_id", message, f"{param}.call_id")
        return
    if not isinstance(item, Message):
        return
    for index, part in enumerate(item.content):
        where = f"{param}.content[{index}]"
        if part.type not in _ROLE_PARTS[item.role]:
            allowed = " or ".join(sorted(_ROLE_PARTS[item.role]))
            raise Fault("invalid_value", f"A {item.role} message takes {allowed}.", f"{where}.type")
        if part.type == "output_audio" and part.audio:
            raise Fault("invalid_value", "The model's audio cannot be put back.", f"{where}.audio")
        if part.type == "input_audio" and part.audio is None:
            raise Fault(
                "missing_required_parameter",
                f"Missing required parameter: '{where}.audio'.",
                f"{where}.audio",
            )
        if part.type.endswith("_text") and part.text is None:
            raise Fault(
                "missing_required_parameter", f"Missing required parameter: '{where}.text'.", f"{where}.text"
            )


def without_audio(item: Item) -> Item:
    """The item as events show it: audio is given back by `conversation.item.retrieve` only."""
    if not isinstance(item, Message):
        return item
    content = [msgspec.structs.replace(part, audio=None) for part in item.content]
    return msgspec.structs.replace(item, content=content)
