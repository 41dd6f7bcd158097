"""`ivr bench turns` on the command line."""

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ivr import observe
from ivr.bench import turns_report
from ivr.bench.turns import Plan, measure
from ivr.bench.turns_data import load_recordings, load_traces
from ivr.bench.turns_figures import by_set
from ivr.bench.turns_policies import Policy
from ivr.errors import CallthreadError

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
    if plot is not None and plot.suffix.lower() != ".svg":
        raise CallthreadError(f"--plot {plot}: only SVG is written; name it *.svg")
    chosen = tuple(dict.fromkeys([*(policies or ()), *(more_policies or ())])) or tuple(Policy)
    plan = Plan(
        policies=chosen,
        offsets=min(offsets, QUICK_OFFSETS) if quick else offsets,
        bursts=min(bursts, QUICK_BURSTS) if quick else bursts,
        seed=seed,
        goes_on=goes_on,
    )
    recordings, traces = load_recordings(speech), load_traces(loss)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task(f"{len(recordings)} recordings × {len(traces)} traces", total=None)
        rows = measure(
            recordings,
            traces,
            plan,
            processes,
            lambda done, of: progress.update(task, completed=done, total=of),
        )
    sets = by_set(rows, chosen)
    if csv is not None:
        turns_report.write_csv(rows, csv)
    if json is not None:
        turns_report.write_json(sets, plan, json)
    if plot is not None:
        turns_report.write_plot(sets, plot)
    turns_report.show(sets, out)
