"""What arrived on the line, what is missing and what is merely late.

Four witnesses: `timestamp`, `chunk`, `sequence` and the time of arrival. Each may be absent or lie, so a hole needs
one that shows it and none of more weight against it; what they agree on is one hole, not several. A hole is known
only when the next frame comes.

Stream time is Twilio's `timestamp`, continued by our own count where timestamps leap without cause.
"""

from collections import deque
from dataclasses import dataclass, replace
from enum import StrEnum

from ivr.core.events import LineFrame
from ivr.core.network import STALL_MS, NetworkState, Reception, Windows
from ivr.core.units import FRAME_BYTES, FRAME_MS, ULAW_SILENCE, ulaw_ms

_GRID_MS = 10
"""Timestamps are off their grid by a few ms; less than that, or than half a frame, is no hole."""
_OFF_GRID_MS = 4
"""Two timestamps, each off by 2 ms: a hole that near to whole frames is whole frames."""
_AGREED_MS = _OFF_GRID_MS + 2
"""Behind a leap that is disbelieved there is a third such timestamp, until it is forgotten: then the count is exact."""
_SLACK_MS = 30
"""How far stream time may get ahead of its best so far before a leap of the timestamp is disbelieved."""
_LATE_MS = 60
_LATELY_MS = 5_000
"""Late is late against the best of the last 5 to 10 s: on a way that has become longer, frames are soon on time."""
_DRIFT = 1e-4
"""Clocks differ by up to 100 ppm; the best lead seen is unlearned at that rate."""
_REMEMBERED = 64
_ANCHORS = 256
_ANY_MS = float("inf")
_SILENCES = (ULAW_SILENCE, b"\x7f")
_LOUD_CODE = 0x40
"""µ-law magnitude (0-127) about −24 dBFS: somebody is speaking."""
_LONGEST_SUSPECT_MS = 500


class ArrivalKind(StrEnum):
    """What to do with a frame: use it, or (duplicate, reordered) leave it out."""

    RECEIVED = "received"
    LATE = "late"
    """Delayed, in a burst after a stall; good audio all the same."""
    DUPLICATE = "duplicate"
    REORDERED = "reordered"
    """Older than what was already used; its place was taken for a hole and concealed."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One frame's verdict. `missing_ms` is to be concealed before it; `lost_ms` is the hole's true size.

    `stalled_ms` is how long the line was silent beyond what frame and hole account for.
    """

    kind: ArrivalKind
    missing_ms: int = 0
    stalled_ms: float = 0.0
    lost_ms: int = 0

    @property
    def usable(self) -> bool:
        """The frame's audio belongs here."""
        return self.kind is ArrivalKind.RECEIVED or self.kind is ArrivalKind.LATE


AS_EXPECTED = Arrival(ArrivalKind.RECEIVED)
"""The verdict on nearly all frames."""


@dataclass(frozen=True, slots=True)
class _Anchor:
    """From `audio_ms` on, stream time is audio time plus `offset_ms`."""

    audio_ms: float
    offset_ms: float


class Arrivals:
    """The inbound record of one media stream; call `restart` for a new stream of the same call.

    `max_insert_ms` (D_VAD − 100) bounds what is inserted for one hole: more would itself be the silence that ends
    a turn.
    """

    def __init__(self, max_insert_ms: int = 400) -> None:
        self.max_insert_ms = max_insert_ms
        self.reception = Reception()
        self._windows = Windows()
        self._audio_ms = 0.0
        self._anchors: deque[_Anchor] = deque(maxlen=_ANCHORS)
        self._since_ms: float | None = None
        self._expected_ms = 0.0
        """Stream time at which the next frame ought to begin."""
        self._arrived_ms = 0.0
        self._suspecting_ms = 0.0
        self.restart()

    @property
    def audio_ms(self) -> float:
        """Audio accounted for so far: usable frames and what was to be inserted; the model's VAD counts it."""
        return self._audio_ms

    def restart(self) -> None:
        """A new stream begins: its counters and timestamps start anew. Statistics and map go on."""
        self._last: LineFrame | None = None
        self._stray: tuple[LineFrame, LineFrame] | None = None
        """A frame that looked very old, and the last good one when it came."""
        self._recent: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._highest_chunk = -1
        self._counting = False
        self._shift_ms = 0.0
        self._lead_ms = -_ANY_MS
        """Stream time less arrival time at its best: no frame can be spoken later than it arrives."""
        self._is_lead_known = False
        """Not while it still rises: the first frames were read in a burst, or the clock stands still."""
        self._lately_ms = self._before_ms = -_ANY_MS
        """The same over the last seconds, and over those before."""
        self._lately_from_ms = -_ANY_MS

    def receive(self, frame: LineFrame, now_ms: float) -> Arrival:
        """Judge one frame. Never raises."""
        last = self._last
        if last is None:
            return self._begin(frame, now_ms)
        if frame.chunk == last.chunk + 1 and self._is_as_expected(frame, last, now_ms):
            return self._go_on(frame, last, now_ms)
        is_unnumbered = not frame.chunk and last.chunk > 0
        if is_unnumbered:
            frame = self._numbered(frame, last)
        if self._is_duplicate(frame, last):
            self.reception.duplicates += 1
            return Arrival(ArrivalKind.DUPLICATE)
        if frame.chunk <= last.chunk and frame.timestamp_ms <= last.timestamp_ms and self._counting:
            if not self._is_new_stream(frame, last):
                self.reception.reordered += 1
                return Arrival(ArrivalKind.REORDERED)
            self.restart()
            return self._begin(frame, now_ms)
        self._counting = (
            self._counting or frame.chunk != last.chunk or frame.timestamp_ms != last.timestamp_ms
        )
        return self._follow(frame, last, now_ms, is_unnumbered=is_unnumbered)

    def snapshot(self, now_ms: float, window_ms: float) -> NetworkState:
        """Reception over the last `window_ms` (the paper: max(1000, D_VAD)), at most `LONGEST_WINDOW_MS`."""
        if self._since_ms is None:
            return NetworkState()
        return self._windows.state(now_ms, window_ms, self._arrived_ms, self._expected_ms, self._since_ms)

    def audio_to_stream_ms(self, audio_ms: float) -> float:
        """Where a point of the audio given to the model lies on the caller's true timeline."""
        for anchor in reversed(self._anchors):
            if anchor.audio_ms <= audio_ms:
                return audio_ms + anchor.offset_ms
        return audio_ms + self._anchors[0].offset_ms if self._anchors else audio_ms

    # -- one frame -----------------------------------------------------------------------------------------

    def _is_as_expected(self, frame: LineFrame, last: LineFrame, now_ms: float) -> bool:
        """The very next frame, by number, timestamp and clock: nearly all are, and cost little more than this."""
        if not (last.chunk == self._highest_chunk and last.chunk and len(frame.ulaw) == FRAME_BYTES):
            return False
        if frame.timestamp_ms <= last.timestamp_ms or len(last.ulaw) != FRAME_BYTES:
            return False
        rest_ms = frame.timestamp_ms - self._shift_ms - self._expected_ms
        if not -_GRID_MS < rest_ms < _GRID_MS or now_ms - self._arrived_ms - FRAME_MS >= STALL_MS:
            return False
        best_ms = self._lately_ms if self._lately_ms > self._before_ms else self._before_ms
        return best_ms - (self._expected_ms + rest_ms / 4 + FRAME_MS - now_ms) <= _LATE_MS

    def _go_on(self, frame: LineFrame, last: LineFrame, now_ms: float) -> Arrival:
        """What `_follow` comes to for a frame that is as expected."""
        self._counting = True
        self._expected_ms += (frame.timestamp_ms - self._shift_ms - self._expected_ms) / 4
        if frame.ulaw.startswith(_SILENCES):
            self._suspect(frame, last)
        else:
            self._suspecting_ms = 0.0
        self._accept(frame, FRAME_MS, now_ms)
        return AS_EXPECTED

    def _numbered(self, frame: LineFrame, last: LineFrame) -> LineFrame:
        """A frame whose `chunk` is missing among others that have one: its number then tells of no hole."""
        known = (chunk for chunk, timestamp_ms in self._recent if timestamp_ms == frame.timestamp_ms != 0)
        return replace(frame, chunk=next(known, last.chunk + 1))

    def _is_duplicate(self, frame: LineFrame, last: LineFrame) -> bool:
        if frame.chunk > self._highest_chunk or (frame.chunk, frame.timestamp_ms) not in self._recent:
            return False
        # Where neither chunk nor timestamp has ever moved they tell nothing; the sequence may.
        return self._counting or frame.sequence == last.sequence

    def _is_new_stream(self, frame: LineFrame, last: LineFrame) -> bool:
        """An older-looking frame whose counters must have restarted: its number is already used, or it is far
        back and the first of all, or goes on from another such.
        """
        if any(chunk == frame.chunk < last.chunk for chunk, _ in self._recent):
            return frame.sequence < last.sequence
        if not self._is_far(frame, last):
            return False
        stray, self._stray = self._stray, (frame, last)
        goes_on = stray is not None and stray[1] is last and _goes_on(frame, stray[0])
        return frame.sequence <= last.sequence and (frame.chunk == 1 or goes_on)

    def _is_far(self, frame: LineFrame, last: LineFrame) -> bool:
        return (
            last.chunk - frame.chunk > _REMEMBERED
            or last.timestamp_ms - frame.timestamp_ms > _REMEMBERED * FRAME_MS
        )

    def _begin(self, frame: LineFrame, now_ms: float) -> Arrival:
        """A stream's first frame: whatever its numbers, nothing is missing before it."""
        frame_ms = ulaw_ms(frame.ulaw)
        if self._since_ms is None:
            self._since_ms = self._expected_ms = float(frame.timestamp_ms)
        else:
            self._expected_ms += max(0.0, now_ms - self._arrived_ms - frame_ms)
        self._shift_ms = frame.timestamp_ms - self._expected_ms
        self._accept(frame, frame_ms, now_ms)
        self._is_lead_known = True  # one frame alone is no burst
        return AS_EXPECTED

    def _follow(self, frame: LineFrame, last: LineFrame, now_ms: float, *, is_unnumbered: bool) -> Arrival:
        frame_ms = ulaw_ms(frame.ulaw)
        lost_ms = self._lost_ms(frame, last, frame_ms, now_ms)
        missing_ms = self._insert(lost_ms) if lost_ms else 0
        if lost_ms and is_unnumbered:  # else the next number would tell of the same hole again
            frame = replace(frame, chunk=frame.chunk + round(lost_ms / (ulaw_ms(last.ulaw) or FRAME_MS)))
        if frame.timestamp_ms > last.timestamp_ms:
            self._settle(frame)
        stalled_ms = now_ms - self._arrived_ms - lost_ms - frame_ms
        best_ms = self._lately_ms if self._lately_ms > self._before_ms else self._before_ms
        late = best_ms - (self._expected_ms + frame_ms - now_ms) > _LATE_MS
        self._suspect(frame, last)
        self._accept(frame, frame_ms, now_ms)
        if stalled_ms < STALL_MS:
            if not (late or lost_ms):
                return AS_EXPECTED  # nearly all frames: they cost no object
            stalled_ms = 0.0
        else:
            self._windows.stall(now_ms - stalled_ms, now_ms)
            self.reception.stalled_ms += stalled_ms
        self.reception.late += late
        kind = ArrivalKind.LATE if late else ArrivalKind.RECEIVED
        return Arrival(kind, missing_ms, stalled_ms, lost_ms)

    def _insert(self, lost_ms: int) -> int:
        """Account for a hole; returns how much of it is to be concealed."""
        missing_ms = min(lost_ms, max(0, self.max_insert_ms))
        self._windows.hole(self._expected_ms, self._expected_ms + lost_ms)
        self._expected_ms += lost_ms
        self._audio_ms += missing_ms
        self.reception.lost_ms += lost_ms
        self.reception.inserted_ms += missing_ms
        return missing_ms

    def _lost_ms(self, frame: LineFrame, last: LineFrame, frame_ms: float, now_ms: float) -> int:
        """The size of the hole before this frame, 0 for none."""
        chunks = frame.chunk - last.chunk - 1
        timed = frame.timestamp_ms > last.timestamp_ms
        by_time_ms = frame.timestamp_ms - self._shift_ms - self._expected_ms if timed else 0.0
        step_ms = ulaw_ms(last.ulaw) or FRAME_MS
        grid_ms = min(_GRID_MS, step_ms / 2)
        if chunks <= 0 and by_time_ms < grid_ms:
            return 0
        by_count_ms = max(0, chunks) * step_ms
        # How far stream time at this frame's end falls behind the clock, if nothing is missing before it.
        behind_ms = self._lead_ms - (self._expected_ms + frame_ms - now_ms)
        # More audio than that cannot have been spoken yet.
        possible_ms = behind_ms + _SLACK_MS if self._is_lead_known else _ANY_MS
        if by_time_ms >= grid_ms:
            if chunks > 0 and abs(by_count_ms - by_time_ms) <= _AGREED_MS:
                by_time_ms = by_count_ms
            if by_time_ms <= possible_ms:
                return _whole(by_time_ms, step_ms)
            return _whole(min(by_time_ms, by_count_ms), step_ms)
        if timed:  # timestamps see no hole: numbers and clock must both do
            agreed = frame.sequence - last.sequence > chunks and behind_ms >= by_count_ms - _GRID_MS
            return _whole(by_count_ms, step_ms) if agreed else 0
        return _whole(by_count_ms, step_ms) if by_count_ms <= possible_ms else 0

    def _settle(self, frame: LineFrame) -> None:
        """Follow small deviations of the timestamp slowly, so that no drift builds up; write off others."""
        rest_ms = frame.timestamp_ms - self._shift_ms - self._expected_ms
        if abs(rest_ms) < _GRID_MS:
            self._expected_ms += rest_ms / 4
        else:
            self._shift_ms += rest_ms

    def _accept(self, frame: LineFrame, frame_ms: float, now_ms: float) -> None:
        offset_ms = self._expected_ms - self._audio_ms
        if not self._anchors or abs(offset_ms - self._anchors[-1].offset_ms) >= 1:
            self._anchors.append(_Anchor(self._audio_ms, offset_ms))
        self._expected_ms += frame_ms
        self._audio_ms += frame_ms
        self.reception.received_ms += frame_ms
        self._learn_lead(frame_ms, now_ms)
        self._arrived_ms = now_ms
        self._last = frame
        self._recent.append((frame.chunk, frame.timestamp_ms))
        if frame.chunk > self._highest_chunk:
            self._highest_chunk = frame.chunk

    def _learn_lead(self, frame_ms: float, now_ms: float) -> None:
        waited_ms = now_ms - self._arrived_ms
        faded_ms = self._lead_ms - _DRIFT * waited_ms if waited_ms > 0 else self._lead_ms
        lead_ms = self._expected_ms - now_ms
        rise_ms = lead_ms - faded_ms
        self._is_lead_known = rise_ms < _GRID_MS and rise_ms < frame_ms / 2
        self._lead_ms = lead_ms if lead_ms > faded_ms else faded_ms
        if now_ms - self._lately_from_ms >= _LATELY_MS:
            self._before_ms, self._lately_ms, self._lately_from_ms = self._lately_ms, lead_ms, now_ms
        elif lead_ms > self._lately_ms:
            self._lately_ms = lead_ms

    def _suspect(self, frame: LineFrame, last: LineFrame) -> None:
        """Count a run of one silence byte that starts right behind loud sound, up to half a second."""
        first = frame.ulaw[:1]
        if first not in _SILENCES or frame.ulaw.count(first) != len(frame.ulaw):
            self._suspecting_ms = 0.0
            return
        if (
            not self._suspecting_ms
            and max(((~code) & 0x7F for code in last.ulaw[-40:]), default=0) < _LOUD_CODE
        ):
            return
        counted_ms = min(ulaw_ms(frame.ulaw), _LONGEST_SUSPECT_MS - self._suspecting_ms)
        self._suspecting_ms += counted_ms
        self.reception.suspect_ms += counted_ms


def _goes_on(frame: LineFrame, earlier: LineFrame) -> bool:
    """The next frame, or one of the next few, of what began with `earlier`."""
    chunks = frame.chunk - earlier.chunk
    later_ms = frame.timestamp_ms - earlier.timestamp_ms
    return (
        0 <= chunks <= _REMEMBERED
        and 0 <= later_ms <= _REMEMBERED * FRAME_MS
        and (chunks > 0 or later_ms > 0)
    )


def _whole(hole_ms: float, step_ms: float) -> int:
    """Audio is lost in frames: the nearest whole number of them, if the hole is about that long."""
    frames_ms = round(hole_ms / step_ms) * step_ms
    return round(frames_ms if abs(frames_ms - hole_ms) <= _OFF_GRID_MS else hole_ms)
