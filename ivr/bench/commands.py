"""`ivr bench …`: what the project claims, measured."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from callflows.parse import load_folder
from ivr import observe
from ivr.bench import (
    chaos_command,
    conceal,
    cost_command,
    media_report,
    memory_commands,
    rate_commands,
    threads_command,
    turns_commands,
)
from ivr.bench.media import Plan, ServerKind, measure
from ivr.bench.stages import measure_stages
from ivr.places import SHIPPED_FLOWS
from ivr.server import run

bench_app = typer.Typer(help="Measurements: cost, delay, quality.", no_args_is_help=True)
memory_commands.register(bench_app)
cost_command.register(bench_app)
threads_command.register(bench_app)
turns_commands.register(bench_app)
rate_commands.register(bench_app)
chaos_command.register(bench_app)
out = Console(highlight=False)


@bench_app.command("media")
def media_command(
    calls: Annotated[
        list[int] | None, typer.Option(min=1, help="Calls at once; repeat. Default: 1, 10, 20, 50.")
    ] = None,
    server: Annotated[list[ServerKind] | None, typer.Option(help="Only these; repeat.")] = None,
    seconds: Annotated[
        float, typer.Option(min=5, help="How long each is measured, all rounds together.")
    ] = 20.0,
    rounds: Annotated[int, typer.Option(min=1, help="How often the servers take turns.")] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures here too.")] = None,
) -> None:
    """CPU, delay and memory of a call: the whole service on one core, beside two bridges of the usual kind.

    Example: ivr bench media --calls 10 --calls 50 --json media.json
    """
    observe.configure("error", "console")
    plan = Plan(tuple(calls or (1, 10, 20, 50)), seconds, rounds, tuple(server or ServerKind))
    stages = measure_stages(next(iter(load_folder(SHIPPED_FLOWS).businesses.values())))
    results = run(measure(plan, lambda line: out.print(line, style="dim")))
    media_report.show(results, stages, out)
    if json_file is not None:
        media_report.write_json(results, stages, json_file)


@bench_app.command("conceal")
def conceal_command(
    speech: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="A folder of clean speech (WAV).")
    ],
    loss: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="A folder of loss traces (0/1 lines).")
    ],
) -> None:
    """Concealed speech against the clean speech, beside silence and repeated frames.

    Example: ivr bench conceal --speech recordings --loss traces
    """
    scores = conceal.measure(conceal.load_speech(speech), conceal.load_losses(loss))
    out.print(conceal.table(scores))
    pairs = sum(len(by_clip) for by_clip in scores.values())
    out.print(
        f"Ours is nearest in {pairs - len(conceal.not_best(scores))} of {pairs} pairs of trace and recording."
    )
