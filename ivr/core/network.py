"""What the network did to a caller's audio: over a rolling window (for turn-taking) and in all (for telemetry)."""

from collections import deque
from dataclasses import dataclass

from ivr.core.units import FRAME_MS
from memory.model import EndedBy

SAMPLE_MS = 50
"""The paper samples reception each 50 ms; windows start on that grid."""
LONGEST_WINDOW_MS = 5_000
GONE_STALL_MS = 2_000
GONE_LOSS_RATE = 0.2
"""Of the last five seconds of a call: so long no sound, or so much of it lost, is no line to talk on."""
STALL_MS = 40
"""The line was silent for so much longer than it should have been: a stall."""
_SILENT_AFTER_MS = 60
"""From here on a concealed hole is rendered as silence (`ivr.audio.conceal`)."""
_REMEMBERED = 256


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

    def shown(self) -> str:
        """As the model is told it: one line, whole ms."""
        since = "never" if self.since_concealment_ms is None else f"{self.since_concealment_ms:.0f}"
        return (
            f"concealed_ms={self.concealed_ms:.0f} silence_concealed_ms={self.silence_concealed_ms:.0f} "
            f"since_concealment_ms={since} stall_ms={self.stall_ms:.0f}"
        )


def ended_by(last: NetworkState) -> EndedBy:
    """Who ended a call that Twilio says is over, which it says alike of both: by the last five seconds of the line."""
    is_bad = last.stall_ms >= GONE_STALL_MS or last.loss_rate >= GONE_LOSS_RATE
    return EndedBy.NETWORK if is_bad else EndedBy.CALLER


@dataclass(slots=True)
class Reception:
    """A call's figures in all, in ms of audio and (`stalled_ms`) of arrival time, and in frames.

    `suspect_ms` is silence that began in mid-speech: weak evidence of loss that was concealed before it reached
    us, and no part of `lost_ms`.
    """

    received_ms: float = 0.0
    lost_ms: float = 0.0
    inserted_ms: float = 0.0
    stalled_ms: float = 0.0
    suspect_ms: float = 0.0
    late: int = 0
    duplicates: int = 0
    reordered: int = 0

    @property
    def loss_rate(self) -> float:
        """The share of the caller's audio that never came, 0-1."""
        whole_ms = self.received_ms + self.lost_ms
        return self.lost_ms / whole_ms if whole_ms else 0.0


@dataclass(frozen=True, slots=True)
class _Span:
    start_ms: float
    end_ms: float

    def within(self, start_ms: float) -> float:
        """How much of it lies after `start_ms`."""
        return max(0.0, self.end_ms - max(self.start_ms, start_ms))


class Windows:
    """The last holes (stream time) and stalls (arrival time)."""

    def __init__(self) -> None:
        self._holes: deque[_Span] = deque(maxlen=_REMEMBERED)
        self._stalls: deque[_Span] = deque(maxlen=_REMEMBERED)

    def hole(self, start_ms: float, end_ms: float) -> None:
        """Stream time of which nothing came."""
        self._holes.append(_Span(start_ms, end_ms))

    def stall(self, start_ms: float, end_ms: float) -> None:
        """The line was silent."""
        self._stalls.append(_Span(start_ms, end_ms))

    def state(
        self, now_ms: float, window_ms: float, arrived_ms: float, stream_ms: float, since_ms: float
    ) -> NetworkState:
        """`arrived_ms`: when the last frame came, which ended at `stream_ms`; `since_ms`: the stream's begin."""
        stream_now_ms = stream_ms + max(0.0, now_ms - arrived_ms)
        window_ms = min(max(window_ms, SAMPLE_MS), LONGEST_WINDOW_MS)
        start_ms = (stream_now_ms - window_ms) // SAMPLE_MS * SAMPLE_MS
        concealed_ms = sum(hole.within(start_ms) for hole in self._holes)
        silent = (_Span(hole.start_ms + _SILENT_AFTER_MS, hole.end_ms) for hole in self._holes)
        stall_ms = sum(stall.within(now_ms - window_ms) for stall in self._stalls)
        present_ms = now_ms - arrived_ms - FRAME_MS
        covered_ms = stream_now_ms - max(start_ms, since_ms)
        return NetworkState(
            concealed_ms=concealed_ms,
            silence_concealed_ms=sum(span.within(start_ms) for span in silent),
            since_concealment_ms=stream_now_ms - self._holes[-1].end_ms if self._holes else None,
            stall_ms=stall_ms + (min(present_ms, window_ms) if present_ms >= STALL_MS else 0.0),
            loss_rate=min(1.0, concealed_ms / covered_ms) if covered_ms > 0 else 0.0,
        )
