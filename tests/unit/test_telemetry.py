"""What the network did to a call, as figures of the process."""

import pytest

from ivr.core.network import Reception
from ivr.observe import Metrics
from ivr.telemetry import LineFigures


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"callthread_{name}_total", labels)


def test_each_figure_is_added_once_however_often_it_is_asked_for() -> None:
    metrics, reception = Metrics(), Reception(received_ms=900, lost_ms=100, stalled_ms=41.5)
    figures = LineFigures(metrics, reception)
    figures.add()
    figures.add()
    reception.lost_ms += 20
    reception.suspect_ms += 60
    reception.duplicates += 1
    figures.add()
    other = LineFigures(metrics, Reception(lost_ms=5))
    other.add()
    assert value(metrics, "line_received_ms") == 900
    assert value(metrics, "line_lost_ms") == 125
    assert value(metrics, "line_stalled_ms") == 41.5
    assert value(metrics, "line_suspect_ms") == 60
    assert value(metrics, "line_frames_odd", kind="duplicate") == 1
    assert value(metrics, "line_frames_odd", kind="late") == 0


def test_the_summary_of_a_call() -> None:
    reception = Reception(received_ms=950, lost_ms=50, stalled_ms=300.4, suspect_ms=60)
    summary = LineFigures(Metrics(), reception).summary()
    assert summary == {"loss_rate": pytest.approx(0.05), "stalled_ms": 300, "suspect_ms": 60}
