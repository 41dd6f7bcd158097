"""What `ivr bench recall` prints and writes: table, JSON, CSV, plot, windows."""

import csv
import io
from collections.abc import Iterable

import msgspec
from rich.table import Table

from ivr.bench.chart import Axis, line_chart
from ivr.bench.recall import Answer, Scores

PAPER_HITS = {
    "vthreads": (0.869, 0.753),
    "page-rag": (0.685, 0.341),
    "hybrid-rag": (0.650, 0.370),
    "compaction": (1.0, 1.0),
    "hierarchical": (0.996, 0.696),
    "full": (1.0, 1.0),
}
"""The paper's hit rates on its own 5- and 58-minute sessions: other dialogues than these."""
RATES = ("hit", "hit_single", "hit_multi", "verbatim", "verbatim_multi")
FORMS = ("audio", "transcript", "summary")


def table(found: Scores, title: str) -> Table:
    """For people."""
    shown = Table(title=title, box=None)
    shown.add_column("strategy", no_wrap=True)
    for column in (
        "budget",
        "hit",
        "multi",
        "verbatim",
        "multi",
        "tokens",
        "audio",
        "text",
        "sum.",
    ):
        shown.add_column(column, justify="right", no_wrap=True)
    for strategy, budgets in found.items():
        for budget, score in budgets.items():
            rates = (f"{getattr(score, rate):.3f}" for rate in RATES if rate != "hit_single")
            pages = (f"{score.pages[form]:.1f}" for form in FORMS)
            shown.add_row(strategy, str(budget), *rates, f"{score.tokens:.0f}", *pages)
    paper = ", ".join(f"{name} {short:.3f} / {long:.3f}" for name, (short, long) in PAPER_HITS.items())
    shown.caption = (
        f"audio, text, sum.: pages in that form. full has no budget. The paper's hit rates, on its own 5- and "
        f"58-minute sessions: {paper}; those of compaction and hierarchical as summaries, as here."
    )
    return shown


def as_csv(found: Scores) -> str:
    """One line a strategy and budget."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["strategy", "budget", "n", *RATES, "tokens", *FORMS])
    for strategy, budgets in found.items():
        for budget, score in budgets.items():
            rates = [getattr(score, rate) for rate in RATES]
            writer.writerow(
                [strategy, budget, score.n, *rates, score.tokens, *(score.pages[form] for form in FORMS)]
            )
    return text.getvalue()


def as_svg(found: Scores, title: str) -> str:
    """Verbatim against tokens in the window."""
    series = {
        str(strategy): sorted((score.tokens, score.verbatim) for score in budgets.values())
        for strategy, budgets in found.items()
    }
    return line_chart(title, Axis("tokens in the window", log=True), Axis("verbatim"), series)


def as_jsonl(answers: Iterable[Answer]) -> bytes:
    """Every window, one JSON a line: the ordered texts with form and the ids of the turns they are of."""
    return b"".join(msgspec.json.encode(answer) + b"\n" for answer in answers)
