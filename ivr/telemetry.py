"""A call's reception as figures of the process: what is new since the last time is added."""

from dataclasses import replace

from ivr.core.network import Reception
from ivr.observe import Metrics


class LineFigures:
    """Watches one call's `Reception`; `add` at each turn and at the end, so that long calls show while they last."""

    def __init__(self, metrics: Metrics, reception: Reception) -> None:
        self._counters = {
            "received_ms": metrics.line_received_ms,
            "lost_ms": metrics.line_lost_ms,
            "inserted_ms": metrics.line_inserted_ms,
            "stalled_ms": metrics.line_stalled_ms,
            "suspect_ms": metrics.line_suspect_ms,
            "late": metrics.line_frames_odd.labels("late"),
            "duplicates": metrics.line_frames_odd.labels("duplicate"),
            "reordered": metrics.line_frames_odd.labels("reordered"),
        }
        self._reception = reception
        self._added = Reception()

    def add(self) -> None:
        """Bring the process's figures up to date."""
        now, before = replace(self._reception), self._added
        for name, counter in self._counters.items():
            counter.inc(getattr(now, name) - getattr(before, name))
        self._added = now

    def summary(self) -> dict[str, float]:
        """The call so far, for its log lines."""
        reception = self._reception
        return {
            "loss_rate": round(reception.loss_rate, 4),
            "stalled_ms": round(reception.stalled_ms),
            "suspect_ms": round(reception.suspect_ms),
        }
