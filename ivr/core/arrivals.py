"""What arrived on the line, what is missing and what is merely late.

Four witnesses: `timestamp`, `chunk`, `sequence` and the time of arrival. Each may be absent or lie, so a hole needs
one that shows it and none of more weight against it; what they agree on is one hole, not several. A hole is known
only when the next frame comes.

Stream time is Twilio's `timestamp`, continued by our own count where timestamps leap without cause.
"""

from collections import deque
from dataclasses import dataclass
from enum import StrEnum

from ivr.core.events import LineFrame
from ivr.core.units import FRAME_MS, ULAW_SILENCE, ulaw_ms

SAMPLE_MS = 50
"""The paper samples reception each 50 ms; windows start on that grid."""
LONGEST_WINDOW_MS = 5_000
_GRID_MS = 10
"""Timestamps are off their grid by a few ms; less than half a frame is no hole."""
_SLACK_MS = 30
"""How far stream time may get ahead of its best so far before a leap of the timestamp is disbelieved."""
_LATE_MS = 60
_STALL_MS = 40
_SILENT_AFTER_MS = 60
"""From here on a concealed hole is rendered as silence (`ivr.audio.conceal`)."""
_DRIFT = 1e-4
"""Clocks differ by up to 100 ppm; the best lead seen is unlearned at that rate."""
_REMEMBERED = 64
_ANCHORS = 256
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


_AS_EXPECTED = Arrival(ArrivalKind.RECEIVED)


@dataclass(frozen=True, slots=True)
class NetworkState:
    """Reception over a rolling window (the paper's environmental state), in stream time.

    `since_concealment_ms` is `None` when nothing was concealed yet. `loss_rate` is the share of the window that
    is missing, 0-1. `stall_ms` is of arrival time, the present silence included.
    """

    concealed_ms: float = 0.0
    silence_concealed_ms: float = 0.0
    since_concealment_ms: float | None = None
    stall_ms: float = 0.0
    loss_rate: float = 0.0


@dataclass(frozen=True, slots=True)
class _Span:
    start_ms: float
    end_ms: float

    def within(self, start_ms: float) -> float:
        """How much of it lies after `start_ms`."""
        return max(0.0, self.end_ms - max(self.start_ms, start_ms))


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
        self.suspect_ms = 0.0
        """Silence that began in mid-speech: weak evidence of loss that was concealed before it reached us."""
        self._audio_ms = 0.0
        self._holes: deque[_Span] = deque(maxlen=_ANCHORS)
        self._stalls: deque[_Span] = deque(maxlen=_ANCHORS)
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
        self._recent: deque[tuple[int, int]] = deque(maxlen=_REMEMBERED)
        self._highest_chunk = -1
        self._counting = False
        self._shift_ms = 0.0
        self._lead_ms = float("-inf")

    def receive(self, frame: LineFrame, now_ms: float) -> Arrival:
        """Judge one frame. Never raises."""
        last = self._last
        if last is None:
            return self._begin(frame, now_ms)
        if self._is_duplicate(frame, last):
            return Arrival(ArrivalKind.DUPLICATE)
        if frame.chunk <= last.chunk and frame.timestamp_ms <= last.timestamp_ms and self._counting:
            if not self._is_new_stream(frame, last):
                return Arrival(ArrivalKind.REORDERED)
            self.restart()
            return self._begin(frame, now_ms)
        self._counting = (
            self._counting or frame.chunk != last.chunk or frame.timestamp_ms != last.timestamp_ms
        )
        return self._follow(frame, last, now_ms)

    def snapshot(self, now_ms: float, window_ms: float) -> NetworkState:
        """Reception over the last `window_ms` (the paper: max(1000, D_VAD)), at most `LONGEST_WINDOW_MS`."""
        if self._since_ms is None:
            return NetworkState()
        stream_now_ms = self._expected_ms + max(0.0, now_ms - self._arrived_ms)
        window_ms = min(max(window_ms, SAMPLE_MS), LONGEST_WINDOW_MS)
        start_ms = (stream_now_ms - window_ms) // SAMPLE_MS * SAMPLE_MS
        concealed_ms = sum(hole.within(start_ms) for hole in self._holes)
        silent = (_Span(hole.start_ms + _SILENT_AFTER_MS, hole.end_ms) for hole in self._holes)
        stall_ms = sum(stall.within(now_ms - window_ms) for stall in self._stalls)
        present_ms = now_ms - self._arrived_ms - FRAME_MS
        covered_ms = stream_now_ms - max(start_ms, self._since_ms)
        return NetworkState(
            concealed_ms=concealed_ms,
            silence_concealed_ms=sum(span.within(start_ms) for span in silent),
            since_concealment_ms=stream_now_ms - self._holes[-1].end_ms if self._holes else None,
            stall_ms=stall_ms + (min(present_ms, window_ms) if present_ms >= _STALL_MS else 0.0),
            loss_rate=min(1.0, concealed_ms / covered_ms) if covered_ms > 0 else 0.0,
        )

    def audio_to_stream_ms(self, audio_ms: float) -> float:
        """Where a point of the audio given to the model lies on the caller's true timeline."""
        for anchor in reversed(self._anchors):
            if anchor.audio_ms <= audio_ms:
                return audio_ms + anchor.offset_ms
        return audio_ms + self._anchors[0].offset_ms if self._anchors else audio_ms

    # -- one frame -----------------------------------------------------------------------------------------

    def _is_duplicate(self, frame: LineFrame, last: LineFrame) -> bool:
        if frame.chunk > self._highest_chunk or (frame.chunk, frame.timestamp_ms) not in self._recent:
            return False
        # Where neither chunk nor timestamp has ever moved they tell nothing; the sequence may.
        return self._counting or frame.sequence == last.sequence

    def _is_new_stream(self, frame: LineFrame, last: LineFrame) -> bool:
        """An older-looking frame, so old, or its number already used, that the counters must have restarted."""
        far = (
            last.chunk - frame.chunk > _REMEMBERED
            or last.timestamp_ms - frame.timestamp_ms > _REMEMBERED * FRAME_MS
        )
        used = frame.chunk < last.chunk and any(chunk == frame.chunk for chunk, _ in self._recent)
        return far or (used and frame.sequence < last.sequence)

    def _begin(self, frame: LineFrame, now_ms: float) -> Arrival:
        """A stream's first frame: whatever its numbers, nothing is missing before it."""
        frame_ms = ulaw_ms(frame.ulaw)
        if self._since_ms is None:
            self._since_ms = self._expected_ms = float(frame.timestamp_ms)
        else:
            self._expected_ms += max(0.0, now_ms - self._arrived_ms - frame_ms)
        self._shift_ms = frame.timestamp_ms - self._expected_ms
        self._accept(frame, frame_ms, now_ms)
        return _AS_EXPECTED

    def _follow(self, frame: LineFrame, last: LineFrame, now_ms: float) -> Arrival:
        frame_ms = ulaw_ms(frame.ulaw)
        lost_ms = self._lost_ms(frame, last, frame_ms, now_ms)
        missing_ms = min(lost_ms, max(0, self.max_insert_ms)) if lost_ms else 0
        if lost_ms:
            self._holes.append(_Span(self._expected_ms, self._expected_ms + lost_ms))
            self._expected_ms += lost_ms
            self._audio_ms += missing_ms
        if frame.timestamp_ms > last.timestamp_ms:
            self._settle(frame)
        stalled_ms = now_ms - self._arrived_ms - lost_ms - frame_ms
        late = self._lead_ms - (self._expected_ms + frame_ms - now_ms) > _LATE_MS
        self._suspect(frame, last)
        self._accept(frame, frame_ms, now_ms)
        if stalled_ms >= _STALL_MS:
            self._stalls.append(_Span(now_ms - stalled_ms, now_ms))
        elif not (late or lost_ms):
            return _AS_EXPECTED  # nearly all frames: they cost no object
        else:
            stalled_ms = 0.0
        kind = ArrivalKind.LATE if late else ArrivalKind.RECEIVED
        return Arrival(kind, missing_ms, stalled_ms, lost_ms)

    def _lost_ms(self, frame: LineFrame, last: LineFrame, frame_ms: float, now_ms: float) -> int:
        """The size of the hole before this frame, 0 for none."""
        chunks = frame.chunk - last.chunk - 1
        timed = frame.timestamp_ms > last.timestamp_ms
        by_time_ms = frame.timestamp_ms - self._shift_ms - self._expected_ms if timed else 0.0
        if chunks <= 0 and by_time_ms < _GRID_MS:
            return 0
        step_ms = ulaw_ms(last.ulaw) or FRAME_MS
        by_count_ms = max(0, chunks) * step_ms
        # How far stream time at this frame's end falls behind the clock, if nothing is missing before it.
        behind_ms = self._lead_ms - (self._expected_ms + frame_ms - now_ms)
        possible_ms = behind_ms + _SLACK_MS  # more audio than that cannot have been spoken yet
        if by_time_ms >= _GRID_MS:
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
        waited_ms = now_ms - self._arrived_ms
        faded_ms = self._lead_ms - _DRIFT * waited_ms if waited_ms > 0 else self._lead_ms
        lead_ms = self._expected_ms - now_ms
        self._lead_ms = lead_ms if lead_ms > faded_ms else faded_ms
        self._arrived_ms = now_ms
        self._last = frame
        self._recent.append((frame.chunk, frame.timestamp_ms))
        if frame.chunk > self._highest_chunk:
            self._highest_chunk = frame.chunk

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
        self.suspect_ms += counted_ms


def _whole(hole_ms: float, step_ms: float) -> int:
    """Audio is lost in frames: the nearest whole number of them, if the hole is that long to 3 ms."""
    frames_ms = round(hole_ms / step_ms) * step_ms
    return round(frames_ms if abs(frames_ms - hole_ms) <= 3 else hole_ms)
