"""What the tests of the model link share: an open link on the fake server, and its events as they come."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from ivr.adapters.openai_realtime import OpenAIRealtimeLink, RealtimeServer
from ivr.core.commands import CancelReply, FunctionTool, SessionConfig, StartReply, UserText
from ivr.core.events import ModelEvent, ModelReady, ReplyPcm
from tests.fake_realtime import SESSION_ID, FakeRealtime, FakeSession, Json, Script

TOOL = FunctionTool("look_up", "Looks up.", {"type": "object", "properties": {}})
CONFIG = SessionConfig("Be brief.", (TOOL,), "marin", "en")
KEY = "sk-secret-4711"


def model_server(url: str, *, open_timeout_s: float = 10.0) -> RealtimeServer:
    """The server under test, with all names set."""
    return RealtimeServer(
        url, KEY, None, "gpt-realtime-2.1", "gpt-live-transcribe", open_timeout_s=open_timeout_s
    )


@dataclass
class Line:
    """An open link and the server's end of it."""

    fake: FakeRealtime
    server: RealtimeServer
    link: OpenAIRealtimeLink
    session: FakeSession
    events: AsyncIterator[ModelEvent | ReplyPcm]

    async def next(self) -> ModelEvent | ReplyPcm:
        """The next event."""
        return await anext(self.events)

    async def take(self, count: int) -> list[ModelEvent | ReplyPcm]:
        """The next events."""
        return [await anext(self.events) for _ in range(count)]

    async def rest(self) -> list[ModelEvent | ReplyPcm]:
        """All events to the end."""
        return [event async for event in self.events]

    async def start(self, reply_id: str) -> Json:
        """Ask for a reply; the message as the server got it."""
        self.link.send(StartReply(reply_id, "Answer.", (UserText("Hi"),), (TOOL,)))
        return await self.session.expect("response.create")

    async def cancel(self, reply_id: str) -> None:
        """Cancel a reply."""
        self.link.send(CancelReply(reply_id))


@asynccontextmanager
async def fake_and_server(
    script: Script | None = None, **kwargs: Any
) -> AsyncIterator[tuple[FakeRealtime, RealtimeServer]]:
    """A fake server, and our side of it with no session yet."""
    async with FakeRealtime(script) as fake:
        server = model_server(fake.url, **kwargs)
        try:
            yield fake, server
        finally:
            await server.close()


@asynccontextmanager
async def open_line(script: Script | None = None) -> AsyncIterator[Line]:
    """A link that is open and whose `ModelReady` has come; afterwards all that it started is finished."""
    before = asyncio.all_tasks()
    async with fake_and_server(script) as (fake, server):
        link = server.link()
        await link.open(CONFIG)
        events = link.events()
        assert await anext(events) == ModelReady(SESSION_ID)
        try:
            yield Line(fake, server, link, await fake.session(), events)
        finally:
            await link.close()
    left = asyncio.all_tasks() - before
    assert not left, left
