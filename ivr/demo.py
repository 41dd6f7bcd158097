"""`ivr demo`: the whole service on this machine, and a simulated caller who is cut off and calls back."""

import asyncio
import contextlib
import os
import secrets
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from rich.console import Console

from ivr.errors import CallthreadError
from ivr.operate import opened
from ivr.phone.call import place_call
from ivr.phone.machine import Caller
from ivr.phone.record import CallEvent, CallRecord, EventKind
from ivr.phone.script import AfterReply, BargeIn, CallScript, DropLine, HangUp, Say, Step
from ivr.phone.service import Service
from ivr.processes import ChildFailed, child, free_port
from ivr.sandbox.voice import Voice
from ivr.settings import SANDBOX, Settings
from ivr.show import load_call, render_call
from ivr.simulate import utterance
from memory.calls import CallStatus

BUSINESS_NUMBER = "+16175550140"
CALLER = Caller("+12025550143")
READY_TIMEOUT_S = 120.0
DROPPED_TIMEOUT_S = 20.0
FIRST_CALL = (
    "Hello, what does a check-up cost?",
    "I can never come before ten in the morning.",
    "Where can I park my car?",
)
SECOND_CALL = (
    "Yes please. Where were we?",
    "What did I tell you about the morning?",
    "Thank you, goodbye.",
)
CLEARED = ("IVR_DATABASE_URL", "IVR_PUBLIC_URL", "IVR_CALLFLOWS", "IVR_AUDIO_URL", "OPENAI_API_KEY")
"""The demo stands on nothing of the operator's."""

SHOWN = {
    EventKind.ANSWERED: "the line is open",
    EventKind.CLEAR: "the service falls silent: the caller began to speak",
    EventKind.ENDED: "the call is over",
    EventKind.VIOLATION: "PROTOCOL VIOLATION",
}


@dataclass(frozen=True, slots=True)
class Stage:
    """The running service, as the demo's caller reaches it."""

    service: Service
    settings: Settings
    recordings: Path


async def run_demo(out: Console, keep: Path | None) -> None:
    """Tell the story. Raises: `CallthreadError` if any of it does not happen."""
    out.print(
        "[bold]callthread demo[/bold]: everything is real but the telephone network and the speech model."
    )
    out.print("The model is the offline sandbox: it quotes facts and memory, it is not a language model.\n")
    async with _stage(out, keep) as stage, Voice() as voice:
        first = await _steps(voice, FIRST_CALL)
        first[-1:] = [first[-1], DropLine(BargeIn(after_ms=1_500))]
        out.print("\n[bold]First call.[/bold] The line will drop in the middle of an answer.")
        one = await _call(out, stage, first, "first-call")
        await _until_dropped(stage.settings, one.call_sid)
        second = [*await _steps(voice, SECOND_CALL), HangUp(AfterReply(3_000))]
        out.print("\n[bold]The same caller dials again.[/bold]")
        two = await _call(out, stage, second, "second-call")
        await _tell(out, stage, one, two)


@contextlib.asynccontextmanager
async def _stage(out: Console, keep: Path | None) -> AsyncIterator[Stage]:
    with contextlib.ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="callthread-demo-")))
        folder.mkdir(parents=True, exist_ok=True)
        token, port = secrets.token_hex(16), free_port()
        env = {
            **dict.fromkeys(CLEARED, ""),
            "IVR_REALTIME_URL": SANDBOX,
            "IVR_DATA_DIR": str(folder),
            "IVR_LOG_LEVEL": os.environ.get("IVR_LOG_LEVEL", "error"),
            "TWILIO_AUTH_TOKEN": token,
        }
        settings = Settings.load(env)
        url = f"http://127.0.0.1:{port}"
        out.print(
            "Starting: PostgreSQL, migrations, Whisper and a voice for the model, embeddings, jobs, web …"
        )
        async with child(["ivr", "serve", "--port", str(port)], env) as process:
            await _until_ready(process, url)
            yield Stage(Service(url, token), settings, folder)


async def _until_ready(process: asyncio.subprocess.Process, url: str) -> None:
    async with aiohttp.ClientSession() as http, asyncio.timeout(READY_TIMEOUT_S):
        while True:
            if process.returncode is not None:
                raise ChildFailed(
                    f"the service ended with code {process.returncode}; its own words are above"
                )
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{url}/readyz") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.2)


async def _steps(voice: Voice, texts: tuple[str, ...]) -> list[Step]:
    spoken = [await utterance(voice, text) for text in texts]
    return [Say(u.ulaw, u.text, AfterReply()) for u in spoken]


async def _call(out: Console, stage: Stage, steps: list[Step], name: str) -> CallRecord:
    def tell(event: CallEvent) -> None:
        at = f"{event.at_ms / 1_000:6.1f} s  "
        if event.kind is EventKind.SAID:
            out.print(f"{at}[cyan]caller:[/cyan] {event.text}")
        elif event.kind is EventKind.HEARD:
            until_s = (event.until_ms or event.at_ms) / 1_000
            out.print(f"{at}[green]service speaks[/green] [dim]until {until_s:.1f} s[/dim]")
        elif event.kind in SHOWN:
            out.print(f"{at}[dim]{SHOWN[event.kind]} {event.text}[/dim]")

    recording = stage.recordings / f"{name}.wav"
    record = await place_call(
        stage.service,
        caller=CALLER,
        to=BUSINESS_NUMBER,
        script=CallScript(tuple(steps), hang_up_after_ms=120_000),
        on_event=tell,
        record_to=recording,
    )
    if record.violations:
        raise CallthreadError(f"the service broke Twilio's protocol: {'; '.join(record.violations)}")
    return record


async def _until_dropped(settings: Settings, call_sid: str) -> None:
    """The broken stream may come back for some seconds; then the call counts as dropped."""
    async with opened(settings) as store, asyncio.timeout(DROPPED_TIMEOUT_S):
        while True:
            row = await store.get_call(call_sid)
            if row is not None and row.status is not CallStatus.ACTIVE:
                return
            await asyncio.sleep(0.5)


async def _tell(out: Console, stage: Stage, one: CallRecord, two: CallRecord) -> None:
    async with opened(stage.settings) as store:
        views = [await load_call(store, record.call_sid) for record in (one, two)]
    out.print("\n[bold]What the service kept of it[/bold] (the same as `ivr calls show`):")
    for view in views:
        if view is None or not view.turns:
            raise CallthreadError("the calls left no turns in memory")
        out.print(render_call(view))
    if views[1] is None or views[1].call.resumed_from != one.call_sid:
        raise CallthreadError("the second call did not go on with the first")
    out.print("\n[green]The caller was cut off, called back, and was taken back to the topic.[/green]")
