"""`ivr bench chaos` on the command line."""

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from ivr import observe
from ivr.bench.chaos import Run, carry_out, is_lost, plan, world
from ivr.bench.chaos_report import figures, kept, left_behind
from ivr.phone.record import CallRecord
from ivr.server import run

OnRun = Callable[[Run, CallRecord], None]
out = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add it to `ivr bench`."""
    app.command("chaos")(chaos)


def chaos(
    runs: Annotated[int, typer.Option(min=1, max=9_999, help="Calls, each with a failure of its own.")] = 200,
    seed: Annotated[int, typer.Option(help="Decides what fails, and when.")] = 1,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
) -> None:
    """Break model, workers, database and lines under live calls, and count what the callers lost.

    Two workers (processes) on one database, eight calls at once. The model is a stand-in that repeats numbers; the
    telephone network is simulated. About 10 minutes for 200 runs.

    Example: ivr bench chaos --runs 200 --seed 1 --json chaos.json
    """
    observe.configure("critical", "console")
    found = run(measure(runs, seed, tell))
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    out.print(table(found))


async def measure(runs: int, seed: int, on_run: OnRun) -> dict[str, Any]:
    """The figures. Raises: `CallthreadError` if the world cannot be set up."""
    planned = plan(runs, seed)
    with tempfile.TemporaryDirectory(prefix="ivr-chaos-") as folder:
        async with world(Path(folder)) as place:
            await carry_out(place, planned, seed, on_run)
            pages = await kept(place, planned)
            return figures(place, planned, pages, await left_behind(place))


def tell(one: Run, record: CallRecord) -> None:
    """A line for each call."""
    verdict = "[red]LOST[/red]" if is_lost(one, record) else "kept"
    seconds = record.duration_ms / 1_000
    out.print(
        f"{one.no:4}  {verdict}  {seconds:5.1f} s  {one.failure} at {one.after_s:.1f} s: {record.end}",
        style="dim",
    )


def table(found: dict[str, Any]) -> Table:
    """The figures for people."""
    made = Table(title="ivr bench chaos (the model is a stand-in that repeats numbers)")
    made.add_column("figure")
    made.add_column("value", justify="right")
    for name, value in found.items():
        made.add_row(name, str(value if not hasattr(value, "items") else dict(value)))
    return made
