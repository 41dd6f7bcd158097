"""What `ivr calls show` tells of a call's delays."""

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from rich.console import Console

from ivr.show import CallView, as_json, latency_figures, render_call
from memory.calls import CallRow, CallStatus
from memory.model import Page
from memory.store import TurnRecord

NOW = datetime(2026, 11, 30, tzinfo=UTC)
CALL = CallRow(
    "CA1", "clinic", None, "+16175550101", CallStatus.FINISHED, NOW, NOW, NOW, 1, "MZ1", None, "hash", None
)


def turn(no: int, **latency_ms: float | None) -> TurnRecord:
    page = Page(no, "CA1", no, "When do you open?", "At nine.", "", "", "", 1_000, 1_000, False, "", NOW)
    total = latency_ms.get("total")
    return TurnRecord(page, {}, {"latency_ms": latency_ms, "first_audio_ms": total} if latency_ms else {})


TURNS = [
    turn(1, vad=500.0, transcript=300.0, recall=40.0, decision=0.0, first_audio=260.0, total=1_100.0),
    turn(2, vad=520.0, transcript=0.0, recall=60.0, decision=800.0, first_audio=220.0, total=1_600.0),
    turn(3, vad=510.0, transcript=None, recall=None, decision=None, first_audio=None, total=None),
    turn(4),  # kept by a version that did not measure
]


def shown(turns: list[TurnRecord]) -> str:
    console = Console(file=StringIO(), width=200, record=True)
    console.print(render_call(CallView(CALL, turns, {}, 0.25)))
    return console.export_text()


def test_stages_are_summed_up_over_the_turns_that_had_them() -> None:
    figures = latency_figures(TURNS)
    assert figures["vad"] == {"n": 3, "sum": 1_530.0, "p50": 510.0, "p95": 519.0}
    assert figures["total"] == {"n": 2, "sum": 2_700.0, "p50": 1_350.0, "p95": 1_575.0}
    assert latency_figures([turn(1)]) == {}


def test_programs_get_every_turn_s_budget_and_the_call_s_figures() -> None:
    told = json.loads(as_json(CallView(CALL, TURNS, {}, 0.25)))
    assert told["latency_ms"]["decision"]["sum"] == 800.0
    assert told["turns"][0]["latency_ms"]["recall"] == 40.0
    assert told["turns"][2]["latency_ms"]["total"] is None
    assert told["turns"][3]["latency_ms"] == {}


def test_people_read_where_the_time_went() -> None:
    text = shown(TURNS)
    assert (
        "first audio 1100 ms after the last word: vad 500, transcript 300, recall 40, decision 0, first_audio 260"
        in text
    )
    assert "nothing was heard: vad 510" in text
    assert "total 1350 / 1575" in text


@pytest.mark.parametrize("turns", [[], [turn(1)]])
def test_a_call_without_figures_shows_none(turns: list[TurnRecord]) -> None:
    assert "by stage" not in shown(turns)
