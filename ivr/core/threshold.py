"""D_VAD, the silence that ends a turn: what is in force, raised when a boundary proves false (paper, deferral)."""

import math

STEP_MS = 100
MARGIN_MS = 200
LONGEST_MS = 5_000
"""q, δ and D_max of the paper."""


class Threshold:
    """`ms` is in force; `normal_ms` is what it goes back to: the business's, or what was asked for in the call."""

    def __init__(self, normal_ms: int) -> None:
        self.normal_ms = normal_ms
        self.ms = normal_ms

    @property
    def is_raised(self) -> bool:
        """A boundary proved false lately."""
        return self.ms > self.normal_ms

    def ask(self, ms: int) -> None:
        """Somebody wants it so, from the next boundary on."""
        self.normal_ms = self.ms = ms

    def proved_short(self, gap_ms: float) -> bool:
        """Speech went on after a gap: D = min(D_max, q·⌈(D + g + δ)/q⌉). Returns whether it changed."""
        before = self.ms
        wanted_ms = STEP_MS * math.ceil((self.ms + max(0.0, gap_ms) + MARGIN_MS) / STEP_MS)
        self.ms = max(self.ms, min(LONGEST_MS, wanted_ms))
        return self.ms != before

    def restore(self) -> bool:
        """Back to normal. Returns whether it changed."""
        before, self.ms = self.ms, self.normal_ms
        return self.ms != before
