"""`ivr bench rate` on the command line."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from callflows.model import Business
from callflows.parse import load_folder
from ivr import observe
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.bench import rate_report
from ivr.bench.files import Files, progress_bar
from ivr.bench.rate import Mode, Row, callers_of, measure
from ivr.bench.rate_profile import COARSE, measure_voice
from ivr.bench.rate_texts import PASSAGES
from ivr.bench.rate_world import Hear, Speak
from ivr.bench.turns_data import load_recordings
from ivr.core.speaking import VoiceProfile
from ivr.core.units import LINE_RATE_HZ
from ivr.errors import CallthreadError
from ivr.places import SHIPPED_FLOWS
from ivr.sandbox.ear import Ear
from ivr.sandbox.voice import Voice
from ivr.server import run
from ivr.settings import ModelSource
from ivr.voicebook import as_toml, voices_of

out = Console(highlight=False)
BUSINESS = "harbor-dental"
"""In English, and it begins with talk."""
HOW = (
    "Measured by `ivr bench rate --measure`: the passages of ivr/bench/rate_texts.py at each speed; "
    "words a minute\nof all of them together. No recording and no reply of the bench is among them."
)


def register(app: typer.Typer) -> None:
    """Add the bench to `ivr bench`."""
    app.command("rate")(rate)


def rate(
    speech: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Recordings (WAV); texts beside them: .json, .TextGrid, .txt."
        ),
    ] = None,
    profile: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="The voice's table (TOML). Default: the one that ships."
        ),
    ] = None,
    voice: Annotated[str, typer.Option(help="A voice of the sandbox.")] = "marin",
    turns: Annotated[int, typer.Option(min=1, help="Replies to each caller, one call each.")] = 3,
    measure_file: Annotated[
        Path | None,
        typer.Option("--measure", help="Measure the voice's table and write it here; nothing else."),
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a line for each reply.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write table and bars as an SVG.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
) -> None:
    """How near the replies' speaking rate is to the caller's, orchestration off and on. Paper: 38.26 → 18.23.

    Recorded callers, through the sandbox's ear and the service's own call core; replies by the sandbox's voice at the
    speed that the core set, measured on the audio that came out. Needs the extra `sandbox`.

    Example: ivr bench rate --speech recordings --json rate.json --plot rate.svg

    Example: ivr bench rate --measure voices.toml --voice cedar
    """
    observe.configure("error", "console")
    files = Files(csv, plot, json)
    if measure_file is not None:
        _write_voice(voice, measure_file)
        return
    if speech is None:
        raise CallthreadError(
            "--speech names the folder of recordings (or --measure the file for a voice's table)"
        )
    table = voices_of(ModelSource.SANDBOX, profile).of(voice)
    if table is None:
        raise CallthreadError(f"--profile {profile}: there is no table for the voice {voice}")
    rows, left_out = run(_bench(speech, table, voice, turns))
    if not rows:
        raise CallthreadError(f"{speech}: no recording whose speaking rate is known")
    from_file = profile.name if profile else "shipped"
    how = {"voice": voice, "turns": turns, "profile": from_file, "table": table.points}
    rate_report.write(rows, left_out, how, files)
    rate_report.show(rows, left_out, out)


def _write_voice(voice: str, file: Path) -> None:
    found = run(_measure_voice(voice))
    file.write_text(as_toml({voice: found}, HOW), encoding="utf-8")
    out.print(f"{voice}: {len(found.points)} points in {file}", soft_wrap=True)


async def _measure_voice(voice: str) -> VoiceProfile:
    async with Voice() as speaker:
        with progress_bar() as progress:
            task = progress.add_task(f"{len(PASSAGES)} passages at each speed", total=len(COARSE))
            return await measure_voice(speaker.speak, voice, step=lambda: progress.advance(task))


async def _bench(speech: Path, table: VoiceProfile, voice: str, turns: int) -> tuple[list[Row], list[str]]:
    recordings = load_recordings(speech)
    clinic: Business = load_folder(SHIPPED_FLOWS).businesses[BUSINESS]
    business = clinic.model_copy(update={"voice": voice})
    async with Ear() as ear, Voice() as speaker:
        hear, speak = _remembering(ear), _repeating(speaker.speak)
        with progress_bar() as progress:
            task = progress.add_task("Callers", total=len(recordings))
            callers, left_out = await callers_of(recordings, hear, lambda: progress.advance(task))
            total = len(callers) * len(Mode) * turns
            task = progress.add_task("Replies", total=total)
            rows = await measure(callers, business, table, turns, hear, speak, lambda: progress.advance(task))
    return rows, left_out


def _remembering(ear: Ear) -> Hear:
    """The same sound is heard once: turns and modes repeat it."""
    known: dict[bytes, str] = {}

    async def hear(ulaw: bytes) -> str:
        if ulaw not in known:
            known[ulaw] = await ear.hear(ulaw_to_pcm16(ulaw), LINE_RATE_HZ)
        return known[ulaw]

    return hear


def _repeating(speak: Callable[[str, str, float], Awaitable[bytes]]) -> Speak:
    """The voice says the same text at the same speed in the same way: once is enough."""
    known: dict[tuple[str, str, float], bytes] = {}

    async def repeat(text: str, voice: str, speed: float) -> bytes:
        key = (text, voice, speed)
        if key not in known:
            known[key] = await speak(text, voice, speed)
        return known[key]

    return repeat
