"""One response as a sequence of events, sent step by step so that it can be stopped between any two."""

from collections.abc import Callable, Iterator
from typing import TypedDict

import msgspec

from ivr.sandbox.brain import Call
from ivr.sandbox.events import (
    ArgumentsDelta,
    ArgumentsDone,
    AudioDelta,
    AudioDone,
    AudioTranscriptDelta,
    AudioTranscriptDone,
    ContentPart,
    Event,
    OutputItemAdded,
    OutputItemDone,
    PartAdded,
    PartDone,
    ResponseObject,
    TextDelta,
    TextDone,
)
from ivr.sandbox.pcm import Layout
from ivr.sandbox.shapes import FunctionCall, Message, Part, Status

CHUNK_MS = 200


class _Where(TypedDict):
    """The fields that place an event in a response."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int


class Reply:
    """Steps: the message begins, a chunk each, the message ends, each call, then `finished`.

    `sent_audio` is what was sent so far, in the response's format.
    """

    def __init__(self, response: ResponseObject, layout: Layout, new_id: Callable[[str], str]) -> None:
        self.response = response
        self.finished = False
        self.sent_audio = bytearray()
        self.sent_text = ""
        self.call_text = ""
        self._layout = layout
        self._new_id = new_id
        self._message_id: str | None = None
        self._as_text = False
        self._steps: Iterator[list[Event]] = iter(())

    @property
    def sent_audio_ms(self) -> float:
        """Duration of what was sent so far."""
        return self._layout.ms(len(self.sent_audio))

    def begin(self, text: str, audio: bytes | None, calls: tuple[Call, ...]) -> None:
        """Lay out what is to be sent. `audio` None: the words go as text."""
        self._steps = self._plan(text, audio, calls)

    def step(self) -> list[Event]:
        """The next events; sets `finished` with the last of them."""
        events = next(self._steps, None)
        if events is None:
            self.finished = True
            return []
        return events

    def stop(self) -> list[Event]:
        """End what is open, as a response does that is cancelled or fails."""
        self.finished = True
        self._steps = iter(())
        return self._close_message("incomplete") if self._message_id is not None else []

    def _plan(self, text: str, audio: bytes | None, calls: tuple[Call, ...]) -> Iterator[list[Event]]:
        if text or audio:
            yield self._open_message(as_text=audio is None)
            yield from self._text_steps(text) if audio is None else self._audio_steps(text, audio)
            yield self._close_message("completed")
        for call in calls:
            yield self._call_events(call)

    def _open_message(self, *, as_text: bool) -> list[Event]:
        self._as_text = as_text
        self._message_id = self._new_id("item")
        message = Message(role="assistant", content=[], id=self._message_id, status="in_progress")
        part = ContentPart(type="text", text="") if as_text else ContentPart(type="audio", transcript="")
        added = OutputItemAdded(response_id=self.response.id, output_index=self._index, item=message)
        return [added, PartAdded(**self._where(), part=part)]

    def _text_steps(self, text: str) -> Iterator[list[Event]]:
        for word in text.split(" "):
            delta = f" {word}" if self.sent_text else word
            self.sent_text += delta
            yield [TextDelta(**self._where(), delta=delta)]

    def _audio_steps(self, text: str, audio: bytes) -> Iterator[list[Event]]:
        """Words run a little ahead of their audio, spread over it by count."""
        chunk_bytes = self._layout.size_bytes(CHUNK_MS)
        chunks = [audio[at : at + chunk_bytes] for at in range(0, len(audio), chunk_bytes)] or [b""]
        words = text.split()
        for number, chunk in enumerate(chunks, start=1):
            said = " ".join(words[: -(-len(words) * number // len(chunks))])
            delta, self.sent_text = said[len(self.sent_text) :], said
            self.sent_audio += chunk
            events: list[Event] = [AudioTranscriptDelta(**self._where(), delta=delta)] if delta else []
            yield [*events, AudioDelta(**self._where(), delta=chunk)] if chunk else events

    def _close_message(self, status: Status) -> list[Event]:
        where = self._where()
        text = self.sent_text
        if self._as_text:
            done: list[Event] = [TextDone(**where, text=text)]
            part, content = ContentPart(type="text", text=text), Part(type="output_text", text=text)
        else:
            done = [AudioDone(**where), AudioTranscriptDone(**where, transcript=text)]
            part = ContentPart(type="audio", transcript=text)
            content = Part(type="output_audio", transcript=text)
        message = Message(role="assistant", content=[content], id=self._message_id, status=status)
        finished = OutputItemDone(response_id=self.response.id, output_index=self._index, item=message)
        self.response.output.append(message)
        self._message_id = None
        return [*done, PartDone(**where, part=part), finished]

    def _call_events(self, call: Call) -> list[Event]:
        self.call_text += call.name + call.arguments
        call_id, identity = self._new_id("call"), self._new_id("item")
        begun = FunctionCall(name=call.name, arguments="", call_id=call_id, id=identity, status="in_progress")
        complete = msgspec.structs.replace(begun, arguments=call.arguments, status="completed")
        response_id, index = self.response.id, self._index
        self.response.output.append(complete)
        return [
            OutputItemAdded(response_id=response_id, output_index=index, item=begun),
            ArgumentsDelta(
                response_id=response_id,
                item_id=identity,
                output_index=index,
                call_id=call_id,
                delta=call.arguments,
            ),
            ArgumentsDone(
                response_id=response_id,
                item_id=identity,
                output_index=index,
                call_id=call_id,
                name=call.name,
                arguments=call.arguments,
            ),
            OutputItemDone(response_id=response_id, output_index=index, item=complete),
        ]

    @property
    def _index(self) -> int:
        return len(self.response.output)

    def _where(self) -> _Where:
        return _Where(
            response_id=self.response.id,
            item_id=self._message_id or "",
            output_index=self._index,
            content_index=0,
        )
