"""What `ivr bench rate` shows and writes: a table, bars, JSON and CSV."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from io import StringIO
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from ivr.bench.files import Files
from ivr.bench.rate import Figures, Mode, Row, by_mode, figures

PAPER = {Mode.OFF: 38.26, Mode.ON: 18.23}
"""The paper's MAE, words a minute, on other speech with another voice."""
GOAL_WPM = 14.0
GOAL_CUT = 0.6
NOTES = (
    "The replies are fixed texts of 50 words and more, spoken by the sandbox's voice: this measures the matching of "
    "speaking rates, and tells nothing of a language model.",
    "In every turn the caller says the same recording again.",
)
_BAR_WIDTH = 40


def cut_of(by: Mapping[Mode, Figures]) -> float:
    """By which share `on` is below `off`."""
    return 1 - by[Mode.ON].mae_wpm / by[Mode.OFF].mae_wpm


def show(rows: Sequence[Row], left_out: Sequence[str], out: Console) -> None:
    """Everything for people."""
    by = by_mode(rows)
    out.print(table(by))
    bars(rows, out)
    cut = cut_of(by)
    met = by[Mode.ON].mae_wpm <= GOAL_WPM and cut >= GOAL_CUT
    out.print(
        f"On is {cut:.0%} below off; goal: at most {GOAL_WPM:g} words a minute and at least {GOAL_CUT:.0%} below: "
        f"{'met' if met else 'missed'}."
    )
    if left_out:
        out.print(
            f"Left out, for their words cannot be counted as a rate: {', '.join(left_out)}.", style="dim"
        )
    for note in NOTES:
        out.print(note, style="dim")


def table(by: Mapping[Mode, Figures]) -> Table:
    """Errors of both sides, words a minute."""
    rows = Table(title="Reply's speaking rate less caller's, words a minute")
    for heading in (
        "orchestration",
        "replies",
        "MAE",
        "median",
        "p95",
        "mean error",
        "caller's rate known to",
    ):
        rows.add_column(heading, justify="left" if heading == "orchestration" else "right")
    rows.add_column("paper's MAE", justify="right", style="dim")
    for mode, f in by.items():
        known = "–" if f.estimate_mae_wpm is None else f"±{f.estimate_mae_wpm:.1f}"
        shown = (f.mae_wpm, f.median_wpm, f.p95_wpm)
        cells = [*(f"{value:.2f}" for value in shown), f"{f.bias_wpm:+.2f}", known, f"{PAPER[mode]:.2f}"]
        rows.add_row(mode, str(f.n), *cells)
    return rows


def bars(rows: Sequence[Row], out: Console) -> None:
    """MAE by turn of the call: what the voice's own replies teach."""
    turns = sorted({row.turn for row in rows})
    maes = {
        (mode, turn): figures([r for r in rows if (r.mode, r.turn) == (mode, turn)]).mae_wpm
        for mode in Mode
        for turn in turns
    }
    most = max(maes.values())
    for (mode, turn), mae_wpm in maes.items():
        out.print(f"{mode:>4}, turn {turn} {'█' * round(_BAR_WIDTH * mae_wpm / (most or 1))} {mae_wpm:.1f}")


def write(rows: Sequence[Row], left_out: Sequence[str], how: Mapping[str, object], files: Files) -> None:
    """Everything that is wanted."""
    if files.csv is not None:
        write_csv(rows, files.csv)
    if files.json is not None:
        write_json(rows, left_out, how, files.json)
    if files.plot is not None:
        write_plot(rows, files.plot)


def write_json(rows: Sequence[Row], left_out: Sequence[str], how: Mapping[str, object], path: Path) -> None:
    """`off.mae_wpm`, `on.mae_wpm`, `n` (replies in each mode), and more of each."""
    by = by_mode(rows)
    report = {
        **{mode.value: asdict(f) for mode, f in by.items()},
        "n": by[Mode.ON].n,
        "cut": round(cut_of(by), 4),
        "paper": {mode.value: {"mae_wpm": mae_wpm} for mode, mae_wpm in PAPER.items()},
        "left_out": list(left_out),
        "how": how,
        "notes": NOTES,
    }
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """A line a reply."""
    names = [field.name for field in fields(Row)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "error_wpm"])
        writer.writerows([*(getattr(row, name) for name in names), row.error_wpm] for row in rows)


def write_plot(rows: Sequence[Row], path: Path) -> None:
    """Table and bars as an SVG."""
    canvas = Console(record=True, width=130, file=StringIO(), highlight=False)
    canvas.print(table(by_mode(rows)))
    bars(rows, canvas)
    canvas.save_svg(str(path), title="ivr bench rate")
