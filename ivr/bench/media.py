"""`ivr bench media`: what a call costs, and how much later its sound is, beside two bridges of the usual kind.

Each server is a process of its own, all on one core and one at a time with calls; real sockets on both sides. The
phones (this process) and each server's speech model run on the other core. CPU is that of the server's process alone.
"""

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from time import monotonic

import msgspec
import numpy as np
import psutil
from numpy.typing import NDArray

from ivr.bench.model import CYCLE_MS, Notes
from ivr.bench.phones import Address, Dial, Exchange, Phone
from ivr.demo import CLEARED
from ivr.errors import CallthreadError
from ivr.phone.board import Form
from ivr.phone.service import Service, Webhooks, open_http
from ivr.phone.twiml import ConnectStream, parse_twiml
from ivr.processes import child, free_port, wait_for_port

SETTLE_S = 5.0
"""After the last call was placed, before measuring: greetings are over, caches warm."""
CALM_CPU = 0.05
CALM_TIMEOUT_S = 90.0
PEERS_LATE_MS = 5.0
OTHERS_ON_CORE = 0.05
"""Above these the machine was busy with other things, and neither delays nor CPU are the server's alone."""
FIR_DELAY_MS = 23 / 16
"""Our resampler's group delay, each way; it does not show in the number of samples, so it is added."""
DIAL_TRIES = 5
BUSINESS_NUMBER = "+16175550140"


class BenchFailed(CallthreadError):
    """The bench could not measure what it was to measure."""


class ServerKind(StrEnum):
    """What is measured."""

    OURS = "ours"
    SOXR_BRIDGE = "soxr_bridge"
    PASS_THROUGH = "pass_through"  # noqa: S105 - no password


@dataclass(frozen=True, slots=True)
class Delay:
    """Added delay in ms."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Figures:
    """One server with so many calls. `in_ms`: frame sent by the caller → its audio appended at the model.

    `out_ms`: first delta of a reply sent by the model → first media message at the caller.
    """

    cpu_ms_per_call_s: float
    in_ms: Delay
    out_ms: Delay
    rss_mb_per_call: float
    replies: int
    peers_late_ms: float
    """p99 of how late the phones themselves sent their frames."""
    others_on_core: float
    """Share of the server's core that other programs took, 0-1. `nan` where it is not known."""

    @property
    def is_sound(self) -> bool:
        """The machine was quiet enough for the figures to be the server's."""
        return self.peers_late_ms <= PEERS_LATE_MS and not self.others_on_core > OTHERS_ON_CORE


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    calls: tuple[int, ...] = (1, 10, 20, 50)
    seconds: float = 20.0
    """How long each server is measured with each number of calls, all rounds together."""
    rounds: int = 2
    """The servers take turns so often, so that what else the machine does falls on all of them."""
    servers: tuple[ServerKind, ...] = tuple(ServerKind)


@dataclass(frozen=True, slots=True)
class _Running:
    """A server under test with the model it talks to."""

    process: psutil.Process
    dial: Dial
    notes: Path
    model: asyncio.subprocess.Process
    rss_before: int = 0
    """Once warm, before its first call that is measured."""


@dataclass(frozen=True, slots=True)
class _Run:
    """One server with so many calls, once."""

    phones: Sequence[Phone]
    began_s: float
    window: tuple[float, float]
    cpu_s: float
    core_s: float
    rss: int
    late_s: Sequence[float]

    @property
    def lasted_s(self) -> float:
        return self.window[1] - self.window[0]


Results = dict[ServerKind, dict[int, Figures]]


async def measure(plan: Plan, tell: Callable[[str], None] = lambda _: None) -> Results:
    """Run all of the plan. Raises: `BenchFailed`, `ChildFailed`."""
    pinned = _pin_ourselves()
    tell("one core for the servers, the others for their peers" if pinned else "not pinned: one core only")
    async with contextlib.AsyncExitStack() as stack:
        servers = {}
        for kind in plan.servers:
            tell(f"starting {kind}")
            servers[kind] = await _warm(await stack.enter_async_context(_running(kind)))
        runs: dict[ServerKind, dict[int, list[_Run]]] = {kind: {} for kind in servers}
        for calls in plan.calls:
            for no in range(plan.rounds):
                for kind, server in servers.items():
                    tell(f"{calls} calls, round {no + 1} of {plan.rounds}: {kind}")
                    run = await _measure_one(server, kind, calls, plan.seconds / plan.rounds)
                    runs[kind].setdefault(calls, []).append(run)
        results: Results = {}
        for kind, server in servers.items():
            notes = await _notes(server)
            results[kind] = {
                calls: _figures(kind, calls, server, some, notes) for calls, some in runs[kind].items()
            }
        return results


def _pin_ourselves() -> bool:
    """Leave the first core to the server: children inherit where we may run."""
    if not hasattr(os, "sched_setaffinity"):
        return False
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return False
    os.sched_setaffinity(0, cores[1:])
    return True


def _pin_server(process: psutil.Process) -> None:
    """Move the server, with all its threads but without its children, to the first core."""
    core = _servers_core()
    if core is None:
        return
    for thread in process.threads():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(thread.id, {core})


async def _measure_one(server: _Running, kind: ServerKind, calls: int, seconds: float) -> _Run:
    exchange = Exchange(server.dial, max(0.05, CYCLE_MS / 1_000 / calls), calls)
    began_s = monotonic()
    try:
        await exchange.start(secrets.token_hex(4))
        await asyncio.sleep(SETTLE_S)
        del exchange.late_s[:]
        begin_s, cpu_before_s, core_before_s = monotonic(), _cpu_s(server.process), _core_busy_s()
        await asyncio.sleep(seconds)
        end_s, cpu_s = monotonic(), _cpu_s(server.process) - cpu_before_s
        core_s = _core_busy_s() - core_before_s
        rss = server.process.memory_info().rss
        dead = exchange.dead()
    finally:
        await exchange.stop()
    if dead:
        raise BenchFailed(f"{kind}: {len(dead)} of {calls} calls ended by themselves")
    return _Run(exchange.phones, began_s, (begin_s, end_s), cpu_s, core_s, rss, exchange.late_s)


def _figures(
    kind: ServerKind, calls: int, server: _Running, runs: Sequence[_Run], notes: Sequence[Notes]
) -> Figures:
    """All rounds together. Memory: what the server had grown by at most."""
    delays = [_delays(run.phones, _notes_of(run, notes), run.window) for run in runs]
    out_ms = np.concatenate([outward for _, outward in delays])
    extra_ms = FIR_DELAY_MS if kind is ServerKind.OURS else 0.0
    lasted_s, cpu_s = sum(run.lasted_s for run in runs), sum(run.cpu_s for run in runs)
    late_s = np.concatenate([np.array(run.late_s) for run in runs])
    return Figures(
        cpu_ms_per_call_s=cpu_s * 1_000 / calls / lasted_s,
        in_ms=_delay(np.concatenate([inward for inward, _ in delays]), extra_ms),
        out_ms=_delay(out_ms, extra_ms),
        rss_mb_per_call=(max(run.rss for run in runs) - server.rss_before) / 1e6 / calls,
        replies=len(out_ms),
        peers_late_ms=float(np.percentile(late_s, 99)) * 1_000,
        others_on_core=(sum(run.core_s for run in runs) - cpu_s) / lasted_s,
    )


def _notes_of(run: _Run, notes: Sequence[Notes]) -> list[Notes]:
    """The model's sessions of this run's calls."""
    during = (run.began_s, run.window[1])
    return [note for note in notes if note.heard_s and during[0] <= note.opened_s <= during[1]]


def _servers_core() -> int | None:
    """The core that was left to the server, if one was."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    free = set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)
    return min(free, default=None)


def _core_busy_s() -> float:
    """CPU that the server's core has given to anybody so far."""
    core = _servers_core()
    if core is None:
        return float("nan")
    times = psutil.cpu_times(percpu=True)[core]
    return float(times.user + times.system + times.nice)


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _delay(ms: NDArray[np.float64], extra_ms: float) -> Delay:
    if not len(ms):
        raise BenchFailed("nothing came through while it was measured: give it more --seconds")
    return Delay(float(np.percentile(ms, 50)) + extra_ms, float(np.percentile(ms, 99)) + extra_ms)


# -- one server with its model --------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _running(kind: ServerKind) -> AsyncIterator[_Running]:
    model_port, port = free_port(), free_port()
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callthread-bench-")))
        notes = folder / "notes.json"
        arguments = ["ivr.bench.model", "--port", str(model_port), "--notes", str(notes)]
        model = await stack.enter_async_context(child(arguments))
        await wait_for_port(model, "127.0.0.1", model_port, "the bench's model")
        model_url = f"ws://127.0.0.1:{model_port}/v1"
        if kind is ServerKind.OURS:
            token = secrets.token_hex(16)
            arguments = ["ivr", "serve", "--port", str(port), "--no-worker"]
            env = _environment(folder, token, model_url)
            dial = _by_webhook(Service(f"http://127.0.0.1:{port}", token))
        else:
            arguments = [f"ivr.bench.bridges.{kind}", "--port", str(port), "--model", model_url]
            env, dial = {}, _directly(f"ws://127.0.0.1:{port}/media")
        server = await stack.enter_async_context(child(arguments, env))
        await wait_for_port(server, "127.0.0.1", port, kind)
        process = psutil.Process(server.pid)
        await _until_calm(process)
        _pin_server(process)
        yield _Running(process, dial, notes, model)


def _environment(folder: Path, token: str, model_url: str) -> dict[str, str]:
    return {
        **dict.fromkeys(CLEARED, ""),
        "IVR_REALTIME_URL": model_url,
        "IVR_DATA_DIR": str(folder / "data"),
        "IVR_LOG_LEVEL": os.environ.get("IVR_LOG_LEVEL", "error"),
        "TWILIO_AUTH_TOKEN": token,
    }


def _directly(url: str) -> Dial:
    async def dial(_: str) -> Address:
        return Address(url, {}, {})

    return dial


def _by_webhook(service: Service) -> Dial:
    async def dial(call_sid: str) -> Address:
        form = (
            ("CallSid", call_sid),
            ("AccountSid", service.account_sid),
            ("From", f"+1202555{int(call_sid[-4:], 16) % 10_000:04}"),
            ("To", BUSINESS_NUMBER),
            ("CallStatus", "ringing"),
            ("Direction", "inbound"),
        )
        stream = await _stream_of(service, form)
        signature = service.sign(stream.url)
        headers = {"X-Twilio-Signature": signature}
        return Address(service.reach(stream.url), headers, dict(stream.parameters), service.account_sid)

    return dial


async def _stream_of(service: Service, form: Form) -> ConnectStream:
    """The webhook's stream. A machine busy with other things may have us apologise: ask again then."""
    for _ in range(DIAL_TRIES):
        async with open_http() as http:
            answer = await Webhooks(service, http).ask(service.voice_url, "POST", form, secrets.token_hex(8))
        document = parse_twiml(answer.text, answer.content_type)
        stream = next((verb for verb in document.verbs or () if isinstance(verb, ConnectStream)), None)
        if stream is not None:
            return stream
        await asyncio.sleep(1.0)
    raise BenchFailed(f"the voice webhook gave no stream (HTTP {answer.status}): {answer.text[:200]}")


async def _until_calm(process: psutil.Process) -> None:
    """Wait until neither the server nor what it started (database, embedding model) is busy starting up."""
    family = [process, *process.children(recursive=True)]
    deadline_s = monotonic() + CALM_TIMEOUT_S
    while monotonic() < deadline_s:
        before_s = sum(_cpu_s(each) for each in family if each.is_running())
        await asyncio.sleep(1.0)
        if sum(_cpu_s(each) for each in family if each.is_running()) - before_s < CALM_CPU:
            return
    raise BenchFailed("the server is busy without a call")


async def _warm(server: _Running) -> _Running:
    """After one call for what is loaded or made only with the first."""
    exchange = Exchange(server.dial, 0.0, 1)
    try:
        await exchange.start(secrets.token_hex(4))
        await asyncio.sleep(SETTLE_S)
    finally:
        await exchange.stop()
    await asyncio.sleep(1.0)
    return replace(server, rss_before=server.process.memory_info().rss)


async def _notes(server: _Running) -> list[Notes]:
    """What the model saw of all calls."""
    server.model.terminate()
    async with asyncio.timeout(10):
        await server.model.wait()
    return msgspec.json.decode(server.notes.read_bytes(), type=list[Notes])


# -- delays -----------------------------------------------------------------------------------------------------


def _delays(
    phones: Sequence[Phone], notes: Sequence[Notes], window: tuple[float, float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Delays in ms of all frames and all replies that were sent within the window."""
    if len(notes) != len(phones):
        raise BenchFailed(f"{len(phones)} calls, but {len(notes)} model sessions that heard something")
    pairs = list(zip(phones, notes, strict=True))
    inward = [
        in_delays_ms(np.array(p.sent_s), np.array(n.heard_s), np.array(n.heard_ms), window) for p, n in pairs
    ]
    outward = [out_delays_ms(np.array(n.spoke_s), np.array(p.came_s), window) for p, n in pairs]
    return np.concatenate(inward), np.concatenate(outward)


def in_delays_ms(
    sent_s: NDArray[np.float64],
    heard_s: NDArray[np.float64],
    heard_ms: NDArray[np.float64],
    window: tuple[float, float],
) -> NDArray[np.float64]:
    """Of each frame in the window: until all the audio up to its end was at the model."""
    chosen = np.flatnonzero((sent_s >= window[0]) & (sent_s < window[1]))
    at = np.searchsorted(heard_ms, (chosen + 1) * 20 - 0.01)
    there = at < len(heard_s)
    return np.asarray((heard_s[at[there]] - sent_s[chosen[there]]) * 1_000)


def out_delays_ms(
    spoke_s: NDArray[np.float64], came_s: NDArray[np.float64], window: tuple[float, float]
) -> NDArray[np.float64]:
    """Of each reply begun in the window: until the caller got the first sound of it."""
    begun = spoke_s[(spoke_s >= window[0]) & (spoke_s < window[1])]
    at = np.searchsorted(came_s, begun)
    there = at < len(came_s)
    return np.asarray((came_s[at[there]] - begun[there]) * 1_000)
