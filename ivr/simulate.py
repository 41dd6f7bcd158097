"""`ivr call`: the simulated phone on the command line, with speech made from text where it is asked for."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console

from ivr.errors import CallthreadError, ConfigError
from ivr.phone.call import Surroundings
from ivr.phone.machine import Caller
from ivr.phone.network import Network, load_trace
from ivr.phone.record import CallEvent, CallRecord, EventKind
from ivr.phone.run import CallPlan, Utterance, run_call
from ivr.phone.service import Service
from ivr.phone.wavs import pcm_to_ulaw, read_wav
from ivr.sandbox.voice import Voice
from ivr.settings import Settings

CALLER_VOICE = "caller"
VOICE_RATE_HZ = 24_000
QUIET = frozenset({EventKind.MARK, EventKind.MARK_CLEARED})
"""Events that would drown the others."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What `ivr call` was asked for."""

    url: str
    from_number: str
    to: str
    audio: tuple[Path, ...] = ()
    say: tuple[str, ...] = ()
    loss: Path | None = None
    drop_after_s: float | None = None
    digits: str = ""
    record_to: Path | None = None


async def utterance(voice: Voice, text: str) -> Utterance:
    """Text in the simulated caller's voice."""
    pcm = await voice.speak(text, voice=CALLER_VOICE)
    samples = np.frombuffer(pcm, dtype="<i2").astype(np.float32)
    return Utterance(pcm_to_ulaw(samples, VOICE_RATE_HZ), text)


async def place(settings: Settings, plan: Plan, out: Console) -> int:
    """Place the call and tell what happens. Returns the exit code: 1 if the service broke the protocol."""
    if urlsplit(plan.url).scheme not in ("http", "https"):
        raise CallthreadError(f"{plan.url}: not the service's address; it looks like http://127.0.0.1:8080")
    service = service_of(settings, plan.url)
    _check_keys(plan.digits)
    utterances = await _utterances(plan)
    network = _network(plan.loss)
    call = CallPlan(
        Caller(plan.from_number),
        plan.to,
        utterances,
        digits=plan.digits,
        drop_after_s=plan.drop_after_s,
        surroundings=Surroundings(network=network),
        record_to=plan.record_to,
    )
    code = 0
    async for event in run_call(service, call):
        if isinstance(event, CallRecord):
            code = _tell_end(event, out)
        elif event.kind not in QUIET:
            out.print(line_of(event), markup=False)
    return code


def service_of(settings: Settings, url: str) -> Service:
    """The service at `url`, signed for as Twilio would."""
    if settings.twilio_auth_token is None:
        raise ConfigError(
            "TWILIO_AUTH_TOKEN", "is needed to sign as Twilio would", "the same token that the service has"
        )
    token = settings.twilio_auth_token.get_secret_value()
    return Service(url.rstrip("/"), token, public_url=settings.public_url)


def line_of(event: CallEvent) -> str:
    """One event for people."""
    until = f"–{event.until_ms / 1_000:.1f}" if event.until_ms is not None else ""
    status = f" {event.status}" if event.status is not None else ""
    return f"{event.at_ms / 1_000:7.1f}{until} s  {event.kind}{status}  {event.text}"


async def _utterances(plan: Plan) -> tuple[Utterance, ...]:
    try:
        spoken = [Utterance(read_wav(path), path.name) for path in plan.audio]
    except (OSError, ValueError) as error:
        raise CallthreadError(f"--audio: {error}") from error
    async with AsyncExitStack() as stack:
        if plan.say:
            voice = await stack.enter_async_context(Voice())
            spoken += [await utterance(voice, text) for text in plan.say]
    return tuple(spoken)


def _check_keys(digits: str) -> None:
    wrong = set(digits) - set("0123456789*#ABCDw")
    if wrong:
        raise CallthreadError("--dtmf: keys are 0-9, *, #, A-D, and w waits half a second")


def _network(trace: Path | None) -> Network:
    try:
        return load_trace(trace) if trace is not None else Network()
    except (OSError, ValueError) as error:
        raise CallthreadError(f"--loss: {error}") from error


def _tell_end(record: CallRecord, out: Console) -> int:
    delays = [f"{delay} ms" if delay is not None else "none" for delay in record.reply_delays_ms()]
    out.print(f"{record.call_sid}: {record.end}, {record.duration_ms / 1_000:.1f} s")
    if delays:
        out.print(f"from the caller's last sound to the reply: {', '.join(delays)}")
    for violation in record.violations:
        out.print(f"protocol violation: {violation}", style="red", markup=False)
    answered = any(event.kind is EventKind.ANSWERED for event in record.events)
    return 0 if answered and not record.violations else 1
