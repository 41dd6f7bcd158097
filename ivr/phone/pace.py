"""When the next frame of a simulated call is due, on a machine that has other things to do."""

from ivr.phone.line import FRAME_MS

STALLED_S = 0.25
"""Later than that, this process did not run for a while. A caller would not have noticed, so they do not either."""


class Pace:
    """Absolute deadlines: a late frame is followed by the next ones at once, and no delay adds up."""

    def __init__(self, began_s: float) -> None:
        self._due_s = began_s

    def wait_s(self, now_s: float) -> float:
        """How long until the next frame, in s; asked once a frame."""
        self._due_s += FRAME_MS / 1_000
        if now_s - self._due_s > STALLED_S:
            self._due_s = now_s  # time stood still
        return max(0.0, self._due_s - now_s)
