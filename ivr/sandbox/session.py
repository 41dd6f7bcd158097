"""A Realtime session without any I/O: client messages, words, audio and time go in; effects come out."""

from collections.abc import Callable
from typing import Any

import msgspec

from ivr.sandbox.asking import entry_of
from ivr.sandbox.brain import Brain, HearPlan
from ivr.sandbox.buffer import InputBuffer, Turn
from ivr.sandbox.changes import changed
from ivr.sandbox.conversation import Conversation, Entry, check_item, item_id, without_audio
from ivr.sandbox.early import EarlyWords
from ivr.sandbox.events import (
    Cleared,
    Committed,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    SessionCreated,
    SessionUpdated,
    SpeechStarted,
    SpeechStopped,
)
from ivr.sandbox.faults import Fault
from ivr.sandbox.hearing import Hearing
from ivr.sandbox.outbox import Close, Effect, Outbox
from ivr.sandbox.requests import (
    AnyRequest,
    Append,
    Clear,
    Commit,
    ItemCreate,
    ItemDelete,
    ItemRetrieve,
    ItemTruncate,
    ResponseCancel,
    ResponseCreate,
    ResponseParams,
    SessionUpdate,
    decode,
)
from ivr.sandbox.responder import Responder
from ivr.sandbox.shapes import FunctionCall, Message, Part, SessionObject
from ivr.sandbox.vad import Started

MIN_COMMIT_MS = 100
"""Least audio that makes a turn."""


class Session:
    """Every method takes the time (`now_ms`, any steady clock) and returns what is to be done, in order.

    `salt` makes ids unique; `epoch_s` is the wall-clock time of the start, for `expires_at`.
    """

    def __init__(self, brain: Brain, *, model: str, salt: str, now_ms: float, epoch_s: float) -> None:
        self._outbox = Outbox(salt)
        self._outbox.now_ms = now_ms
        self._brain = brain
        lifetime_ms = brain.manners.lifetime_ms
        self._session = SessionObject(
            id=self._outbox.new_id("sess"), model=model, expires_at=int(epoch_s + lifetime_ms / 1_000)
        )
        self._conversation = Conversation()
        self._hearing = Hearing(self._outbox)
        self._responder = Responder(
            self._outbox, brain, self._conversation, self._hearing, lambda: self._session
        )
        audio = self._session.audio.input
        self._buffer = InputBuffer(audio.format, audio.turn_detection)
        self._turn_id = ""
        self._early = EarlyWords(self._outbox, brain.manners.partials_ms)
        self._plan: HearPlan | None = None
        """Of the speech going on, where its words are told early."""
        self._outbox.send(SessionCreated(session=self._session))
        self._outbox.later(lifetime_ms, self._expire)
        self._handlers: dict[type, Callable[[Any], None]] = {
            SessionUpdate: self._update,
            Append: self._append,
            Commit: self._commit,
            Clear: self._clear,
            ItemCreate: self._create_item,
            ItemDelete: self._delete_item,
            ItemRetrieve: self._retrieve_item,
            ItemTruncate: self._truncate_item,
            ResponseCreate: self._create_response,
            ResponseCancel: self._cancel_response,
        }

    def start(self) -> list[Effect]:
        """What a new session says first."""
        return self._outbox.take()

    def receive(self, raw: str | bytes, now_ms: float) -> list[Effect]:
        """A message from the client. Bad ones are answered by an `error` event."""
        self._outbox.now_ms = now_ms
        request = decode(raw)
        if isinstance(request, Fault):
            self._outbox.fault(request)
        else:
            self._handle(request)
        return self._outbox.take()

    def heard(self, key: str, text: str | None, now_ms: float) -> list[Effect]:
        """The answer to `Listen`; None: no words could be found."""
        self._outbox.now_ms = now_ms
        if not self._early.heard(key, text):
            self._hearing.heard(key, text)
        return self._outbox.take()

    def spoken(self, response_id: str, pcm24k: bytes | None, now_ms: float) -> list[Effect]:
        """The answer to `Speak`; None: it failed."""
        self._outbox.now_ms = now_ms
        self._responder.spoken(response_id, pcm24k)
        return self._outbox.take()

    def tick(self, now_ms: float) -> list[Effect]:
        """Time passed: one round of what was due."""
        self._outbox.now_ms = now_ms
        self._outbox.run_due()
        return self._outbox.take()

    def next_due_ms(self) -> float | None:
        """When `tick` is to be called next."""
        return self._outbox.next_due_ms()

    # -- requests ------------------------------------------------------------------------------------------

    def _handle(self, request: AnyRequest) -> None:
        try:
            self._handlers[type(request)](request)
        except Fault as fault:
            self._outbox.fault(fault, request.event_id)

    def _update(self, request: SessionUpdate) -> None:
        manners = self._brain.manners
        if manners.refuse_update:
            raise Fault("invalid_value", "The script refuses session.update.", "session")
        if manners.before_ready_ms:
            self._outbox.later(manners.before_ready_ms, lambda: self._update_late(request))
        else:
            self._apply(request)

    def _update_late(self, request: SessionUpdate) -> None:
        try:
            self._apply(request)
        except Fault as fault:
            self._outbox.fault(fault, request.event_id)

    def _apply(self, request: SessionUpdate) -> None:
        before = self._session.audio.input
        self._session = changed(
            self._session,
            request.session,
            has_spoken=self._responder.has_spoken,
            speaking=self._responder.speaking,
        )
        after = self._session.audio.input
        if after.format != before.format:
            self._buffer.reformat(after.format)
        if after.turn_detection != before.turn_detection:
            self._buffer.detect(after.turn_detection)
        self._outbox.send(SessionUpdated(session=self._session))

    def _append(self, request: Append) -> None:
        detection = self._session.audio.input.turn_detection
        for found in self._buffer.append(request.audio):
            if isinstance(found, Started):
                self._turn_id = self._outbox.new_id("item")
                self._outbox.send(SpeechStarted(audio_start_ms=found.audio_start_ms, item_id=self._turn_id))
                self._listen_early()
                if detection is not None and detection.interrupt_response:
                    self._responder.interrupt()
            else:
                self._end_turn(found)
        self._early.grew(self._buffer, self._session.audio.input.format)

    def _listen_early(self) -> None:
        if self._early.on and self._session.audio.input.transcription is not None:
            self._plan = self._brain.hear(self._turn_id)
            self._early.began(self._turn_id, self._plan)

    def _end_turn(self, turn: Turn) -> None:
        self._outbox.send(SpeechStopped(audio_end_ms=turn.stopped.audio_end_ms, item_id=self._turn_id))
        self._commit_audio(self._turn_id, turn.audio)
        detection = self._session.audio.input.turn_detection
        if detection is not None and detection.create_response:
            self._respond_by_itself()

    def _respond_by_itself(self) -> None:
        """Turn detection asks for a reply; while one is active (not interrupted) it does not."""
        try:
            self._responder.create(ResponseParams())
        except Fault as fault:
            self._outbox.fault(fault)

    def _commit(self, request: Commit) -> None:
        pending_ms = self._buffer.pending_ms
        if pending_ms < MIN_COMMIT_MS:
            message = (
                f"The input audio buffer holds {pending_ms:.0f}ms of audio; a turn needs {MIN_COMMIT_MS}ms."
            )
            raise Fault("input_audio_buffer_commit_empty", message)
        identity = self._turn_id if self._buffer.speaking else self._outbox.new_id("item")
        self._commit_audio(identity, self._buffer.take())

    def _commit_audio(self, identity: str, audio: bytes) -> None:
        settings = self._session.audio.input
        content = [Part(type="input_audio")]
        message = Message(role="user", content=content, id=identity)
        previous = self._conversation.add(Entry(message, audio, settings.format))
        self._outbox.send(
            Committed(item_id=identity, previous_item_id=previous),
            ItemAdded(item=message, previous_item_id=previous),
            ItemDone(item=message, previous_item_id=previous),
        )
        told = settings.transcription is not None
        early, plan = self._early.ended(), self._plan
        self._plan = None
        if plan is None:
            early, plan = "", self._brain.hear(identity)
        self._hearing.listen(identity, audio, settings.format, plan, told=told, early=early)

    def _clear(self, request: Clear) -> None:
        self._buffer.clear()
        self._outbox.send(Cleared())

    def _create_item(self, request: ItemCreate) -> None:
        check_item(request.item, self._conversation.calls(), "item")
        identity = request.item.id or self._outbox.new_id("item")
        item = msgspec.structs.replace(request.item, id=identity)
        if isinstance(item, FunctionCall) and not item.call_id:
            item.call_id = self._outbox.new_id("call")
        entry = entry_of(item, self._session.audio.input.format)
        entry.item = without_audio(item)
        previous = self._conversation.add(entry, request.previous_item_id)
        self._outbox.send(
            ItemAdded(item=entry.item, previous_item_id=previous),
            ItemDone(item=entry.item, previous_item_id=previous),
        )

    def _delete_item(self, request: ItemDelete) -> None:
        self._conversation.delete(request.item_id)
        self._hearing.forget(request.item_id)
        self._outbox.send(ItemDeleted(item_id=request.item_id))

    def _retrieve_item(self, request: ItemRetrieve) -> None:
        entry = self._conversation.get(request.item_id, "retrieve")
        item = entry.item
        if isinstance(item, Message) and entry.audio:
            words = self._hearing.words(item_id(item)) or item.content[0].transcript
            part = msgspec.structs.replace(item.content[0], audio=entry.audio, transcript=words)
            item = msgspec.structs.replace(item, content=[part, *item.content[1:]])
        self._outbox.send(ItemRetrieved(item=item))

    def _truncate_item(self, request: ItemTruncate) -> None:
        self._conversation.truncate(request.item_id, request.content_index, request.audio_end_ms)
        self._outbox.send(
            ItemTruncated(
                item_id=request.item_id,
                content_index=request.content_index,
                audio_end_ms=request.audio_end_ms,
            )
        )

    def _create_response(self, request: ResponseCreate) -> None:
        self._responder.create(request.response)

    def _cancel_response(self, request: ResponseCancel) -> None:
        self._responder.cancel(request.response_id)

    def _expire(self) -> None:
        self._outbox.fault(Fault("session_expired", "The session has reached its maximum duration."))
        self._outbox.do(Close(1001, "session expired"))
