"""`ivr bench turns` on the command line."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ivr import observe
from ivr.bench import turns_report
from ivr.bench.files import Files, progress_bar
from ivr.bench.turns import Plan, Row, measure
from ivr.bench.turns_data import load_recordings, load_traces
from ivr.bench.turns_figures import by_set
from ivr.bench.turns_policies import Policy

QUICK_OFFSETS, QUICK_BURSTS = 1, 100
out = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add the bench to `ivr bench`."""
    app.command("turns")(turns)


def turns(
    speech: Annotated[
        Path,
        typer.Option(
            exists=True, file_okay=False, help="Recordings (WAV), with .json, .TextGrid or .txt beside."
        ),
    ],
    loss: Annotated[
        Path,
        typer.Option(
            exists=True, file_okay=False, help="Traces: *.txt with 0/1 lines, *.delay_ms.txt with delays."
        ),
    ],
    policies: Annotated[
        list[Policy] | None, typer.Option(help="Only these; may have several. Default: all.")
    ] = None,
    more_policies: Annotated[list[Policy] | None, typer.Argument(hidden=True)] = None,
    offsets: Annotated[
        int, typer.Option(min=1, help="Places in a trace at which each recording begins.")
    ] = 10,
    bursts: Annotated[
        int,
        typer.Option(
            min=0, help="Draw more offsets until so many pairs have a burst, if the traces have any."
        ),
    ] = 600,
    seed: Annotated[int, typer.Option(help="Another seed draws other offsets and decision times.")] = 1,
    goes_on: Annotated[
        bool, typer.Option("--goes-on", help="Losses go on behind the recording, while an answer is awaited.")
    ] = False,
    processes: Annotated[int, typer.Option("--jobs", min=1, help="Processes.")] = os.cpu_count() or 1,
    quick: Annotated[bool, typer.Option("--quick", help="One offset, 100 bursts: a sample.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write a line for each simulated call.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write tables and bars as an SVG.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
) -> None:
    """Turn-taking on lossy lines: false interruptions, delay and cost of each policy, in simulated time.

    Each recording runs over each trace through the service's own call core; no model, socket or database is used.

    Example: ivr bench turns --speech recordings --loss traces --json turns.json --plot turns.svg
    """
    observe.configure("error", "console")
    files = Files(csv, plot, json)
    chosen = tuple(dict.fromkeys([*(policies or ()), *(more_policies or ())])) or tuple(Policy)
    plan = Plan(
        policies=chosen,
        offsets=min(offsets, QUICK_OFFSETS) if quick else offsets,
        bursts=min(bursts, QUICK_BURSTS) if quick else bursts,
        seed=seed,
        goes_on=goes_on,
    )
    rows = _measured(speech, loss, plan, processes)
    sets = by_set(rows, chosen)
    turns_report.write(rows, sets, plan, files)
    turns_report.show(sets, out)


def _measured(speech: Path, loss: Path, plan: Plan, processes: int) -> list[Row]:
    recordings, traces = load_recordings(speech), load_traces(loss)
    with progress_bar() as progress:
        task = progress.add_task(f"{len(recordings)} recordings × {len(traces)} traces", total=None)

        def shown(done: int, of: int) -> None:
            progress.update(task, completed=done, total=of)

        return measure(recordings, traces, plan, processes, shown)
