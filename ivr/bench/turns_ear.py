"""What a model's turn detection hears of a recording with holes: the level of each window of 20 ms.

It is the level of the audio that a call would give to the model (`ivr.audio.inbound`: G.711, concealment, 24 kHz),
computed where a hole changes it and remembered everywhere: concealment depends on the last 49 ms before a hole alone,
so the same hole after the same sound is concealed once for all traces, offsets and policies.

A usual receiver conceals while nothing arrives (`Receiver`): it knows no frame behind a hole, and makes up all of it.
"""

from collections.abc import Sequence

from ivr.audio.conceal import Concealer
from ivr.audio.g711 import ulaw_to_pcm16
from ivr.audio.inbound import Inbound
from ivr.audio.resample import Upsampler
from ivr.core.units import FRAME_MS, MODEL_RATE_HZ, ULAW_SILENCE
from ivr.sandbox.vad import WINDOW_MS, level_dbfs

_WINDOW_BYTES = 2 * MODEL_RATE_HZ * WINDOW_MS // 1_000
_PAST_BYTES = 2 * 480
"""PCM16 8 kHz, 60 ms: more than the concealer (49 ms) and the filter (3 ms) remember."""
_SILENCE = ULAW_SILENCE * 160
_NOTHING = (float("-inf"),)
_AFTER_FRAMES = 4
"""From so many frames behind the recording's end on, all windows are alike."""

Levels = tuple[float, ...]
_Heard = tuple[Levels, bytes]
"""Levels of what came in, and what is remembered of its sound."""


class Ear:
    """One recording, and everything already heard of it."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = tuple(frames) + (_SILENCE,) * _AFTER_FRAMES
        self._pcm8k = tuple(ulaw_to_pcm16(frame) for frame in self._frames)
        clean = Inbound()
        self._clean: tuple[Levels, ...] = tuple(_levels(clean.frame(frame)) for frame in self._frames)
        self._known: dict[tuple[bytes, int, int], _Heard] = {}
        self._made_up: dict[tuple[bytes, int, int], _Heard] = {}

    def frame(self, number: int) -> bytes:
        """The µ-law of the caller's frame `number`; behind the recording there is silence."""
        return self._frames[self._index(number)]

    def listen(self) -> "Listener":
        """Begin a call in which this recording is said."""
        return Listener(self)

    def _index(self, number: int) -> int:
        return min(number, len(self._frames) - 1)

    def clean(self, number: int) -> Levels:
        """The level of a frame that follows the one before it."""
        return self._clean[self._index(number)]

    def after_hole(self, past: bytes, missing_ms: int, number: int) -> _Heard:
        """The levels of a concealed hole and the frame behind it; and what was heard last after it."""
        key = (past, missing_ms, self._index(number))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _conceal(past, missing_ms, self._pcm8k[key[2]])
        return found

    def made_up(self, past: bytes, frames: int, number: int) -> _Heard:
        """As `after_hole`, of a receiver that does not know yet what follows."""
        key = (past, frames, self._index(number))
        found = self._made_up.get(key)
        if found is None:
            found = self._made_up[key] = _make_up(past, frames, self._pcm8k[key[2]])
        return found

    def received(self, lost: Sequence[bool]) -> list[Levels]:
        """What a usual receiver plays of these frames: one level each, lost or not."""
        out: list[Levels] = []
        past, since, hole = bytes(_PAST_BYTES), 0, 0
        for number, gone in enumerate(lost):
            if gone:
                hole += 1
            elif not hole:
                out.append(self.clean(number))
            else:
                past = self.joined(past, since, number - hole)
                levels, past = self.made_up(past, hole, number)
                out += [(level,) for level in levels]
                since, hole = number + 1, 0
        return out + [_NOTHING] * hole

    def joined(self, past: bytes, since: int, end: int) -> bytes:
        """The last 60 ms before frame `end`, when `past` was before frame `since`; no holes between."""
        first = max(since, end - _PAST_BYTES // 320)
        return (past + b"".join(self._pcm8k[self._index(no)] for no in range(first, end)))[-_PAST_BYTES:]


class Listener:
    """One call's way in. Sounds are added in the order in which the model is given them."""

    __slots__ = ("_ear", "_last", "_past", "_since")

    def __init__(self, ear: Ear) -> None:
        self._ear = ear
        self._past = bytes(_PAST_BYTES)
        self._since = 0
        """The first frame that is not yet in `_past`."""
        self._last = -1

    def hear(self, number: int, missing_ms: int) -> Levels:
        """The next frame, after `missing_ms` of concealment: a level for each window of 20 ms."""
        if not missing_ms and number == self._last + 1:
            self._last = number
            return self._ear.clean(number)
        past = self._ear.joined(self._past, self._since, self._last + 1)
        levels, self._past = self._ear.after_hole(past, missing_ms, number)
        self._last, self._since = number, number + 1
        return levels


def _make_up(past: bytes, frames: int, frame: bytes) -> _Heard:
    """A frame at a time, then back to the real sound."""
    concealer, upsampler = Concealer(), Upsampler()
    concealer.good(past)
    upsampler.feed(past)
    sound = b"".join(concealer.missing(FRAME_MS) for _ in range(frames)) + concealer.good(frame)
    return _levels(upsampler.feed(sound)), (past + sound)[-_PAST_BYTES:]


def _conceal(past: bytes, missing_ms: int, frame: bytes) -> _Heard:
    """As `Inbound.frame` does, from what it remembers of the past."""
    concealer, upsampler = Concealer(), Upsampler()
    concealer.good(past)
    upsampler.feed(past)
    sound = concealer.missing(missing_ms, frame) + frame
    return _levels(upsampler.feed(sound)), (past + sound)[-_PAST_BYTES:]


def _levels(pcm24k: bytes) -> Levels:
    if len(pcm24k) % _WINDOW_BYTES:
        raise ValueError(f"holes and frames of whole {FRAME_MS} ms only")
    return tuple(level_dbfs(pcm24k[at : at + _WINDOW_BYTES]) for at in range(0, len(pcm24k), _WINDOW_BYTES))
