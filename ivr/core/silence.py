"""What was heard of the caller's silence: whether a pause is theirs, or made by the line.

Positions are ms of audio given to the present model session: the clock of its VAD.
"""

from collections import deque

from ivr.core.arrivals import Arrival

HIDING_MS = 60
"""A hole from here on is rendered as silence (`ivr.audio.conceal`), and is as long as the shortest sound a VAD
takes for speech; a shorter one is filled with sound and hides nothing.
"""
ONSET_MS = 200
"""So long after a hole or a stall the VAD would have told us of speech: 60-100 ms to be sure, and the way to us."""
STALL_MS = 100
"""Frames that are late by less are everyday jitter, and our own loop's."""
_REMEMBERED = 64
_NEVER = float("-inf")


class Silence:
    """Fed each usable frame. Two kinds of trouble: holes (sound that never came) and stalls (it comes late)."""

    def __init__(self) -> None:
        self._position_ms = 0.0
        self._holes: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        """Begin and end of what was inserted for the last holes that can hide a sound."""
        self._due_ms = float("inf")
        """When the next frame is due."""
        self._troubled_at_ms = _NEVER
        self._stalled_at_ms = _NEVER

    def frame(self, arrival: Arrival, position_ms: float, frame_ms: float, now_ms: float) -> None:
        """A frame that ends at `position_ms` of the session's audio was given to the model."""
        self._position_ms = position_ms
        if arrival.lost_ms >= HIDING_MS:
            end_ms = position_ms - frame_ms
            self._holes.append((end_ms - arrival.missing_ms, end_ms))
            self._troubled_at_ms = now_ms
        if arrival.stalled_ms >= STALL_MS:
            self._stalled_at_ms = self._troubled_at_ms = now_ms
        self._due_ms = now_ms + frame_ms

    def restart(self, position_ms: float) -> None:
        """A new session: its clock starts anew, and what was lost before it is no part of its silences."""
        self._position_ms = position_ms
        self._holes.clear()

    def heard_ms(self, since_ms: float) -> float:
        """How much silence since a point was heard: all that came, less what was inserted for holes."""
        inserted_ms = sum(max(0.0, end - max(start, since_ms)) for start, end in self._holes)
        return self._position_ms - since_ms - inserted_ms

    def is_hearing(self, now_ms: float) -> bool:
        """Sound comes, and has come for long enough that we would know of speech in it."""
        end_ms = self._holes[-1][1] if self._holes else _NEVER
        after_hole = self._position_ms - end_ms >= ONSET_MS
        return after_hole and not self.is_stalled(now_ms) and now_ms - self._stalled_at_ms >= ONSET_MS

    def is_stalled(self, now_ms: float) -> bool:
        """Nothing comes at this moment, be it late or lost."""
        return now_ms - self._due_ms >= STALL_MS

    def healthy_since_ms(self, now_ms: float) -> float:
        """Since when neither hole nor stall has hidden anything; `now_ms` if one does."""
        return now_ms if self.is_stalled(now_ms) else self._troubled_at_ms
