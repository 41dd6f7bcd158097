"""D_VAD, the silence that ends a turn: what is in force, raised when a boundary proves false (paper, deferral)."""

import math

STEP_MS = 100
MARGIN_MS = 200
LONGEST_MS = 5_000
"""q, δ and D_max of the paper."""
SHORTEST_MS = 200
"""Shorter silences lie within words."""


class Threshold:
    """`ms` is in force; `normal_ms` is what it goes back to: `asked_ms` if the caller asked, else the default."""

    def __init__(self, default_ms: int, asked_ms: int | None = None) -> None:
        self.asked_ms = asked_ms
        self.normal_ms = self.ms = default_ms if asked_ms is None else asked_ms

    @property
    def is_normal(self) -> bool:
        """Nothing but the default, or the caller's wish, decides it."""
        return self.ms == self.normal_ms

    def ask(self, ms: int) -> None:
        """The caller wants it so, from the next boundary on."""
        self.asked_ms = self.normal_ms = self.ms = ms

    def suit(self, ms: int) -> None:
        """The model finds that it suits the line for now: no less than the caller asked for."""
        self.ms = ms if self.asked_ms is None else max(ms, self.asked_ms)

    def proved_short(self, gap_ms: float) -> bool:
        """Speech went on after a gap: D = min(D_max, q·⌈(D + g + δ)/q⌉). Returns whether it changed."""
        before = self.ms
        wanted_ms = STEP_MS * math.ceil((self.ms + max(0.0, gap_ms) + MARGIN_MS) / STEP_MS)
        self.ms = max(self.ms, min(LONGEST_MS, wanted_ms))
        return self.ms != before

    def shown(self) -> str:
        """As the model is told it."""
        if not self.is_normal:
            return f"silence_ms={self.ms} (for this line; else {self.normal_ms})"
        return f"silence_ms={self.ms} ({'default' if self.asked_ms is None else 'asked'})"

    def restore(self) -> bool:
        """Back to normal. Returns whether it changed."""
        before, self.ms = self.ms, self.normal_ms
        return self.ms != before
