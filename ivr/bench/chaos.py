"""`ivr bench chaos`: scripted calls while what they stand on breaks, and the count of what that cost them.

Every caller says numbers; the model answers each with the same number. So it is known who said what, who heard what,
and what is kept. Each run is a call with a failure of its own at a random moment; eight run at once on two workers,
which all of them share, as they share the model and the database: every call meets its neighbours' failures too.
"""

import asyncio
import contextlib
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.bench.chaos_code import CALLER_HZ, MODEL_HZ, decode, encode
from ivr.bench.chaos_model import TroubledModel, troubled_model
from ivr.bench.chaos_world import Balancer, DatabaseProxy, Log, WorkerProcess
from ivr.foundations import database
from ivr.phone.call import place_call
from ivr.phone.line import RATE_HZ
from ivr.phone.machine import Caller
from ivr.phone.record import CallRecord, EndReason
from ivr.phone.rest import FakeTwilioRest
from ivr.phone.script import AfterReply, BargeIn, BreakStream, CallScript, HangUp, Say, Step
from ivr.phone.service import DEFAULT_ACCOUNT_SID, Service
from ivr.processes import free_port
from ivr.settings import Settings

NUMBER = "+16175550140"
CALLS_AT_ONCE = 8
TURNS = 4
GAP_MS, PATIENCE_MS = 500, 15_000
CALL_MAX_MS = 180_000
MOMENT_S = (0.3, 12.0)
"""When a failure comes, after dialling: a call without one takes about so long."""
SLEEP_S, DATABASE_S, STALL_S = 9.0, 3.0, 6.0
DRAIN_S = 20
BUSINESS = {
    "id": "chaos",
    "name": "Chaos",
    "numbers": [NUMBER],
    "timezone": "UTC",
    "disclosure": "",
    "greeting": "Say a number.",
    "limits": {"silence_s": 30, "reprompts": 2},
    "start": "talk",
    "nodes": {"talk": {"type": "talk", "instructions": "Repeat numbers."}},
}


class Failure(StrEnum):
    """What breaks."""

    MODEL_ABORTED = "model aborted"
    MODEL_CLOSED = "model closed"
    MODEL_REFUSED = "model aborted, then refused twice"
    MODEL_STALLED = "model stalled"
    REPLIES_FAIL = "two replies fail"
    STREAM_BROKEN = "stream broken"
    WORKER_KILLED = "worker killed"
    WORKER_STOPPED = "worker stopped and continued"
    WORKER_DRAINED = "worker drained"
    DATABASE_CUT = "database cut"
    LINE_DROPPED = "line dropped"


@dataclass(frozen=True, slots=True)
class Run:
    """One call as planned: what breaks, and when (s after dialling; for the stream: in which turn)."""

    no: int
    failure: Failure
    after_s: float
    turn: int

    @property
    def caller(self) -> Caller:
        """Nobody calls twice."""
        return Caller(f"+1202{5_000_000 + self.no}")

    @property
    def numbers(self) -> tuple[int, ...]:
        """What the caller says; no other caller says any of them."""
        return tuple((self.no * TURNS + turn) * 7_919 % 100_000 for turn in range(TURNS))

    def script(self) -> CallScript:
        """The numbers, and what breaks on the caller's own side."""
        steps: list[Step] = []
        for turn, number in enumerate(self.numbers):
            ulaw = _ulaw(encode(number, CALLER_HZ, RATE_HZ))
            steps.append(Say(ulaw, f"{number:05}", AfterReply(GAP_MS, PATIENCE_MS)))
            if self.failure is Failure.STREAM_BROKEN and turn == self.turn:
                steps.append(BreakStream(BargeIn(int(self.after_s * 50), 3_000)))
        drop_ms = int(self.after_s * 1_000) if self.failure is Failure.LINE_DROPPED else None
        steps.append(HangUp(AfterReply(GAP_MS, PATIENCE_MS)))
        return CallScript(tuple(steps), drop_after_ms=drop_ms, hang_up_after_ms=CALL_MAX_MS)


def plan(runs: int, seed: int) -> list[Run]:
    """Every failure equally often, in an order and at moments that the seed decides. At most 25,000 runs."""
    chance = random.Random(seed)  # noqa: S311  (a plan, nothing secret)
    failures = [list(Failure)[no % len(Failure)] for no in range(runs)]
    chance.shuffle(failures)
    return [
        Run(no, failure, chance.uniform(*MOMENT_S), chance.randrange(TURNS))
        for no, failure in enumerate(failures)
    ]


@dataclass
class Tally:
    """What was seen of all calls."""

    records: dict[int, CallRecord] = field(default_factory=dict)
    accepted: set[tuple[str, int]] = field(default_factory=set)
    """CallSid and number of each exchange whose write was told to have been made."""
    faults: list[Log] = field(default_factory=list)
    """What a worker logged as an error with a traceback."""
    exit_codes: Counter[int] = field(default_factory=Counter)

    def log(self, entry: Log) -> None:
        """A line of a worker's log."""
        if entry.get("event") == "exchange_accepted":
            self.accepted.add((str(entry.get("call_sid")), int(entry["exchange_no"])))
        elif "exception" in entry or entry.get("event") == "unreadable":
            self.faults.append(entry)


@dataclass
class World:
    """Everything that calls stand on."""

    workers: list[WorkerProcess]
    model: TroubledModel
    proxy: DatabaseProxy
    rest: FakeTwilioRest
    service: Service
    database_url: str
    tally: Tally
    one_at_a_time: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Of workers and database one is broken at a time: with nobody left there is nothing to measure."""

    async def break_down(self, run: Run, chance: random.Random) -> None:
        """Let the run's failure happen now, and wait until it is mended."""
        match run.failure:
            case Failure.MODEL_ABORTED | Failure.MODEL_CLOSED | Failure.MODEL_REFUSED | Failure.MODEL_STALLED:
                await self._hit_model(run.failure, chance)
            case Failure.REPLIES_FAIL:
                self.model.troubles.fail_replies(chance)
            case Failure.STREAM_BROKEN | Failure.LINE_DROPPED:
                pass  # the caller's side does that
            case _:
                async with self.one_at_a_time:
                    await self._hit_shared(run.failure, chance)

    async def _hit_model(self, failure: Failure, chance: random.Random) -> None:
        session = self.model.one_of(chance)
        if session is None:
            return
        if failure is Failure.MODEL_STALLED:
            await self.model.stall(session, STALL_S)
        elif failure is Failure.MODEL_CLOSED:
            await session.close(1001)
        else:
            self.model.troubles.refusals += 2 if failure is Failure.MODEL_REFUSED else 0
            session.transport.abort()

    async def _hit_shared(self, failure: Failure, chance: random.Random) -> None:
        worker = chance.choice(self.workers)
        match failure:
            case Failure.WORKER_KILLED:
                await worker.die()
                await worker.start()
            case Failure.WORKER_DRAINED:
                self.tally.exit_codes[await worker.drain()] += 1
                await worker.start()
            case Failure.WORKER_STOPPED:
                await worker.sleep(SLEEP_S)
                await asyncio.sleep(2)
            case Failure.DATABASE_CUT:
                await self.proxy.cut(DATABASE_S)
                await asyncio.sleep(2)


@contextlib.asynccontextmanager
async def world(folder: Path, workers: int = 2) -> AsyncIterator[World]:
    """Database, model, REST API, workers and the balancer before them, until the block ends."""
    flows, sockets = folder / "flows", folder / "s"
    for made in (flows, sockets):
        made.mkdir(parents=True)
    (flows / "chaos.yaml").write_text(yaml.safe_dump(BUSINESS, sort_keys=False), encoding="utf-8")
    token, port, tally = secrets.token_hex(16), free_port(), Tally()
    async with AsyncExitStack() as stack:
        settings = Settings.load({"IVR_DATA_DIR": str(folder / "db")})
        url = await stack.enter_async_context(database(settings))
        proxy = await stack.enter_async_context(DatabaseProxy(url, sockets).serving())
        model, model_url = await stack.enter_async_context(troubled_model())
        rest = await stack.enter_async_context(FakeTwilioRest(auth_token=token))
        env = {
            "IVR_DATABASE_URL": proxy.url,
            "IVR_DATA_DIR": str(folder / "var"),
            "IVR_CALLFLOWS": str(flows),
            "IVR_REALTIME_URL": model_url,
            "IVR_PUBLIC_URL": f"http://127.0.0.1:{port}",
            "IVR_DRAIN_S": str(DRAIN_S),
            "IVR_LOG_FORMAT": "json",
            "IVR_LOG_LEVEL": "info",
            "TWILIO_ACCOUNT_SID": DEFAULT_ACCOUNT_SID,
            "TWILIO_AUTH_TOKEN": token,
            "TWILIO_API_BASE_URL": rest.base_url,
        }
        team = [WorkerProcess(env, tally.log) for _ in range(workers)]
        for worker in team:
            stack.push_async_callback(worker.stop)
        await asyncio.gather(*(worker.start() for worker in team))
        balancer = await stack.enter_async_context(Balancer(team).serving(port))
        service = Service(balancer.url, token)
        yield World(team, model, proxy, rest, service, url, tally)


async def carry_out(
    place: World, runs: list[Run], seed: int, on_run: Callable[[Run, CallRecord], None]
) -> None:
    """All runs, so many at once; returns when the last failure is mended too."""
    slots = asyncio.Semaphore(CALLS_AT_ONCE)

    async def one(run: Run) -> None:
        async with slots:
            chance = random.Random(f"{seed}/{run.no}")  # noqa: S311  (see above)
            breaking = asyncio.create_task(_later(run.after_s, lambda: place.break_down(run, chance)))
            record = await place_call(
                place.service, caller=run.caller, to=NUMBER, script=run.script(), rest=place.rest
            )
            place.tally.records[run.no] = record
            on_run(run, record)
            await breaking

    async with asyncio.TaskGroup() as group:
        for run in runs:
            group.create_task(one(run))


async def _later(seconds: float, act: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(seconds)
    await act()


def heard_numbers(record: CallRecord) -> list[int]:
    """What the model's voice told this caller."""
    return decode(_pcm(record.heard_ulaw), MODEL_HZ, RATE_HZ)


def is_lost(run: Run, record: CallRecord) -> bool:
    """Whether the call did not last until the caller had said everything and hung up."""
    network = run.failure is Failure.LINE_DROPPED and record.end is EndReason.LINE_DROPPED
    in_time = record.end is EndReason.CALLER_HUNG_UP and record.duration_ms < CALL_MAX_MS
    return not (in_time or network)


def _ulaw(pcm: NDArray[np.int16]) -> bytes:
    return pcm16_to_ulaw(pcm.astype("<i2").tobytes())


def _pcm(ulaw: bytes) -> NDArray[np.int16]:
    return np.frombuffer(ulaw_to_pcm16(ulaw), dtype="<i2")
