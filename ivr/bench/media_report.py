"""The media bench's results for people (tables, bars) and for programs (JSON)."""

import json
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ivr.bench.media import Figures, Results, ServerKind
from ivr.bench.stages import Stage

BAR_WIDTH = 50
CARRIED_P99_MS = 40.0
"""A core carries as many calls as have no more added delay each way: two frames, an eighth of what is played ahead."""


def show(results: Results, stages: Sequence[Stage], out: Console) -> None:
    """Print everything."""
    out.print(_table(results))
    _plot(results, out)
    _compare(results, out)
    _advise(results.get(ServerKind.OURS, {}), out)
    out.print(_stage_table(stages))


def write_json(results: Results, stages: Sequence[Stage], path: Path) -> None:
    """Write `servers.KIND.calls.N.{cpu_ms_per_call_s, in_ms, out_ms, rss_mb_per_call}`. Raises: `OSError`."""
    servers = {
        kind: {"calls": {str(calls): _figures(figures) for calls, figures in by_calls.items()}}
        for kind, by_calls in results.items()
    }
    costs = {stage.name: {"us": stage.us, "per_s": stage.per_s} for stage in stages}
    path.write_text(json.dumps({"servers": servers, "stages": costs}, indent=2) + "\n")


def _figures(figures: Figures) -> dict[str, object]:
    return {
        "cpu_ms_per_call_s": figures.cpu_ms_per_call_s,
        "in_ms": {"p50": figures.in_ms.p50, "p99": figures.in_ms.p99},
        "out_ms": {"p50": figures.out_ms.p50, "p99": figures.out_ms.p99},
        "rss_mb_per_call": figures.rss_mb_per_call,
        "replies": figures.replies,
        "peers_late_ms": figures.peers_late_ms,
        "others_on_core": None if isnan(figures.others_on_core) else figures.others_on_core,
        "is_sound": figures.is_sound,
    }


def _table(results: Results) -> Table:
    table = Table(
        title="CPU: ms a call and second, the server's process. Delays: ms. Memory: MB a call.",
        caption="*: the machine was busy with other programs, or too slow for its own phones: not sound.",
    )
    for heading in ("server", "calls", "CPU", "in p50", "in p99", "out p50", "out p99", "memory"):
        table.add_column(heading, justify="left" if heading == "server" else "right", no_wrap=True)
    for kind, by_calls in results.items():
        for calls, f in by_calls.items():
            delays = (f.in_ms.p50, f.in_ms.p99, f.out_ms.p50, f.out_ms.p99)
            table.add_row(
                kind if f.is_sound else f"{kind} *",
                str(calls),
                f"{f.cpu_ms_per_call_s:.2f}",
                *(f"{ms:.1f}" for ms in delays),
                f"{f.rss_mb_per_call:.2f}",
            )
    return table


def _plot(results: Results, out: Console) -> None:
    """How the cost of a call grows with the number of calls."""
    most = max(f.cpu_ms_per_call_s for by_calls in results.values() for f in by_calls.values())
    for kind, by_calls in results.items():
        for calls, figures in by_calls.items():
            bar = "█" * round(BAR_WIDTH * figures.cpu_ms_per_call_s / most)
            out.print(f"{kind:>13} {calls:>4} calls {bar} {figures.cpu_ms_per_call_s:.1f}", highlight=False)


def _compare(results: Results, out: Console) -> None:
    """Ours against the goals, with as many calls as were tried."""
    ours = results.get(ServerKind.OURS, {})
    for calls, figures in ours.items():
        soxr = results.get(ServerKind.SOXR_BRIDGE, {}).get(calls)
        if soxr is not None:
            ratio = figures.cpu_ms_per_call_s / soxr.cpu_ms_per_call_s
            out.print(f"{calls} calls: {ratio:.2f} × the soxr bridge's CPU")
        plain = results.get(ServerKind.PASS_THROUGH, {}).get(calls)
        if plain is not None:
            inward, outward = (
                figures.in_ms.p99 - plain.in_ms.p99,
                figures.out_ms.p99 - plain.out_ms.p99,
            )
            out.print(
                f"{calls} calls: p99 against the pass-through's: in {inward:+.1f} ms, out {outward:+.1f} ms"
            )


def most_carried(ours: Mapping[int, Figures]) -> int | None:
    """The most calls that one core carried in time, and every smaller number tried too; None: not the fewest."""
    most = None
    for calls in sorted(ours):
        if max(ours[calls].in_ms.p99, ours[calls].out_ms.p99) > CARRIED_P99_MS:
            break
        most = calls
    return most


def _advise(ours: Mapping[int, Figures], out: Console) -> None:
    """What `IVR_MAX_CALLS` may be on this machine."""
    if not ours:
        return
    most, limit = most_carried(ours), f"{CARRIED_P99_MS:.0f} ms added each way at the 99th percentile"
    if most is None:
        out.print(f"One core here does not carry {min(ours)} calls within {limit}: try fewer --calls.")
    elif most == max(ours):
        out.print(f"One core here carries {most} calls within {limit}, maybe more: try more --calls.")
    else:
        out.print(f"One core here carries {most} calls within {limit}: IVR_MAX_CALLS={most}.")


def _stage_table(stages: Sequence[Stage]) -> Table:
    table = Table(title="What each step costs by itself")
    table.add_column("step")
    for heading in ("µs", "times / s", "ms / call-s"):
        table.add_column(heading, justify="right")
    for stage in stages:
        table.add_row(stage.name, f"{stage.us:.1f}", f"{stage.per_s:.0f}", f"{stage.ms_per_call_s:.2f}")
    return table
