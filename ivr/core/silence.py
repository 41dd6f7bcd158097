"""What was heard of the caller's silence: whether a pause is theirs, or made by the line.

Positions are ms of audio given to the present model session: the clock of its VAD.
"""

from ivr.core.arrivals import Arrival

HIDING_MS = 60
"""A hole from here on is rendered as silence (`ivr.audio.conceal`), and is as long as the shortest sound a VAD
takes for speech; a shorter one is filled with sound and hides nothing.
"""
WORD_MS = 200
"""A hole from here on can hide a whole short word; a shorter one at most the beginning of one."""
ONSET_MS = 200
"""So long after a hole or a stall the VAD would have told us of speech: 60-100 ms to be sure, and the way to us."""
_NEVER = float("-inf")


class Silence:
    """Fed each usable frame. Two kinds of trouble: holes (sound that never came) and stalls (it comes late)."""

    def __init__(self) -> None:
        self._position_ms = 0.0
        self._hole_ms = _NEVER
        self._word_hole_ms = _NEVER
        """Where the last hole ended that may hide a sound, and a word."""
        self._due_ms = float("inf")
        """When the next frame is due."""
        self._troubled_at_ms = _NEVER
        self._stalled_at_ms = _NEVER

    def frame(self, arrival: Arrival, position_ms: float, frame_ms: float, now_ms: float) -> None:
        """A frame that ends at `position_ms` of the session's audio was given to the model."""
        self._position_ms = position_ms
        if arrival.lost_ms >= HIDING_MS:
            self._hole_ms = position_ms - frame_ms
            self._troubled_at_ms = now_ms
        if arrival.lost_ms >= WORD_MS:
            self._word_hole_ms = position_ms - frame_ms
        if arrival.stalled_ms >= HIDING_MS:
            self._stalled_at_ms = self._troubled_at_ms = now_ms
        self._due_ms = now_ms + frame_ms

    def restart(self, position_ms: float) -> None:
        """A new session: its clock starts anew, and what was lost before it is no part of its silences."""
        self._position_ms = position_ms
        self._hole_ms = self._word_hole_ms = _NEVER

    def is_silence_heard(self, since_ms: float, needed_ms: float, now_ms: float) -> bool:
        """Whether the silence since `since_ms` is the caller's: none of it lost, or `needed_ms` of it heard after
        the last hole; and we hear them still.
        """
        return self.is_hearing(now_ms) and self._is_clean(self._hole_ms, since_ms, needed_ms)

    def is_still_silent(self, since_ms: float, needed_ms: float, now_ms: float) -> bool:
        """Whether, after a silence that was heard, the caller can be taken to be silent at this moment."""
        return (
            self.is_hearing(now_ms)
            and self._position_ms - self._hole_ms >= ONSET_MS
            and self._is_clean(self._word_hole_ms, since_ms, needed_ms)
        )

    def is_hearing(self, now_ms: float) -> bool:
        """Frames come, and have come for long enough that late ones are judged."""
        return not self._is_stalled(now_ms) and now_ms - self._stalled_at_ms >= ONSET_MS

    def healthy_since_ms(self, now_ms: float) -> float:
        """Since when neither hole nor stall has hidden anything; `now_ms` if one does."""
        return now_ms if self._is_stalled(now_ms) else self._troubled_at_ms

    def _is_stalled(self, now_ms: float) -> bool:
        return now_ms - self._due_ms >= HIDING_MS

    def _is_clean(self, hole_ms: float, since_ms: float, needed_ms: float) -> bool:
        return hole_ms <= since_ms or self._position_ms - hole_ms >= needed_ms
