"""Packet-loss concealment at 8 kHz by waveform substitution, as ITU-T G.711 Appendix I describes it.

Two differences, for a hole is known only when the next frame is there. By then the sound before it has gone on, so
nothing is held back for the first overlap (the Appendix delays all speech by 3.75 ms): the first repeated period is
bent to start where the sound stopped. And the frame that follows is known too: its own pitch periods are repeated
backwards in time to meet what is repeated of the past, so that the hole leads from the one sound to the other.
"""

import numpy as np
from numpy.typing import NDArray

_RATE_KHZ = 8
_SHORTEST_PERIOD = 40  # 200 Hz
_LONGEST_PERIOD = 120  # 66 Hz
_COMPARED = 160  # 20 ms are matched against the past
_MOST_PERIODS = 3
_HISTORY = _MOST_PERIODS * _LONGEST_PERIOD + _LONGEST_PERIOD // 4
_STEP = 10 * _RATE_KHZ
"""Each 10 ms more of the past is repeated, up to three periods; the level falls from the first 10 ms on."""
_SILENT_FROM = 60 * _RATE_KHZ
_LONGEST_REENTRY = 10 * _RATE_KHZ
_REENTRY_A_STEP = 4 * _RATE_KHZ
_FOLLOWING = 20 * _RATE_KHZ
"""So much of the sound after a hole is needed to conceal it from both sides."""

_Samples = NDArray[np.float64]


def _pitch_period(history: _Samples) -> int:
    """The lag, in samples, at which the last 20 ms (less if there is less) look most like what came before them."""
    compared = min(_COMPARED, len(history) - _LONGEST_PERIOD)
    recent = history[-compared:]
    past = history[-compared - _LONGEST_PERIOD : -_SHORTEST_PERIOD]
    windows = np.lib.stride_tricks.sliding_window_view(past, compared)
    energy = np.einsum("ij,ij->i", windows, windows)
    # A floor as of faint noise keeps near-silent stretches from winning by their small energy alone.
    likeness = windows @ recent / np.sqrt(np.maximum(energy, float(compared)))
    return _LONGEST_PERIOD - int(np.argmax(likeness))


def _ramp(length: int) -> _Samples:
    """Weights rising in equal steps between 0 and 1, both ends left out."""
    return np.arange(1, length + 1) / (length + 1)


class _Substitute:
    """The sound that stands in for a hole: a fixed function of the history before it."""

    __slots__ = ("_wave", "overlap")

    def __init__(self, history: _Samples) -> None:
        period = _pitch_period(history)
        self.overlap = period // 4
        self._wave = self._build(history, period)

    def samples(self, start: int, count: int) -> _Samples:
        """Samples `start` … `start + count` of the substitute; zeros from 60 ms on."""
        out = np.zeros(count)
        part = self._wave[start : start + count]
        out[: len(part)] = part
        return out

    def reentry(self, concealed: int) -> int:
        """Over how many samples real sound takes over again after `concealed` samples of substitute."""
        steps_after_first = max(0, -(-concealed // _STEP) - 1)
        return min(_LONGEST_REENTRY, self.overlap + steps_after_first * _REENTRY_A_STEP)

    def _build(self, history: _Samples, period: int) -> _Samples:
        wave = self._repeat(history, period, 1, 0)
        # Of the sound after a hole there is but a frame: no room for several periods of a low voice.
        most = min(_MOST_PERIODS, (len(history) - self.overlap) // period)
        for periods in range(2, most + 1):
            start = (periods - 1) * _STEP
            longer = self._repeat(history, period, periods, start)
            weights = _ramp(self.overlap)
            end = start + self.overlap
            wave[start:end] += weights * (longer[start:end] - wave[start:end])
            wave[end:] = longer[end:]
        bend = history[-1] - history[-period - 1]
        wave[: self.overlap] += bend * _ramp(self.overlap)[::-1]
        fading = np.arange(_SILENT_FROM - _STEP)
        wave[_STEP:] *= 1.0 - fading / len(fading)
        return wave

    def _repeat(self, history: _Samples, period: int, periods: int, start: int) -> _Samples:
        """The last `periods` periods over and over, in phase with the single period at sample `start`."""
        length = periods * period
        loop = history[-length:].copy()
        weights = _ramp(self.overlap)
        before = history[-length - self.overlap : -length]
        loop[-self.overlap :] += weights * (before - loop[-self.overlap :])  # so that the wrap is smooth
        at = np.arange(_SILENT_FROM) - start + start % period
        return np.asarray(loop[at % length])


def _between(history: _Samples, following: _Samples, count: int) -> _Samples:
    """Sound for a hole of `count` samples that leads from `history` to `following`."""
    forward = _Substitute(history).samples(0, count)
    backward = _Substitute(following[:_FOLLOWING][::-1]).samples(0, count)[::-1]
    rising = _ramp(count)
    return np.asarray(rising[::-1] * forward + rising * backward)


def _to_pcm16(samples: _Samples) -> bytes:
    return np.rint(samples).clip(-32_768, 32_767).astype("<i2").tobytes()


class Concealer:
    """One call's concealment. PCM16 mono 8 kHz in and out; no delay.

    No frame changes but the one after a hole that was concealed without it.
    """

    __slots__ = ("_concealed", "_history", "_resumed", "_substitute")

    def __init__(self) -> None:
        self._history = bytes(2 * _HISTORY)
        self._substitute: _Substitute | None = None
        self._concealed = 0
        self._resumed = 0

    def good(self, pcm16: bytes) -> bytes:
        """Sound that did arrive: the same bytes, or faded in over the substitute's end right after a hole."""
        out = pcm16 if self._substitute is None else self._reenter(self._substitute, pcm16)
        self._remember(out)
        return out

    def missing(self, duration_ms: int, following: bytes = b"") -> bytes:
        """Sound for a hole of `duration_ms` (none for 0 or less), given the sound that comes after it.

        Without at least 20 ms of `following` it goes on where a hole before it stopped, and `good` fades in.
        """
        count = duration_ms * _RATE_KHZ
        if count <= 0:
            return b""
        if len(following) >= 2 * _FOLLOWING:
            out = _to_pcm16(_between(self._past(), np.frombuffer(following, "<i2").astype(np.float64), count))
            self._substitute = None
        else:
            out = self._alone(count)
        self._remember(out)
        return out

    def _past(self) -> _Samples:
        return np.frombuffer(self._history, "<i2").astype(np.float64)

    def _alone(self, count: int) -> bytes:
        if self._substitute is None or self._resumed:
            self._substitute, self._concealed, self._resumed = _Substitute(self._past()), 0, 0
        out = _to_pcm16(self._substitute.samples(self._concealed, count))
        self._concealed += count
        return out

    def _reenter(self, substitute: _Substitute, pcm16: bytes) -> bytes:
        """Cross-fade, over as many calls as it takes when frames are short."""
        total = substitute.reentry(self._concealed)
        real = np.frombuffer(pcm16, "<i2", len(pcm16) // 2).astype(np.float64)
        count = min(len(real), total - self._resumed)
        weights = _ramp(total)[self._resumed : self._resumed + count]
        stand_in = substitute.samples(self._concealed + self._resumed, count)
        real[:count] = stand_in + weights * (real[:count] - stand_in)
        self._resumed += count
        if self._resumed == total:
            self._substitute = None
        return _to_pcm16(real)

    def _remember(self, pcm16: bytes) -> None:
        self._history = (self._history + pcm16)[-2 * _HISTORY :]
