"""What the caller hears: the queue of audio the far side has sent, played in real time, 20 ms a step.

Pure. The same queue plays a media stream's audio and the prompts of `<Say>` and `<Play>`.
"""

from collections import deque
from dataclasses import dataclass

from ivr.phone.line import FRAME_BYTES, FRAME_MS, RATE_HZ, SILENT_FRAME, is_voiced

MAX_QUEUED_BYTES = 10 * 60 * RATE_HZ
"""More than ten minutes waiting is thrown away (Twilio error 31931)."""


@dataclass(frozen=True)
class Played:
    """One frame as heard: 160 bytes, whether anything was queued for it, and the marks reached at its end."""

    ulaw: bytes
    from_queue: bool
    marks: tuple[str, ...]


@dataclass
class _Chunk:
    ulaw: bytes
    voiced: bool
    offset: int = 0


class Playback:
    """A queue of audio and marks. Nothing here knows the time: `advance` is called once every 20 ms."""

    def __init__(self) -> None:
        self._queue: deque[_Chunk | str] = deque()
        self._queued_bytes = 0
        self._voiced_chunks = 0
        self.max_queued_ms = 0.0

    @property
    def queued_ms(self) -> float:
        return self._queued_bytes * 1_000 / RATE_HZ

    @property
    def has_voice(self) -> bool:
        """Whether audible audio still waits: a pause between two queued words is not the end of talking."""
        return self._voiced_chunks > 0

    def push(self, ulaw: bytes) -> bool:
        """Queue audio of any length; False if that would be more than ten minutes, and nothing was queued."""
        if self._queued_bytes + len(ulaw) > MAX_QUEUED_BYTES:
            return False
        if ulaw:
            voiced = is_voiced(ulaw)
            self._queue.append(_Chunk(ulaw, voiced))
            self._queued_bytes += len(ulaw)
            self._voiced_chunks += voiced
            self.max_queued_ms = max(self.max_queued_ms, self.queued_ms)
        return True

    def mark(self, name: str) -> None:
        """Queue a mark behind all audio pushed so far."""
        self._queue.append(name)

    def clear(self) -> tuple[tuple[str, ...], float]:
        """Drop everything: (the outstanding marks, oldest first; the audio thrown away, in ms)."""
        marks = tuple(item for item in self._queue if isinstance(item, str))
        dropped_ms = self.queued_ms
        self._queue.clear()
        self._queued_bytes = 0
        self._voiced_chunks = 0
        return marks, dropped_ms

    def advance(self) -> Played:
        """Play the next 20 ms; what is missing is silence."""
        heard = bytearray()
        marks: list[str] = []
        while self._queue:
            head = self._queue[0]
            if isinstance(head, str):
                marks.append(head)
                self._queue.popleft()
            elif len(heard) < FRAME_BYTES:
                heard += self._take(head, FRAME_BYTES - len(heard))
            else:
                break
        self._queued_bytes -= len(heard)
        from_queue = bool(heard)
        heard += SILENT_FRAME[len(heard) :]
        return Played(bytes(heard), from_queue, tuple(marks))

    def _take(self, chunk: _Chunk, room: int) -> bytes:
        piece = chunk.ulaw[chunk.offset : chunk.offset + room]
        chunk.offset += len(piece)
        if chunk.offset == len(chunk.ulaw):
            self._queue.popleft()
            self._voiced_chunks -= chunk.voiced
        return piece


@dataclass(frozen=True)
class FarSide:
    """What a caller knows of the other side's talking at one moment. `voiced_ms` is of the whole call."""

    busy: bool = False
    spurt_ms: int = 0
    idle_ms: int = 0
    voiced_ms: int = 0


@dataclass(frozen=True)
class Spurt:
    """One stretch of the far side talking, on the call's clock."""

    from_ms: int
    until_ms: int


SPURT_HANGOVER_MS = 300
"""Silence shorter than this belongs to the spurt it is in: pauses between words, gaps of a starved queue."""


class Ear:
    """Follows the far side frame by frame: talking or not, since when, and the spurts that are over."""

    def __init__(self) -> None:
        self._started_ms: int | None = None
        self._last_voice_ms = 0
        self._voiced_ms = 0
        self._now_ms = 0
        self._queue_has_voice = False

    @property
    def far(self) -> FarSide:
        talking = self._started_ms is not None
        since = self._started_ms if self._started_ms is not None else self._now_ms
        idle_ms = 0 if self._queue_has_voice else self._now_ms - self._last_voice_ms
        return FarSide(talking, self._now_ms - since, idle_ms, self._voiced_ms)

    def hear(self, now_ms: int, ulaw: bytes, queue_has_voice: bool) -> Spurt | None:
        """Take the frame that ended at `now_ms`; a spurt comes back once over, `SPURT_HANGOVER_MS` later."""
        self._now_ms = now_ms
        self._queue_has_voice = queue_has_voice
        if is_voiced(ulaw):
            if self._started_ms is None:
                self._started_ms = now_ms - FRAME_MS
            self._last_voice_ms = now_ms
            self._voiced_ms += FRAME_MS
            return None
        if queue_has_voice or now_ms - self._last_voice_ms < SPURT_HANGOVER_MS:
            return None
        return self.finish()

    def finish(self) -> Spurt | None:
        """The spurt that is still open, if any; closes it."""
        if self._started_ms is None:
            return None
        spurt = Spurt(self._started_ms, self._last_voice_ms)
        self._started_ms = None
        return spurt
