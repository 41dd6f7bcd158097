"""`ivr bench conceal`: how near concealed speech comes to what was lost, by log-spectral distance.

Clean speech goes over a lossy line in frames of 20 ms; each way of filling the holes is compared with the clean
speech, only where a hole or the re-entry after it is in the window.
"""

import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from ivr.audio.conceal import Concealer
from ivr.audio.files import BadAudioFile, read_wav
from ivr.audio.g711 import pcm16_to_ulaw, ulaw_to_pcm16
from ivr.errors import CallthreadError

_RATE_HZ = 8_000
_FRAME_BYTES = 320
_FRAME = 160
_FRAME_MS = 20
_WINDOW = 256
_HOP = 64
_FLOOR = 1e4
"""Power added to every bin, as of white noise at −70 dBFS: what is below nobody hears on a telephone."""

_Samples = NDArray[np.float64]


class Way(StrEnum):
    """How holes are filled."""

    OURS = "ours"
    ONE_SIDED = "one-sided"
    """Ours without the frame that follows: G.711 Appendix I."""
    SILENCE = "silence"
    BEFORE = "frame before"
    AFTER = "frame after"


@dataclass(frozen=True, slots=True)
class Score:
    """One way on one trace with one piece of speech: mean distance in dB over so many windows."""

    distance_db: float
    windows: int


Scores = dict[str, dict[str, dict[Way, Score]]]
"""By trace and speech."""


def measure(speech: Mapping[str, bytes], traces: Mapping[str, Sequence[bool]]) -> Scores:
    """Compare all ways. `speech`: PCM16 8 kHz by name; `traces`: per 20 ms frame, whether it is lost."""
    scores: Scores = {}
    for name, trace in traces.items():
        scores[name], at = {}, 0
        for clip, pcm16 in speech.items():
            clean = ulaw_to_pcm16(pcm16_to_ulaw(pcm16))
            frames = [
                clean[i : i + _FRAME_BYTES] for i in range(0, len(clean) - _FRAME_BYTES + 1, _FRAME_BYTES)
            ]
            # Each clip meets the next part of the trace. The first frame is never lost: nothing came before it.
            lost = [bool(no) and trace[(at + no) % len(trace)] for no in range(len(frames))]
            at += len(frames)
            if any(lost):
                scores[name][clip] = _compare(frames, lost)
    return scores


def _compare(frames: Sequence[bytes], lost: Sequence[bool]) -> dict[Way, Score]:
    end = len(lost) - next(i for i, gone in enumerate(reversed(lost)) if not gone)
    frames, lost = frames[:end], lost[:end]  # a hole that nothing follows is never known
    clean = _samples(b"".join(frames))
    windows = _touched(lost)
    spectra = _spectra(clean, windows)
    out = {}
    for way in Way:
        distance = _distance(spectra, _spectra(_samples(render(frames, lost, way)), windows))
        out[way] = Score(float(distance.mean()) if len(distance) else 0.0, len(distance))
    return out


def render(frames: Sequence[bytes], lost: Sequence[bool], way: Way) -> bytes:
    """What comes out of a line that loses these frames, filled in this way."""
    fill, out, hole = _FILLS[way](), bytearray(), 0
    for frame, gone in zip(frames, lost, strict=True):
        if gone:
            hole += 1
            continue
        out += fill(hole, frame)
        hole = 0
    return bytes(out)


Fill = Callable[[int, bytes], bytes]
"""A hole of so many frames and the frame that follows → both, filled."""


def _concealed(*, two_sided: bool) -> Callable[[], Fill]:
    def make() -> Fill:
        concealer = Concealer()

        def fill(hole: int, frame: bytes) -> bytes:
            following = frame if two_sided else b""
            return concealer.missing(hole * _FRAME_MS, following) + concealer.good(frame)

        return fill

    return make


def _before() -> Fill:
    last = bytes(_FRAME_BYTES)

    def fill(hole: int, frame: bytes) -> bytes:
        nonlocal last
        filled, last = last * hole + frame, frame
        return filled

    return fill


_FILLS: dict[Way, Callable[[], Fill]] = {
    Way.OURS: _concealed(two_sided=True),
    Way.ONE_SIDED: _concealed(two_sided=False),
    Way.SILENCE: lambda: lambda hole, frame: bytes(_FRAME_BYTES * hole) + frame,
    Way.BEFORE: _before,
    Way.AFTER: lambda: lambda hole, frame: frame * (hole + 1),
}


# -- the measure ------------------------------------------------------------------------------------------------


def _samples(pcm16: bytes) -> _Samples:
    return np.frombuffer(pcm16, "<i2").astype(np.float64)


def _touched(lost: Sequence[bool]) -> NDArray[np.int64]:
    """First samples of the windows that see a lost frame, or the 10 ms after one."""
    starts = np.arange(0, len(lost) * _FRAME - _WINDOW + 1, _HOP)
    changed = np.repeat(np.array(lost, bool), _FRAME)
    changed[_FRAME // 2 :] |= changed[: -_FRAME // 2].copy()
    seen = np.concatenate(([0], np.cumsum(changed)))
    return np.asarray(starts[seen[starts + _WINDOW] > seen[starts]])


def _spectra(sound: _Samples, starts: NDArray[np.int64]) -> _Samples:
    """(windows, bins): power in dB."""
    windows = sound[starts[:, None] + np.arange(_WINDOW)] * np.hanning(_WINDOW)
    return np.asarray(10 * np.log10(np.abs(np.fft.rfft(windows)) ** 2 + _FLOOR))


def _distance(one: _Samples, other: _Samples) -> _Samples:
    """Log-spectral distance of each window, in dB."""
    return np.asarray(np.sqrt(np.mean((one - other) ** 2, axis=1)))


# -- files, and the table -----------------------------------------------------------------------------------------


def load_speech(folder: Path) -> dict[str, bytes]:
    """All WAV files below `folder` as PCM16 8 kHz, by path. Raises: `CallthreadError` if there are none."""
    speech = {}
    for path in sorted(folder.rglob("*.wav")):
        try:
            speech[str(path.relative_to(folder))] = read_wav(path, _RATE_HZ)
        except (BadAudioFile, wave.Error) as error:
            raise CallthreadError(f"{path}: {error}") from error
    if not speech:
        raise CallthreadError(f"{folder}: no WAV files")
    return speech


def load_losses(folder: Path) -> dict[str, list[bool]]:
    """All loss traces (a line per frame, 1 = lost) in `folder`, by name. Raises: `CallthreadError` if it has none."""
    traces = {}
    for path in sorted(folder.glob("*.txt")):
        lines = path.read_text().split()
        if lines and set(lines) <= {"0", "1"}:
            traces[path.stem] = [line == "1" for line in lines]
    if not traces:
        raise CallthreadError(f"{folder}: no loss traces")
    return traces


def mean_db(by_clip: Mapping[str, Mapping[Way, Score]], way: Way) -> float:
    """Over all windows of all clips."""
    windows = sum(scores[way].windows for scores in by_clip.values())
    total = sum(scores[way].distance_db * scores[way].windows for scores in by_clip.values())
    return total / windows if windows else 0.0


def _pairs(scores: Scores) -> Iterator[tuple[str, str, Mapping[Way, Score]]]:
    for trace, by_clip in scores.items():
        for clip, by_way in by_clip.items():
            yield trace, clip, by_way


def not_best(scores: Scores) -> list[tuple[str, str]]:
    """Trace and clip wherever silence or a repeated frame came nearer than ours."""
    others = (Way.SILENCE, Way.BEFORE, Way.AFTER)
    return [
        (trace, clip)
        for trace, clip, by_way in _pairs(scores)
        if by_way[Way.OURS].distance_db > min(by_way[way].distance_db for way in others)
    ]


def table(scores: Scores) -> Table:
    """A row a trace."""
    shown = Table(title="Log-spectral distance to the clean speech where something was lost, dB")
    shown.add_column("trace")
    for way in Way:
        shown.add_column(way, justify="right")
    for trace, by_clip in scores.items():
        shown.add_row(trace, *(f"{mean_db(by_clip, way):.2f}" for way in Way))
    return shown
