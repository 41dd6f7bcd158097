"""`ivr bench cost` on the command line: table, JSON, CSV, plot, and whether the goals hold."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ivr import observe
from ivr.bench.chart import Axis, line_chart
from ivr.bench.cost import Assumptions, Row, slope_share_per_h
from ivr.bench.cost_run import HISTORY_MIN, Equal, Growth, Plan, grow, joined, said_min
from ivr.bench.locomo import Dialogue, load_dialogues
from ivr.bench.memory_world import memory_world
from ivr.bench.running import run, stepper
from memory.costs import PRICES, is_estimate
from memory.strategies import StrategyName

OURS, FULL = StrategyName.VTHREADS, StrategyName.FULL
AT_MIN = 58.0
TIMES_BELOW_FULL = 25.0
SLOPE_MAX = 0.01
FULL_SHARE = 0.9
"""A window is full once so much of its budget is used: the next page would seldom fit."""
out = Console(highlight=False)


class Goals(msgspec.Struct, frozen=True):
    """The project's own goals, measured. None where the lengths asked for do not show it."""

    slope_share_per_h: float | None
    window_full_from_min: float | None
    times_below_full_at_58_min: float | None
    cheapest_at_equal_quality: dict[str, str]
    """By minutes of history."""


def register(app: typer.Typer) -> None:
    """Add it to `ivr bench`."""
    app.command("cost")(cost)


def cost(
    dataset: Annotated[
        Path | None,
        typer.Option(
            help="Dialogues in LoCoMo's format; without it the talk is made up.", exists=True, dir_okay=False
        ),
    ] = None,
    history: Annotated[
        list[float] | None, typer.Option(help="Minutes of the caller's audio; repeat. Default: 1 to 600.")
    ] = None,
    budget: Annotated[int, typer.Option(help="Tokens of the window.", min=300)] = 1_500,
    questions: Annotated[int, typer.Option(help="Questions asked at each length.", min=1)] = 60,
    model: Annotated[
        str, typer.Option(help="Whose prices: a model of memory/prices.toml.")
    ] = Assumptions().model,
    prefix: Annotated[int, typer.Option(help="Assumed tokens of instructions and functions.")] = 1_200,
    second_share: Annotated[
        float, typer.Option(help="Assumed share of turns with a second response.")
    ] = 0.15,
    retry_share: Annotated[float, typer.Option(help="Assumed share of turns asked for again.")] = 0.02,
    json: Annotated[Path | None, typer.Option("--json", help="Write the figures as JSON.")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the figures as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Write a plot (SVG).")] = None,
    keep: Annotated[
        Path | None, typer.Option(help="Folder that keeps the exported embedding model and its vectors.")
    ] = None,
) -> None:
    """What a turn costs by how much was said before, for every memory strategy, and at equal quality.

    Windows are made by the real memory; prices are estimates from its table, no model is called.

    Example: ivr bench cost --dataset locomo-dev.json --json cost.json --plot cost.svg
    """
    observe.configure("error", "console")
    given = Assumptions(model, prefix_tokens=prefix, second_share=second_share, retry_share=retry_share)
    plan = Plan(tuple(sorted(history or HISTORY_MIN)), budget, questions, given=given)
    growth = run(_grow(load_dialogues(dataset) if dataset else [], plan, keep))
    goals = goals_of(growth)
    if json is not None:
        json.write_bytes(msgspec.json.format(msgspec.json.encode(as_json(growth, goals, plan))))
    if csv_file is not None:
        csv_file.write_text(as_csv(growth.rows), encoding="utf-8")
    if plot is not None:
        plot.write_text(as_svg(growth.rows), encoding="utf-8")
    _print(growth, goals, plan)


async def _grow(dialogues: Sequence[Dialogue], plan: Plan, keep: Path | None) -> Growth:
    pages = joined(dialogues, max(plan.history_min)).dialogue.pages
    total, minutes = 0, 0.0
    while total < len(pages) and minutes < max(plan.history_min):
        minutes += said_min(pages[total])
        total += 1
    with Progress(console=Console(stderr=True), transient=True) as progress:
        step = stepper(progress, "Talking and asking", total + plan.questions * len(plan.history_min))
        async with memory_world(keep, vectors_kept=True) as world:
            return await grow(
                world,
                dialogues,
                plan,
                step,
                lambda line: progress.console.print(line, style="dim"),
            )


def goals_of(growth: Growth) -> Goals:
    """Flat once the window is full; far below the full history; cheapest at equal quality."""
    ours = growth.rows[OURS]
    full_from = next(
        (row.history_min for row in ours if row.tokens >= FULL_SHARE * (row.budget_tokens or 0)), None
    )
    slope = None if full_from is None else slope_share_per_h(ours, full_from)
    uncached = {row.history_min: row.usd_per_turn for row in growth.rows[FULL] if row.cached_share == 0.0}
    at_58 = {row.history_min: row.usd_per_turn for row in ours}.get(AT_MIN)
    return Goals(
        None if slope is None else round(slope, 5),
        full_from,
        round(uncached[AT_MIN] / at_58, 2) if at_58 else None,
        _cheapest(growth.equal),
    )


def _cheapest(equal: Mapping[str, Sequence[Equal]]) -> dict[str, str]:
    by_length: dict[float, list[tuple[float, str]]] = {}
    for name, rows in equal.items():
        for row in rows:
            if row.usd_per_turn is not None:
                by_length.setdefault(row.history_min, []).append((row.usd_per_turn, name))
    return {f"{minutes:g}": min(prices)[1] for minutes, prices in by_length.items()}


def as_json(growth: Growth, goals: Goals, plan: Plan) -> dict[str, Any]:
    """For programs."""
    return {
        "strategies": growth.rows,
        "equal_quality": growth.equal,
        "goals": goals,
        "assumptions": {
            **{name: getattr(plan.given, name) for name in Assumptions.__slots__},
            "input_limit_tokens": plan.given.price.input_limit_tokens,
            "prices_of": PRICES.date,
            "prices_are_estimates": is_estimate(plan.given.model),
        },
        "questions": {f"{minutes:g}": count for minutes, count in growth.questions.items()},
        "threads_a_page": {f"{minutes:g}": mean for minutes, mean in growth.threads_a_page.items()},
        "made_up_from_min": growth.made_up_from_min,
    }


def as_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """One line a strategy, length and cached share."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = ("history_min", "cached_share", "usd_per_turn", "tokens", "hit", "verbatim", "beyond_limit")
    parts = ("input", "output", "transcription", "summaries", "seconds_and_retries")
    forms = ("audio", "transcript", "summary", "omitted")
    writer.writerow(["strategy", *columns, *(f"usd_{part}" for part in parts), *forms])
    for name, listed in rows.items():
        for row in listed:
            figures = [getattr(row, column) for column in columns]
            usd = [round(getattr(row.usd, part), 6) for part in parts]
            writer.writerow([name, *figures, *usd, *(row.forms[form] for form in forms)])
    return text.getvalue()


def as_svg(rows: Mapping[str, Sequence[Row]]) -> str:
    """Cost a turn by history; the full history once a cached share."""
    series: dict[str, list[tuple[float, float]]] = {}
    for name, listed in rows.items():
        for row in listed:
            label = f"{name}, {row.cached_share:.0%} cached" if name == FULL else str(name)
            series.setdefault(label, []).append((row.history_min, row.usd_per_turn))
    across, up = Axis("minutes of the caller's audio before", log=True), Axis("US dollars a turn", log=True)
    return line_chart("What a turn costs", across, up, series)


def _print(growth: Growth, goals: Goals, plan: Plan) -> None:
    given = plan.given
    out.print(_cost_table(growth, plan))
    out.print(_quality_table(growth))
    if growth.equal:
        out.print(_equal_table(growth))
    limit = given.price.input_limit_tokens
    out.print(
        f"Prices: {given.model}, memory/prices.toml of {PRICES.date}. Full history is cut at {limit:,} tokens, what the"
        f" model takes in; marked * where that lost the oldest. Assumed, the same for all: {given.prefix_tokens} tokens"
        f" of instructions and functions, {given.second_share:.0%} second responses, {given.retry_share:.0%} retries."
    )
    if growth.made_up_from_min is not None:
        out.print(f"From {growth.made_up_from_min:.0f} minutes on the talk is made up, facts and all.")
    times = goals.times_below_full_at_58_min
    slope = "–" if goals.slope_share_per_h is None else f"{goals.slope_share_per_h:+.2%}"
    out.print(
        f"Goals: slope {slope} an hour once the window is full (below {SLOPE_MAX:.0%});"
        f" {times if times is not None else '–'} times below uncached full history at {AT_MIN:g} minutes (at least"
        f" {TIMES_BELOW_FULL:g}); cheapest at equal quality: "
        + ", ".join(f"{name} at {minutes}" for minutes, name in goals.cheapest_at_equal_quality.items())
        + " minutes."
    )


def _lengths(growth: Growth) -> list[float]:
    return [row.history_min for row in growth.rows[OURS]]


def _cost_table(growth: Growth, plan: Plan) -> Table:
    table = Table(title=f"US cents a turn, by minutes said before; {plan.budget_tokens} tokens", box=None)
    table.add_column("strategy", no_wrap=True)
    for minutes in _lengths(growth):
        table.add_column(f"{minutes:g}", justify="right", no_wrap=True)
    for name, listed in growth.rows.items():
        for share in dict.fromkeys(row.cached_share for row in listed):
            label = f"{name} {share:.0%} cached" if name == FULL else str(name)
            cells = (
                f"{row.usd_per_turn * 100:.2f}{'*' if row.beyond_limit else ''}"
                for row in listed
                if row.cached_share == share
            )
            table.add_row(label, *cells)
    return table


def _quality_table(growth: Growth) -> Table:
    table = Table(title="Found word for word / in any form, same budget", box=None)
    table.add_column("strategy", no_wrap=True)
    for minutes in _lengths(growth):
        table.add_column(f"{minutes:g}", justify="right", no_wrap=True)
    for name, listed in growth.rows.items():
        cells = (
            "–" if row.verbatim is None else f"{row.verbatim:.2f}/{row.hit:.2f}"
            for row in listed
            if row.cached_share == 0.0
        )
        table.add_row(str(name), *cells)
    return table


def _equal_table(growth: Growth) -> Table:
    lengths = [row.history_min for row in growth.equal.get(OURS, [])]
    table = Table(
        title="US cents a turn at equal quality: the budget that finds what ours finds; no audio of old turns",
        box=None,
    )
    table.add_column("strategy", no_wrap=True)
    for minutes in lengths:
        table.add_column(f"{minutes:g}", justify="right", no_wrap=True)
    for name, listed in growth.equal.items():
        cells = (
            f"cannot ({row.verbatim:.2f})" if row.usd_per_turn is None else f"{row.usd_per_turn * 100:.2f}"
            for row in listed
        )
        table.add_row(str(name), *cells)
    return table
