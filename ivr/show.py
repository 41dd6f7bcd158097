"""What the command line prints of calls: tables for people, JSON for programs. Nothing secret, numbers masked."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from ivr.core.latency import STAGES
from ivr.observe import mask_number
from memory.calls import CallRow
from memory.model import Page
from memory.store import Store, TurnRecord

PRICES_NOTE = "estimate by memory/prices.toml"


@dataclass(frozen=True, slots=True)
class CallView:
    """One call with its turns."""

    call: CallRow
    turns: Sequence[TurnRecord]
    recalled: Mapping[int, Page]
    """The pages that were in any turn's window, of this call and of earlier ones, by id."""
    usd: float
    """All that it cost so far, also what is no turn's: greeting, prompts, cancelled replies, summaries."""


async def load_call(store: Store, call_sid: str) -> CallView | None:
    """The call and its turns, oldest first; `None` if it is not known."""
    row = await store.get_call(call_sid)
    if row is None:
        return None
    turns = await store.turns_of(row.owner, call_sid)
    wanted = {i for turn in turns for i in turn.states.get("window", {}).get("page_ids", [])}
    recalled = await store.pages_by_id(row.owner, sorted(wanted))
    usd = await store.spent_in_call(row.owner.business_id, call_sid)
    return CallView(row, turns, {page.page_id: page for page in recalled}, usd)


def as_json(view: CallView) -> str:
    """For programs."""
    call = view.call
    body = {
        "call_sid": call.call_sid,
        "business_id": call.business_id,
        "caller": mask_number(call.caller) if call.caller else None,
        "status": call.status.value,
        "ended_by": call.ended_by,
        "started_at": _iso(call.started_at),
        "ended_at": _iso(call.ended_at),
        "resumed_from": call.resumed_from,
        "usd": round(view.usd, 6),
        "latency_ms": latency_figures(view.turns),
        "turns": [_turn_json(turn) for turn in view.turns],
    }
    return json.dumps(body, ensure_ascii=False, indent=2)


def _turn_json(turn: TurnRecord) -> dict[str, Any]:
    page = turn.page
    return {
        "exchange_no": page.exchange_no,
        "heard": page.user_text,
        "said": page.reply_text,
        "interrupted": page.interrupted,
        "reply_heard": turn.states.get("heard", {}),
        "summary": page.summary,
        "first_audio_ms": turn.states.get("first_audio_ms"),
        "latency_ms": turn.states.get("latency_ms", {}),
        "window": turn.states.get("window", {}),
        "usage": turn.usage,
    }


def render_call(view: CallView) -> RenderableType:
    """For people: a heading, and a few lines a turn."""
    call = view.call
    who = mask_number(call.caller) if call.caller else "withheld"
    heading = Text(f"{call.call_sid}  {call.business_id}  from {who}  {call.ending}", style="bold")
    if call.resumed_from:
        heading.append(f"\n  goes on with {call.resumed_from}", style="cyan")
    total = Text(f"  {len(view.turns)} turns, about ${view.usd:.4f} ({PRICES_NOTE})", style="dim")
    delays = [Text(f"  {line}", style="dim") for line in _delay_lines(latency_figures(view.turns))]
    return Group(heading, *(_render_turn(turn, view.recalled) for turn in view.turns), total, *delays)


def latency_figures(turns: Sequence[TurnRecord]) -> dict[str, dict[str, float]]:
    """By stage of a turn: how many turns had it, its sum, median and 95th percentile, ms."""
    by_stage = {
        stage: [ms for turn in turns if (ms := turn.states.get("latency_ms", {}).get(stage)) is not None]
        for stage in STAGES
    }
    return {
        stage: {
            "n": len(values),
            "sum": round(sum(values), 1),
            "p50": round(_quantile(values, 0.5), 1),
            "p95": round(_quantile(values, 0.95), 1),
        }
        for stage, values in by_stage.items()
        if values
    }


def _quantile(values: Sequence[float], share: float) -> float:
    """Linear between the two values around it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def _delay_lines(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    if figures:
        shown = ", ".join(f"{stage} {f['p50']:.0f} / {f['p95']:.0f}" for stage, f in figures.items())
        yield f"delay by stage, ms, median / 95th percentile: {shown}"


def _render_turn(turn: TurnRecord, known: Mapping[int, Page]) -> RenderableType:
    page, window = turn.page, turn.states.get("window", {})
    lines = Table.grid(padding=(0, 1))
    lines.add_column(justify="right", style="dim", min_width=9)
    lines.add_column(overflow="fold")
    lines.add_row(f"{page.exchange_no} heard", Text(page.user_text or "—"))
    said = Text(page.reply_text or "—", style="green")
    if page.interrupted:
        said.append(f"  [cut off here{_how_far(turn.states.get('heard', {}))}]", style="yellow")
    lines.add_row("said", said)
    lines.add_row("window", _window_line(window))
    for page_id, form in zip(window.get("page_ids", []), window.get("page_forms", []), strict=False):
        if page_id in known:
            lines.add_row("", Text(f"{form}: {_brief(known[page_id], turn.page.call_id)}", style="dim"))
    lines.add_row("cost", _cost_line(turn))
    delay_ms = turn.states.get("first_audio_ms")
    heard = (
        f"first audio {delay_ms:.0f} ms after the last word" if delay_ms is not None else "nothing was heard"
    )
    lines.add_row("delay", heard + _budget(turn.states.get("latency_ms", {})))
    return lines


def _budget(latency_ms: Mapping[str, float | None]) -> str:
    """The stages of a turn's delay."""
    parts = [f"{stage} {ms:.0f}" for stage, ms in latency_ms.items() if ms is not None and stage != "total"]
    return f": {', '.join(parts)}" if parts else ""


def _how_far(heard: Mapping[str, Any]) -> str:
    """Where a reply was cut off; its text is an estimate."""
    if not heard.get("received_ms"):
        return ""
    return (
        f", by estimate: {heard['heard_ms'] / 1_000:.1f} of {heard['received_ms'] / 1_000:.1f} s were heard"
    )


def _brief(page: Page, call_id: str) -> str:
    """A recalled page in a few words; of which call, if not of this one."""
    words = (page.user_text or page.reply_text).split()
    text = " ".join(words[:12]) + (" …" if len(words) > 12 else "")
    return f"“{text}”" + ("" if page.call_id == call_id else " (earlier call)")


def _window_line(window: dict[str, Any]) -> str:
    forms = ", ".join(f"{n} as {form}" for form, n in window.get("forms", {}).items()) or "none"
    threads = window.get("threads", 0)
    topics = f" + {threads} thread summaries" if threads else ""
    return f"{window.get('pages', 0)} pages ({forms}){topics}, {window.get('tokens', 0)} tokens of history"


def _cost_line(turn: TurnRecord) -> str:
    usage = turn.usage
    tokens_in = sum(usage.get(k, 0) for k in ("input_text_tokens", "input_audio_tokens"))
    tokens_out = sum(usage.get(k, 0) for k in ("output_text_tokens", "output_audio_tokens"))
    cached = sum(usage.get(k, 0) for k in ("cached_text_tokens", "cached_audio_tokens"))
    told = " (tokens estimated)" if usage.get("is_estimate") else ""
    usd = float(usage.get("usd") or 0)
    return f"{tokens_in} tokens in ({cached} cached), {tokens_out} out, about ${usd:.4f}{told}"


def render_list(rows: Sequence[CallRow]) -> Table:
    """The table of `ivr calls list`."""
    table = Table(box=None)
    table.add_column("call", no_wrap=True, min_width=34)  # whole: it is what `calls show` wants
    for heading in ("started", "from", "status", "after"):
        table.add_column(heading, no_wrap=True)
    for row in rows:
        who = mask_number(row.caller) if row.caller else "withheld"
        started = row.started_at.strftime("%m-%d %H:%M")
        before = f"…{row.resumed_from[-6:]}" if row.resumed_from else ""
        table.add_row(row.call_sid, started, who, row.brief_ending, before)
    return table


def console() -> Console:
    """Where people read; plain when piped."""
    return Console(highlight=False, soft_wrap=False)


def _iso(when: datetime | None) -> str | None:
    return when.isoformat() if when is not None else None
