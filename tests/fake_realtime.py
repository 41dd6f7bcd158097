"""A scripted Realtime server over real sockets: settles sessions by itself, leaves every reply to the test.

It holds its peer to the GA protocol: no beta header, text frames, no field that the SDK's types do not name.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self

from openai import BaseModel
from openai.types.realtime import (
    ConversationItemDeleteEvent,
    InputAudioBufferAppendEvent,
    ResponseCancelEvent,
    ResponseCreateEvent,
    SessionUpdateEvent,
)
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request
from websockets.http11 import Response as HttpResponse

Json = dict[str, Any]
SESSION_ID = "sess_fake"

_CLIENT_EVENTS: dict[str, type[BaseModel]] = {
    "session.update": SessionUpdateEvent,
    "input_audio_buffer.append": InputAudioBufferAppendEvent,
    "response.create": ResponseCreateEvent,
    "response.cancel": ResponseCancelEvent,
    "conversation.item.delete": ConversationItemDeleteEvent,
}


def check_client_event(message: Json) -> None:
    """Hold a client message to the SDK's type for it. Raises: `ValueError` for what that does not name."""
    message = json.loads(json.dumps(message))
    response = message.get("response", {})
    # The SDK's class leaves references out of `input`; the protocol has them.
    items = response.get("input", [])
    references = [item for item in items if item["type"] == "item_reference"]
    if any(item.keys() != {"type", "id"} for item in references):
        raise ValueError("item_reference")
    if "input" in response:
        response["input"] = [item for item in items if item["type"] != "item_reference"]
    model = _CLIENT_EVENTS[message["type"]].model_validate(message)
    unknown = _extras(model, message["type"])
    if unknown:
        raise ValueError(f"unknown fields: {unknown}")


def _extras(value: object, path: str) -> list[str]:
    if isinstance(value, BaseModel):
        found = [f"{path}.{name}" for name in value.model_extra or {}]
        return found + [
            e for name in type(value).model_fields for e in _extras(getattr(value, name), f"{path}.{name}")
        ]
    if isinstance(value, list):
        return [e for item in value for e in _extras(item, path)]
    return []


@dataclass
class Script:
    """How the server settles a session. Functions take what the client sent and return the answer."""

    statuses: list[int] = field(default_factory=list)
    """HTTP statuses that refuse the first handshakes."""
    greets: bool = True
    echo: Callable[[Json], Json] = lambda session: session
    """The session that `session.updated` shows."""
    update_error: Json | None = None
    close_on_update: tuple[int, str] | None = None
    may_update: asyncio.Event | None = None
    """Hold `session.updated` back until it is set."""
    probe: Callable[[Json], Json] | None = None
    """The answer to the probe; by default an acceptance."""


class FakeSession:
    """One connection. `received` holds every message of the client; those not settled wait for `expect`."""

    def __init__(self, socket: ServerConnection, script: Script) -> None:
        self.socket = socket
        self.received: list[Json] = []
        self.binary_frames = 0
        self.ended = asyncio.Event()
        self.settling = asyncio.Event()
        self._script = script
        self._inbox: asyncio.Queue[Json] = asyncio.Queue()
        self._events = 0
        self._spoken = False
        self._updates = 0

    @property
    def headers(self) -> dict[str, str]:
        """The handshake's headers, names in lower case."""
        request = self.socket.request
        return {name.lower(): value for name, value in request.headers.raw_items()} if request else {}

    def types(self) -> list[str]:
        """Types of all that the client sent."""
        return [message["type"] for message in self.received]

    async def send(self, kind: str, **fields: Any) -> None:
        """Send one event."""
        self._events += 1
        self._spoken = self._spoken or kind == "response.output_audio.delta"
        await self.socket.send(json.dumps({"type": kind, "event_id": f"event_{self._events}", **fields}))

    async def error(self, code: str | None, message: str = "no", **fields: Any) -> None:
        """Send an error event."""
        body = {
            "type": "invalid_request_error",
            "code": code,
            "message": message,
            "param": None,
            "event_id": None,
        }
        await self.send("error", error={**body, **fields})

    async def created(self, create: Json, response_id: str) -> None:
        """Create the response that a `response.create` asked for."""
        await self.send("response.created", response=response(response_id, create))

    async def audio(self, response_id: str, pcm24k: bytes) -> None:
        """Send some audio of a response."""
        delta = base64.b64encode(pcm24k).decode()
        await self.send("response.output_audio.delta", delta=delta, **_place(response_id))

    async def done(self, create: Json, response_id: str, status: str = "completed", **fields: Any) -> None:
        """End a response."""
        await self.send("response.done", response=response(response_id, create, status=status, **fields))

    async def expect(self, kind: str) -> Json:
        """The next message of this type; others before it are passed over."""
        while True:
            message = await self._inbox.get()
            if message["type"] == kind:
                return message

    async def run(self) -> None:
        """Serve until the connection ends."""
        try:
            if self._script.greets:
                await self.send("session.created", session={"type": "realtime", "id": SESSION_ID})
            async for frame in self.socket:
                self.binary_frames += isinstance(frame, bytes)
                await self._receive(json.loads(frame))
        except ConnectionClosed:
            pass
        finally:
            self.ended.set()

    async def _receive(self, message: Json) -> None:
        self.received.append(message)
        try:
            check_client_event(message)
        except ValueError as fault:
            await self.error("unknown_parameter", str(fault), event_id=message.get("event_id"))
            return
        if message["type"] == "session.update":
            await self._update(message)
        elif message.get("response", {}).get("metadata") == {"reply_id": "probe"}:
            await self._probe(message)
        else:
            self._inbox.put_nowait(message)

    async def _update(self, message: Json) -> None:
        self._updates += 1
        self.settling.set()
        if self._updates > 1:
            self._inbox.put_nowait(message)
        if self._script.may_update is not None:
            await self._script.may_update.wait()
        output = message["session"]["audio"]["output"]
        if self._script.close_on_update is not None:
            await self.socket.close(*self._script.close_on_update)
        elif self._script.update_error is not None:
            await self.error(event_id=message["event_id"], **self._script.update_error)
        elif self._spoken and "voice" in output:
            await self.error("cannot_update_voice", event_id=message["event_id"])
        else:
            await self.send("session.updated", session=self._script.echo(message["session"]))

    async def _probe(self, message: Json) -> None:
        if self._script.probe is not None:
            answer = self._script.probe(message)
            await self.send(answer.pop("type"), **answer)
        else:
            await self.created(message, "resp_probe")


def response(response_id: str, create: Json, *, status: str = "in_progress", **fields: Any) -> Json:
    """A response object as the server shows it."""
    whole = {
        "object": "realtime.response",
        "id": response_id,
        "status": status,
        "status_details": None,
        "output": [],
        "conversation_id": None,
        "metadata": create["response"]["metadata"],
        "usage": None,
    }
    return {**whole, **fields}


def call_item(call_id: str, name: str, arguments: str) -> Json:
    """A function call among a response's output."""
    return {
        "type": "function_call",
        "id": f"item_{call_id}",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def call_done(response_id: str, call_id: str, name: str, arguments: str) -> Json:
    """The fields of `response.function_call_arguments.done`."""
    return {
        "response_id": response_id,
        "item_id": f"item_{call_id}",
        "output_index": 1,
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def _place(response_id: str) -> Json:
    return {
        "response_id": response_id,
        "item_id": f"item_{response_id}",
        "output_index": 0,
        "content_index": 0,
    }


class FakeRealtime:
    """The server: `async with FakeRealtime(script) as server`, `server.url`, `await server.session()`."""

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.sessions: list[FakeSession] = []
        self.url = ""
        self.requests = 0
        self._fresh: asyncio.Queue[FakeSession] = asyncio.Queue()
        self._server: Server | None = None

    async def session(self) -> FakeSession:
        """The next connection that came."""
        return await self._fresh.get()

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._handle, "127.0.0.1", 0, process_request=self._admit, ping_interval=None
        )
        port = next(iter(self._server.sockets)).getsockname()[1]
        self.url = f"ws://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._server is None:
            return
        for session in self.sessions:
            session.socket.transport.abort()
        self._server.close()
        await self._server.wait_closed()

    def _admit(self, socket: ServerConnection, request: Request) -> HttpResponse | None:
        self.requests += 1
        if self.script.statuses:
            return socket.respond(HTTPStatus(self.script.statuses.pop(0)), "refused\n")
        return None

    async def _handle(self, socket: ServerConnection) -> None:
        if "openai-beta" in {name.lower() for name in socket.request.headers} if socket.request else ():
            await socket.close(4000, "beta_api_shape_disabled")
            return
        session = FakeSession(socket, self.script)
        self.sessions.append(session)
        self._fresh.put_nowait(session)
        await session.run()


@asynccontextmanager
async def black_hole() -> AsyncIterator[str]:
    """A server that accepts connections and never says a word; yields its URL."""
    held: list[asyncio.StreamWriter] = []

    async def hold(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)

    server = await asyncio.start_server(hold, "127.0.0.1", 0)
    try:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        for writer in held:
            writer.transport.abort()
        server.close()
        await server.wait_closed()
