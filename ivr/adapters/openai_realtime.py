"""`ModelLink` for OpenAI Realtime (GA) and servers compatible with it."""

import asyncio
import ssl
import time
from collections.abc import AsyncIterator

import structlog
from openai import AsyncOpenAI

from ivr.adapters.openai_early import EarlyWords
from ivr.adapters.openai_outbox import Outbox
from ivr.adapters.openai_probe import OutOfBandProbe
from ivr.adapters.openai_socket import RealtimeSocket, SocketClosed, address, connect, connection_options
from ivr.core.commands import (
    CancelReply,
    ForgetItem,
    ModelCommand,
    SessionConfig,
    StartReply,
    UpdateSession,
)
from ivr.core.events import SESSION_MS, ModelEvent, ModelLost, ModelReady, ReplyDone, ReplyPcm
from ivr.errors import InternalError, ModelUnavailable, ModelUnsuitable
from ivr.wire.realtime import NOTHING, Outcome, Replies, SessionSettings
from ivr.wire.realtime_in import (
    CallerEvent,
    ErrorEvent,
    Ignored,
    ReplyEvent,
    ServerEvent,
    Session,
    SessionCreated,
    SessionUpdated,
    Unreadable,
)
from ivr.wire.realtime_out import ModelProfile, encode_append, encode_delete

OPEN_TIMEOUT_S = 10.0
OPENAI_URL = "wss://api.openai.com/v1"
_EXPIRED = "session_expired"

log = structlog.get_logger()


def lifetime_ms(expires_at: float | None, now_s: float) -> float:
    """How long a session lasts that ends at `expires_at` (Unix time, s), by our own clock, which may be wrong.

    What cannot be true is left out: a session that is over already, or lasts longer than any does.
    """
    left_ms = SESSION_MS if expires_at is None else (expires_at - now_s) * 1_000
    return left_ms if 0 < left_ms < SESSION_MS else SESSION_MS


class RealtimeServer:
    """A speech model's address and names; makes a new link for each session. One per process.

    `url` is the WebSocket base of a compatible server (`/realtime?model=…` is added); None is OpenAI's own,
    or what `base_url` (an HTTP base) implies. `api_key` may be None for a server that asks for none. An empty
    `transcribe_model` leaves the caller's words untranscribed; `reasoning_effort` goes to models that reason.
    """

    def __init__(
        self,
        url: str | None,
        api_key: str | None,
        base_url: str | None,
        model: str,
        transcribe_model: str,
        reasoning_effort: str = "minimal",
        *,
        open_timeout_s: float = OPEN_TIMEOUT_S,
    ) -> None:
        self.profile = ModelProfile(model, transcribe_model, reasoning_effort)
        self.probe = OutOfBandProbe()
        self.early_words = EarlyWords()
        self.open_timeout_s = open_timeout_s
        target = url or base_url or OPENAI_URL
        self.shown = address(target)
        """The address as messages name it: no secret in it."""
        # The SDK wants some key even where none is asked for. Making a client costs 130 ms and a TLS context
        # 60 ms: once, never while a call waits.
        self._client = AsyncOpenAI(api_key=api_key or "none", base_url=base_url, websocket_base_url=url)
        secure = target.startswith(("wss:", "https:"))
        self._options = connection_options(target, ssl.create_default_context() if secure else None)

    def link(self, model: str | None = None, transcribe_model: str | None = None) -> "OpenAIRealtimeLink":
        """A link for one session, not yet open; with models of its own if they are named."""
        profile = ModelProfile(
            model or self.profile.model,
            transcribe_model or self.profile.transcribe_model,
            self.profile.reasoning_effort,
        )
        return OpenAIRealtimeLink(self, profile)

    async def connect(self, model: str) -> RealtimeSocket:
        """Open a connection. Raises: `ModelUnavailable`, `ModelUnsuitable`."""
        return await connect(self._client, model, self.shown, self._options)

    async def close(self) -> None:
        """Give the client's resources back; links in use are not touched."""
        await self._client.close()


class OpenAIRealtimeLink:
    """One session. See `ivr.ports.ModelLink`.

    Audio given to `hear` before the settings are confirmed waits (5 s at most, the oldest goes first):
    appended earlier it would be read in the wrong format. `events` has one consumer and reads the socket
    itself: one that waits holds the server back. After `ModelLost` the owner still calls `close`.
    """

    def __init__(self, server: RealtimeServer, profile: ModelProfile) -> None:
        self._server = server
        self._profile = profile
        self._outbox = Outbox()
        self._replies = Replies()
        self._settings = SessionSettings(profile)
        self._socket: RealtimeSocket | None = None
        self._writer: asyncio.Task[None] | None = None
        self._ready = ModelReady("")
        self._speaking = ""
        """The item that the caller is speaking."""
        self._closing = False

    async def open(self, config: SessionConfig) -> None:
        """Connect, send the settings, wait for their confirmation; probe the server if it is new.

        Raises: `ModelUnavailable` (try again), `ModelUnsuitable` (no use trying). Nothing stays open then.
        """
        shown = self._server.shown
        try:
            async with asyncio.timeout(self._server.open_timeout_s):
                self._socket = await self._server.connect(self._profile.model)
                await self._settle(self._socket, config)
        except TimeoutError as late:
            await self.close()
            raise ModelUnavailable(f"{shown}: no session within {self._server.open_timeout_s:g} s") from late
        except SocketClosed as closed:
            await self.close()
            kind = ModelUnsuitable if closed.permanent else ModelUnavailable
            raise kind(f"{shown}: {closed.reason} while opening") from closed
        except BaseException:
            await self.close()
            raise
        if self._closing:
            await self.close()
            raise ModelUnavailable(f"{shown}: closed by us while opening")
        self._writer = asyncio.create_task(self._write(self._socket), name="model-writer")

    async def events(self) -> AsyncIterator[ModelEvent | ReplyPcm]:
        """`ModelReady`, then all that the model says; `ModelLost` last, unless `close` was called."""
        if self._socket is None:
            raise InternalError("events() before open()")
        yield self._ready
        lost = False
        while not lost:
            outcome = await self._next(self._socket)
            for message in outcome.send:
                self._outbox.put_command(message)
            for event in outcome.events:
                yield event
            lost = outcome.over
        # What is queued is old: nothing of it may reach a later session.
        self._outbox.close()

    def hear(self, pcm24k: bytes) -> None:
        """Append PCM16 24 kHz to the model's input; never blocks."""
        if not pcm24k:
            return
        message = encode_append(pcm24k)
        # Nearly always nothing waits: then the writer need not be woken for each frame.
        if not (self._outbox.is_idle and self._socket is not None and self._socket.send_at_once(message)):
            self._outbox.put_audio(message)

    def send(self, command: ModelCommand) -> None:
        """Queue a command (all but `Hear`); never blocks, and is lost without error when the session is."""
        for message in self._encode(command):
            self._outbox.put_command(message)

    async def close(self) -> None:
        """End the session and our writer, within 2 s. Idempotent."""
        self._closing = True
        self._outbox.close()
        if self._outbox.dropped_audio:
            log.warning("model_audio_dropped", messages=self._outbox.dropped_audio)
            self._outbox.dropped_audio = 0
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait([self._writer])
        if self._socket is not None:
            await self._socket.close()

    async def _settle(self, socket: RealtimeSocket, config: SessionConfig) -> None:
        created = await self._await_session(socket, SessionCreated)
        self._ready = ModelReady(created.id or "", lifetime_ms(created.expires_at, time.time()))
        await socket.send(self._settings.update(config, busy=False))
        confirmed = await self._await_session(socket, SessionUpdated)
        fault = confirmed.fault()
        if fault:
            raise ModelUnsuitable(f"{self._server.shown}: {fault}")
        await self._server.probe.check(socket, self._server.shown)

    async def _await_session(
        self, socket: RealtimeSocket, kind: type[SessionCreated] | type[SessionUpdated]
    ) -> Session:
        while True:
            event = await socket.receive()
            if isinstance(event, kind):
                return event.session
            if isinstance(event, ErrorEvent):
                raise self._refusal(event)
            if isinstance(event, Unreadable):
                log.warning("model_event_unreadable", reason=event.reason)

    def _refusal(self, event: ErrorEvent) -> ModelUnavailable | ModelUnsuitable:
        error = event.error
        kind = ModelUnavailable if error.passing else ModelUnsuitable
        # One line whatever the server wrote; the settings themselves are not in it.
        message = " ".join((error.message or "").split())[:200]
        return kind(f"{self._server.shown}: settings refused, {error.name}: {message}")

    async def _next(self, socket: RealtimeSocket) -> Outcome:
        try:
            return self._digest(await socket.receive())
        except SocketClosed as closed:
            lost = () if self._closing else (ModelLost(closed.reason, closed.permanent),)
            return Outcome(lost, over=True)

    def _digest(self, event: ServerEvent | Ignored | Unreadable) -> Outcome:
        match event:
            case Unreadable(reason):
                log.warning("model_event_unreadable", reason=reason)
                return NOTHING
            case ErrorEvent(error):
                if error.name == _EXPIRED:
                    return Outcome((ModelLost(_EXPIRED),), over=True)
                return self._after_reply(self._replies.refused(event))
        if isinstance(event, ReplyEvent):
            return self._after_reply(self._replies.receive(event))
        if isinstance(event, CallerEvent):
            told = event.core()
            self._speaking = self._server.early_words.note(self._speaking, told)
            return Outcome((told,))
        return NOTHING

    def _after_reply(self, outcome: Outcome) -> Outcome:
        """Once the last reply is made, send the speed that had to wait for it."""
        ended = any(isinstance(event, ReplyDone) for event in outcome.events)
        if not ended or self._replies.busy:
            return outcome
        return Outcome(outcome.events, (*outcome.send, *self._settings.at_rest()))

    def _encode(self, command: ModelCommand) -> tuple[bytes, ...]:
        match command:
            case StartReply():
                self._settings.reply_asked()
                return (self._replies.start(command),)
            case CancelReply(reply_id):
                return self._replies.cancel(reply_id)
            case UpdateSession(config):
                return (self._settings.update(config, busy=self._replies.busy),)
            case ForgetItem(item_id):
                return (encode_delete(item_id),)
        raise InternalError(f"{type(command).__name__} is not sent but heard")

    async def _write(self, socket: RealtimeSocket) -> None:
        try:
            while True:
                await socket.send(await self._outbox.take())
        except SocketClosed:
            # The reader meets the same end and reports it.
            self._outbox.close()
        except Exception:  # the task's border: the reader goes on, and pings will tell
            log.exception("model_writer_failed")
