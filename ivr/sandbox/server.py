"""The socket around `Session`: WebSocket messages in, effects out."""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec
import structlog
from websockets.asyncio.server import Server, ServerConnection
from websockets.asyncio.server import serve as serve_websocket
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from ivr.sandbox.brain import Brain
from ivr.sandbox.events import RawEvent
from ivr.sandbox.outbox import Abort, Close, Effect, Listen, Send, Speak
from ivr.sandbox.script import Script, load_script
from ivr.sandbox.scripted import Stage
from ivr.sandbox.session import Session
from ivr.sandbox.speech import NoSpeech, SpeechWorker
from ivr.sandbox.thinker import Thinker
from ivr.sandbox.worker import WorkerFailed

MAX_MESSAGE_BYTES = 24 * 1024 * 1024
"""15 MiB of audio is 20 MiB of base64."""
DEFAULT_MODEL = "sandbox"
NOTICE = "the offline sandbox: not a language model"

log = structlog.get_logger()


class Speech(Protocol):
    """What hears and speaks for a session."""

    async def speak(self, text: str, voice: str, speed: float) -> bytes:
        """PCM16 24 kHz."""
        ...

    async def hear(self, pcm: bytes, rate_hz: int) -> str:
        """The words."""
        ...


class Cast(Protocol):
    """Who answers, and whose connections are not taken."""

    def next_connection(self) -> str:
        """`accept`, `refuse` (HTTP 503) or `abort` (TCP) for the connection that is being made."""
        ...

    def brain(self) -> Brain:
        """A brain for a new session."""
        ...


class Connection:
    """One client: a reader, a timer and as many pieces of hearing and speaking as there are. All end with it."""

    def __init__(self, socket: ServerConnection, session: Session, speech: Speech) -> None:
        self._socket = socket
        self._session = session
        self._speech = speech
        self._encoder = msgspec.json.Encoder()
        self._outgoing: asyncio.Queue[Send | Close | Abort] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._tasks = asyncio.TaskGroup()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until either side closes."""
        try:
            async with self._tasks:
                self._start(self._write())
                self._start(self._keep_time())
                self._carry_out(self._session.start())
                await self._read()
                for task in self._running:
                    task.cancel()
        except* ConnectionClosed:
            pass

    async def _read(self) -> None:
        async for message in self._socket:
            self._carry_out(self._session.receive(message, now_ms()))

    async def _write(self) -> None:
        while True:
            effect = await self._outgoing.get()
            if isinstance(effect, Abort):
                self._socket.transport.abort()
            elif isinstance(effect, Close):
                await self._socket.close(effect.code, effect.reason)
            elif isinstance(effect.event, RawEvent):
                await self._socket.send(effect.event.text)
            else:
                await self._socket.send(self._encoder.encode(effect.event), text=True)

    async def _keep_time(self) -> None:
        while True:
            due_ms = self._session.next_due_ms()
            wait_s = None if due_ms is None else max(0.0, (due_ms - now_ms()) / 1_000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._changed.wait()
            self._carry_out(self._session.tick(now_ms()))
            self._changed.clear()  # what has changed until here is in the next due time
            await asyncio.sleep(
                0
            )  # a reply's steps are due at once: let reader and other sessions in between

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Listen):
                self._start(self._listen(effect))
            elif isinstance(effect, Speak):
                self._start(self._speak(effect))
            else:
                self._outgoing.put_nowait(effect)
        self._changed.set()

    async def _listen(self, job: Listen) -> None:
        words: str | None = None
        try:
            words = await self._speech.hear(job.pcm, job.rate_hz)
        except WorkerFailed as error:
            log.warning("sandbox_ear_failed", fault=str(error))
        self._carry_out(self._session.heard(job.key, words, now_ms()))

    async def _speak(self, job: Speak) -> None:
        pcm24k: bytes | None = None
        try:
            pcm24k = await self._speech.speak(job.text, job.voice, job.speed)
        except WorkerFailed as error:
            log.warning("sandbox_voice_failed", fault=str(error))
        self._carry_out(self._session.spoken(job.response_id, pcm24k, now_ms()))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


class Sandbox:
    """The server: a session for each connection, one ear and one voice for all."""

    def __init__(self, speech: Speech, stage: Cast | None, partials_ms: float = 0) -> None:
        self._speech = speech
        self._partials_ms = partials_ms
        self._stage = stage

    def admit(self, connection: ServerConnection, request: Request) -> Response | None:
        """Refuse a handshake that OpenAI would refuse, or that the script says to."""
        if not urlsplit(request.path).path.endswith("/realtime"):
            return connection.respond(HTTPStatus.NOT_FOUND, "The path is /v1/realtime.\n")
        if not request.headers.get("Authorization", "").startswith("Bearer "):
            return connection.respond(HTTPStatus.UNAUTHORIZED, "A bearer key is missing; any will do.\n")
        plan = self._stage.next_connection() if self._stage is not None else "accept"
        if plan == "abort":
            connection.transport.abort()
        if plan == "accept":
            return None
        return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "The script refuses this connection.\n")

    async def handle(self, socket: ServerConnection) -> None:
        """One client, from handshake to end."""
        request = socket.request
        if request is None:
            return
        if "OpenAI-Beta" in request.headers:
            await socket.close(4000, "beta_api_shape_disabled")
            return
        named = parse_qs(urlsplit(request.path).query).get("model", [DEFAULT_MODEL])[0]
        brain: Brain = self._stage.brain() if self._stage is not None else Thinker(self._partials_ms)
        session = Session(
            brain,
            model=shown_model(named),
            salt=secrets.token_hex(6),
            now_ms=now_ms(),
            epoch_s=time.time(),
        )
        await Connection(socket, session, self._speech).run()


def shown_model(named: str) -> str:
    """What the session calls its model: always `sandbox…`, so that nobody takes it for the one that was asked for."""
    return named if named.startswith(DEFAULT_MODEL) else f"{DEFAULT_MODEL}/{named}"


def _websocket_log() -> logging.Logger:
    """The library's own messages, but for the traceback about each client that connects only to see who is there."""
    logger = logging.getLogger("ivr.sandbox.websocket")
    logger.addFilter(_is_no_probe)
    return logger


def _is_no_probe(record: logging.LogRecord) -> bool:
    return record.getMessage() != "opening handshake failed"


def now_ms() -> float:
    """Monotonic time in ms."""
    return time.monotonic() * 1_000


@contextlib.asynccontextmanager
async def running(
    host: str, port: int, *, script: Path | None = None, partials_ms: float = 0
) -> AsyncIterator[int]:
    """The sandbox, warm and listening, inside the block. Yields the port (useful when asked for port 0).

    `partials_ms`: without a script, words are told while the user speaks, each so many ms (0: not).

    Raises: `SandboxMissing`, `WorkerFailed`, `ScriptError`, OSError (address in use).
    """
    rules: Script | None = load_script(script) if script is not None else None
    async with AsyncExitStack() as stack:
        speech = NoSpeech() if rules is not None else await stack.enter_async_context(SpeechWorker())
        sandbox = Sandbox(speech, Stage(rules) if rules is not None else None, partials_ms)
        server: Server = await stack.enter_async_context(
            serve_websocket(
                sandbox.handle,
                host,
                port,
                process_request=sandbox.admit,
                compression=None,
                max_size=MAX_MESSAGE_BYTES,
                logger=_websocket_log(),
            )
        )
        bound: int = next(iter(server.sockets)).getsockname()[1]
        log.info("sandbox_ready", notice=NOTICE, host=host, port=bound, scripted=rules is not None)
        yield bound


async def serve(
    host: str,
    port: int,
    *,
    script: Path | None = None,
    partials_ms: float = 0,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Run the sandbox until cancelled. `ready` is told the port once it is warm and listening."""
    async with running(host, port, script=script, partials_ms=partials_ms) as bound:
        if ready is not None:
            ready(bound)
        await asyncio.Event().wait()
