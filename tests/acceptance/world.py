"""A whole callthread worker in the test's own event loop, with the model and the telephone network beside it.

Everything goes over real sockets: webhooks and media to the service, Realtime to the scripted sandbox, SQL to a
PostgreSQL of the test's own. Nothing loads Whisper, a voice or an embedding model.
"""

import asyncio
import audioop
import contextlib
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit
from xml.etree import ElementTree

import aiohttp
import numpy as np
import psycopg
import yaml
from structlog.testing import capture_logs
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websocket

from callflows.parse import load_folder
from ivr.app import ServeOptions, Service, bind, speech_model
from ivr.phone import service as phone
from ivr.phone.board import DialOutcome
from ivr.phone.call import Surroundings, place_call
from ivr.phone.machine import Caller
from ivr.phone.network import Network
from ivr.phone.record import CallEvent, CallRecord, EventKind
from ivr.phone.script import AfterReply, CallScript, Say, Step
from ivr.sandbox.brain import Answer, HearPlan, Manners, Question
from ivr.sandbox.script import parse_script
from ivr.sandbox.scripted import ScriptedBrain, Stage
from ivr.sandbox.server import Sandbox
from ivr.sandbox.speech import NoSpeech
from ivr.settings import Settings
from memory.audio_store import AudioStore
from memory.calls import CallRow, CallStatus
from memory.embedded import conninfo_of
from memory.jobs import JobTools, run_pending
from memory.service import Memory
from memory.store import Store
from memory.store_turns import TurnRecord
from memory.summarise import ExtractiveSummariser

TOKEN = "an auth token for tests"
DENTAL, PLUMBING = "+16175550140", "+13125550160"
FRONT_DESK = "+16175550141"
ANN, BEN = Caller("+12025550143"), Caller("+12025550144")
PATIENCE_S = 30.0

T = TypeVar("T")
Json = dict[str, Any]

BUSINESSES: Json = {
    "alpha": {
        "id": "alpha",
        "name": "Alpha Dental",
        "numbers": [DENTAL],
        "timezone": "America/New_York",
        "greeting": "Alpha Dental, how can I help you?",
        "transfers": {"front_desk": {"number": FRONT_DESK, "description": "books appointments"}},
        "on_model_down": {"say": "Our assistant is away.", "transfer": "front_desk"},
        "start": "talk",
        "nodes": {"talk": {"type": "talk", "instructions": "Help."}},
    },
    "beta": {
        "id": "beta",
        "name": "Beta Plumbing",
        "numbers": [PLUMBING],
        "timezone": "America/Chicago",
        "greeting": "Beta Plumbing, what can we do for you?",
        "on_model_down": {"say": "Nobody can take your call now."},
        "start": "talk",
        "nodes": {"talk": {"type": "talk", "instructions": "Help."}},
    },
}

GREETING: Json = {"start": True, "repeat": True, "say": "Hello there", "audio_ms": 400}
"""What the model answers to words of our own. The script does not repeat them: `Model.own_words` has them."""


def turn(hear: str, say: str, audio_ms: int = 500, **more: Any) -> Json:
    """The caller says `hear` and is answered `say`."""
    return {"any": True, "transcript": hear, "say": say, "audio_ms": audio_ms, **more}


def calls(name: str, **arguments: Any) -> Json:
    """A function call for a turn."""
    return {"call": {"name": name, "arguments": arguments}}


def speech(duration_ms: int = 450, hz: int = 300) -> bytes:
    """What the model's voice detection takes for speech, µ-law 8 kHz."""
    seconds = np.arange(8 * duration_ms) / 8_000
    pcm = (8_000 * np.sin(2 * np.pi * hz * seconds)).astype("<i2")
    return audioop.lin2ulaw(pcm.tobytes(), 2)


def say(text: str = "", gap_ms: int = 350) -> Say:
    """The caller speaks, once the far side has been heard out."""
    return Say(speech(), text, AfterReply(gap_ms))


def pitch_hz(ulaw: bytes) -> float:
    """The strongest tone of some µ-law audio."""
    pcm = np.frombuffer(audioop.ulaw2lin(ulaw, 2), "<i2").astype(np.float64)
    spectrum = np.abs(np.fft.rfft(pcm * np.hanning(len(pcm)), 1 << 16))
    return float(spectrum.argmax()) * 8_000 / (1 << 16)


def network_voice(text: str) -> bytes:
    """How the network says a `<Say>`: shorter than life."""
    return speech(400 if text else 0, 200)


def heard_pitches_hz(record: CallRecord) -> list[float]:
    """The tone of each stretch in which the far side was heard."""
    return [
        pitch_hz(record.heard_between(e.at_ms, e.until_ms))
        for e in record.of(EventKind.HEARD)
        if e.until_ms is not None and e.until_ms - e.at_ms >= 100
    ]


async def until(condition: Callable[[], bool | Awaitable[bool]], timeout_s: float = PATIENCE_S) -> None:
    """Wait for what has no event of its own (a row of the database, a closed socket)."""
    async with asyncio.timeout(timeout_s):
        while True:
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            await asyncio.sleep(0.02)


class _NotingBrain:
    """A scripted brain whose questions are kept."""

    def __init__(self, brain: ScriptedBrain, questions: list[Question]) -> None:
        self._brain = brain
        self._questions = questions

    @property
    def manners(self) -> Manners:
        return self._brain.manners

    def hear(self, item_id: str) -> HearPlan:
        return self._brain.hear(item_id)

    def answer(self, question: Question) -> Answer:
        if not question.text_only:  # the probe
            self._questions.append(question)
        return self._brain.answer(question)


class _NotingStage(Stage):
    """A script whose brains keep their questions."""

    questions: list[Question]

    def brain(self) -> ScriptedBrain:
        return _NotingBrain(super().brain(), self.questions)  # type: ignore[return-value]  # the same protocol


class Model(Sandbox):
    """The scripted sandbox, which counts its sessions and keeps what it was asked."""

    def __init__(self, script: Json | list[Json]) -> None:
        stage = _NotingStage(parse_script(yaml.safe_dump(script, sort_keys=False), "script.yaml"))
        self.questions: list[Question] = []
        stage.questions = self.questions
        super().__init__(NoSpeech(), stage)
        self.open_sessions = 0
        self.sessions = 0

    async def handle(self, socket: ServerConnection) -> None:
        """See `Sandbox`."""
        self.sessions += 1
        self.open_sessions += 1
        try:
            await super().handle(socket)
        finally:
            self.open_sessions -= 1

    def own_words(self) -> list[str]:
        """Everything the model was told to say word for word, in order."""
        asked = [q.instructions.partition("Say exactly: ") for q in self.questions]
        return [words for _, told, words in asked if told]

    def answered(self) -> list[Question]:
        """The questions that were turns of the caller."""
        return [q for q in self.questions if "Say exactly: " not in q.instructions]


def told(question: Question) -> str:
    """Everything a question told the model, as one text."""
    return "\n".join([question.instructions, *(line.text for line in question.lines)])


@contextlib.asynccontextmanager
async def model_server(script: Json | list[Json]) -> AsyncIterator[tuple[Model, str]]:
    """A scripted model on a port of its own; its Realtime address."""
    model = Model(script)
    quiet = logging.getLogger("tests.model")  # a call that ends before its session is open is no news
    quiet.disabled = True
    server = serve_websocket(
        model.handle, "127.0.0.1", 0, process_request=model.admit, compression=None, logger=quiet
    )
    async with server as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield model, f"ws://127.0.0.1:{port}/v1"


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


async def webhook(service: phone.Service, path: str, form: Mapping[str, str]) -> tuple[int, str]:
    """A signed webhook: status and TwiML."""
    async with phone.open_http() as http:
        url = service.voice_url.removesuffix(phone.VOICE_PATH) + path
        answer = await phone.Webhooks(service, http).ask(url, "POST", tuple(form.items()), "once")
    return answer.status, answer.text


def arrival(call_sid: str, caller: str = ANN.number, to: str = DENTAL) -> dict[str, str]:
    """What Twilio posts when a call arrives."""
    return {"CallSid": call_sid, "AccountSid": "AC1", "From": caller, "To": to, "CallStatus": "ringing"}


def stream_of(twiml: str) -> tuple[str, dict[str, str]]:
    """Where the document has the stream opened, and with which parameters."""
    (stream,) = ElementTree.fromstring(twiml).iter("Stream")
    return stream.attrib["url"], {p.attrib["name"]: p.attrib["value"] for p in stream.iter("Parameter")}


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
                network or Network(), dial or DialOutcome(ring_ms=200, talk_ms=200), network_voice
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


def write_flows(folder: Path, changes: dict[str, Json] | None = None) -> Path:
    """The two businesses as files, with some of their settings changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, business in BUSINESSES.items():
        text = yaml.safe_dump(business | (changes or {}).get(name, {}), sort_keys=False)
        (folder / f"{name}.yaml").write_text(text)
    return folder


def settings_for(folder: Path, database_url: str, model_url: str, **env: str) -> Settings:
    """Settings out of an environment, as an operator makes them."""
    return Settings.load(
        {
            "IVR_DATABASE_URL": conninfo_of(database_url),
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
    book = load_folder(settings.callflows or Path())
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(speech_model(settings))
        store = Store(settings.database_url.get_secret_value())
        stack.push_async_callback(store.close)
        memory = Memory(store, AudioStore(settings.audio_url), None)
        service = Service(settings, ServeOptions(port=0), book, store, memory, server)
        address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(_run(service, address.set_result))
        running.add_done_callback(lambda _: address.cancel())
        try:
            await address
        except asyncio.CancelledError:
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
