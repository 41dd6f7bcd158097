"""A whole callthread worker in the test's own event loop, with the model and the telephone network beside it.

Everything goes over real sockets: webhooks and media to the service, Realtime to the scripted sandbox, SQL to a
PostgreSQL of the test's own. Nothing loads Whisper, a voice or an embedding model.
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import aiohttp
import psycopg
from structlog.testing import capture_logs

from ivr.app import ServeOptions, Service, bind, worker_name
from ivr.foundations import speech_endpoint, speech_model
from ivr.phone import service as phone
from ivr.phone.board import DialOutcome, LineOutcome
from ivr.phone.call import Surroundings, place_call
from ivr.phone.machine import Caller
from ivr.phone.network import Network
from ivr.phone.record import CallEvent, CallRecord
from ivr.phone.script import CallScript, Step
from ivr.settings import Settings
from ivr.shelf import FlowShelf
from memory.audio_store import AudioStore
from memory.calls import CallRow, CallStatus
from memory.embedded import conninfo_of
from memory.jobs import JobTools, run_pending
from memory.service import Memory
from memory.store import Store
from memory.store_turns import TurnRecord
from memory.summarise import ExtractiveSummariser
from tests.acceptance.businesses import ANN, DENTAL, TOKEN, write_flows
from tests.acceptance.line import network_voice
from tests.acceptance.model import Model, model_server
from tests.pg import serving

PATIENCE_S = 30.0
T = TypeVar("T")
Json = dict[str, Any]


async def until(condition: Callable[[], bool | Awaitable[bool]], timeout_s: float = PATIENCE_S) -> None:
    """Wait for what has no event of its own (a row of the database, a closed socket)."""
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.02)


@dataclass
class Watch:
    """What must not happen while a world turns: errors nobody caught, tracebacks in the log."""

    unhandled: list[Json] = field(default_factory=list)
    logs: list[Any] = field(default_factory=list)
    expected: set[str] = field(default_factory=set)
    """Log events that may carry a traceback in this test."""

    def events(self, name: str) -> list[Any]:
        """The log entries of one event."""
        return [entry for entry in self.logs if entry["event"] == name]

    def check(self) -> None:
        """Nothing went wrong that is not a failure of the world around."""
        gc.collect()
        assert not self.unhandled, self.unhandled
        broken = [entry for entry in self.logs if entry.get("exc_info") or entry["log_level"] == "critical"]
        assert {entry["event"] for entry in broken} <= self.expected, broken


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """Collect what goes wrong inside the block; the block's end checks it."""
    loop = asyncio.get_running_loop()
    watch = Watch()
    loop.set_exception_handler(lambda _, context: watch.unhandled.append(context))
    try:
        with capture_logs() as watch.logs:
            yield watch
            watch.check()
    finally:
        loop.set_exception_handler(None)


@dataclass
class Worker:
    """One service, running."""

    url: str
    service: Service
    store: Store

    def drain(self) -> None:
        """Stop it as SIGTERM does."""
        self.service.server.begin_drain()

    async def readiness(self) -> tuple[int, Json]:
        """Status and body of `/readyz`."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/readyz") as answer:
            return answer.status, await answer.json()

    async def metric(self, name: str) -> float:
        """A figure of `/metrics`, without labels."""
        async with aiohttp.ClientSession() as http, http.get(f"{self.url}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        return next(float(line.split()[1]) for line in lines if line.startswith(f"callthread_{name} "))

    async def is_idle(self) -> bool:
        """No stream runs."""
        return await self.metric("calls_active") == 0


class Balancer:
    """One address before several workers; `route` names the worker for a connection by its first request line."""

    def __init__(self) -> None:
        self.route: Callable[[str], Worker] = self._nowhere
        self.url = ""

    def _nowhere(self, _: str) -> Worker:
        raise LookupError("no worker yet")

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["Balancer"]:
        """While the block runs."""
        server = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield self

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            port = urlsplit(self.route(line.decode()).url).port
            back_reader, back_writer = await asyncio.open_connection("127.0.0.1", port)
            back_writer.write(line)
            await asyncio.gather(_pump(reader, back_writer), _pump(back_reader, writer))
        except OSError:
            pass
        finally:
            writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@dataclass
class World:
    """What a test acts on."""

    worker: Worker
    model: Model
    watch: Watch
    settings: Settings
    database_url: str
    public_url: str = ""

    @property
    def store(self) -> Store:
        """The worker's."""
        return self.worker.store

    @property
    def line(self) -> phone.Service:
        """The service as the telephone company reaches it."""
        return phone.Service(self.public_url or self.worker.url, TOKEN)

    async def call(
        self,
        *steps: Step,
        caller: Caller = ANN,
        to: str = DENTAL,
        network: Network | None = None,
        dial: DialOutcome | None = None,
        in_line: LineOutcome | None = None,
        on_event: Callable[[CallEvent], None] | None = None,
        most_ms: int = 40_000,
        drop_after_ms: int | None = None,
    ) -> CallRecord:
        """One call, to its end. Whatever happens, the caller hangs up after `most_ms`."""
        return await place_call(
            self.line,
            caller=caller,
            to=to,
            script=CallScript(steps, hang_up_after_ms=most_ms, drop_after_ms=drop_after_ms),
            surroundings=Surroundings(
                network or Network(),
                dial or DialOutcome(ring_ms=200, talk_ms=200),
                network_voice,
                line=in_line or LineOutcome(),
            ),
            on_event=on_event,
        )

    async def row(self, call_sid: str) -> CallRow:
        """The call's row."""
        found = await self.store.get_call(call_sid)
        assert found is not None
        return found

    async def ended(self, call_sid: str) -> CallRow:
        """The call's row, once it has an end."""

        async def over() -> bool:
            return (await self.row(call_sid)).status is not CallStatus.ACTIVE

        await until(over)
        return await self.row(call_sid)

    async def turns(self, call_sid: str) -> list[TurnRecord]:
        """The call's turns as they are stored."""
        return list(await self.store.turns_of((await self.row(call_sid)).owner, call_sid))

    async def words(self, call_sid: str) -> list[tuple[str, str]]:
        """What was heard and said, turn by turn."""
        return [(t.page.user_text, t.page.reply_text) for t in await self.turns(call_sid)]

    async def run_jobs(self) -> None:
        """Everything that is queued for the background."""
        await run_pending(self.database_url, JobTools(self.store, ExtractiveSummariser()))

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The answer to some SQL."""
        return rows(self.database_url, statement)


def rows(database_url: str, statement: str) -> list[tuple[Any, ...]]:
    """The answer to some SQL."""
    with psycopg.connect(conninfo_of(database_url), autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


def settings_for(folder: Path, database_url: str, model_url: str, **env: str) -> Settings:
    """Settings out of an environment, as an operator makes them."""
    return Settings.load(
        {
            "IVR_DATABASE_URL": conninfo_of(serving(database_url)),
            "IVR_DATA_DIR": str(folder / "var"),
            "IVR_CALLFLOWS": str(folder / "flows"),
            "IVR_REALTIME_URL": model_url,
            "IVR_DRAIN_S": "8",
            "TWILIO_AUTH_TOKEN": TOKEN,
            **env,
        }
    )


@contextlib.asynccontextmanager
async def worker(settings: Settings) -> AsyncIterator[Worker]:
    """One service on a free port of this machine, until the block ends; then it is drained."""
    assert settings.database_url is not None
    book = FlowShelf(settings.callflows or Path())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(speech_model(settings))
        voicing = await stack.enter_async_context(speech_endpoint(settings))
        store = Store(settings.database_url.get_secret_value(), name=worker_name())
        stack.push_async_callback(store.close)
        memory = Memory(store, AudioStore(settings.audio_url), None)
        service = Service(settings, ServeOptions(port=0), book, store, memory, server, voicing)
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(_run(service, address.set_result))
        running.add_done_callback(lambda _: address.cancel())
        try:
            await address
        except asyncio.CancelledError:
            if not running.done():  # another story has failed
                running.cancel()
                raise
            await running  # it ended before it listened: that is the error
        try:
            yield Worker(address.result(), service, store)
        finally:
            service.server.begin_drain()
            await running


async def _run(service: Service, on_ready: Callable[[str], None]) -> None:
    async with AsyncExitStack() as stack:
        await service.run(stack, stack.enter_context(bind("127.0.0.1", 0)), on_ready)


@dataclass(frozen=True)
class Place:
    """Where a story happens: a folder and a database of its own, and the watch over all stories of a test."""

    folder: Path
    database_url: str
    watch: Watch

    @contextlib.asynccontextmanager
    async def world(
        self, script: Json | list[Json], *, flows: dict[str, Json] | None = None, **env: str
    ) -> AsyncIterator[World]:
        """Model and worker. A script that is a list is carried over from session to session."""
        plan = {"carry_over": True, "turns": script} if isinstance(script, list) else script
        write_flows(self.folder / "flows", flows)
        async with model_server(plan) as (model, model_url):
            settings = settings_for(self.folder, self.database_url, model_url, **env)
            async with worker(settings) as running:
                yield World(running, model, self.watch, settings, self.database_url)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """The answer to some SQL."""
        return rows(self.database_url, statement)


Story = Callable[[Place], Coroutine[Any, Any, None]]
Act = Callable[..., Awaitable[None]]
"""Runs stories at once, so that a call's seconds are waited for once."""


async def act(folder: Path, new_database: Callable[[], str], stories: Sequence[Story]) -> None:
    """Run stories at once; the first that fails stops the others."""
    places = [(folder / str(number), new_database()) for number in range(len(stories))]
    with watching() as watch:
        async with asyncio.TaskGroup() as group:
            for story, (home, database) in zip(stories, places, strict=True):
                group.create_task(story(Place(home, database, watch)))


async def together(*work: Awaitable[T]) -> Sequence[T]:
    """Several calls, or several stories, at once."""
    return await asyncio.gather(*work)
