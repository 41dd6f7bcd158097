"""How loud µ-law audio is: coarse, cheap, and measured by us rather than believed."""

from itertools import groupby

from ivr.core.units import FRAME_BYTES, FRAME_MS, LINE_RATE_HZ

VOICED_DBFS = -42
"""A frame whose mean magnitude is above this is voice. The VAD begins at −50; line noise is a little above that."""
_STEP = 32
"""Magnitudes are counted in steps of 32 of a 16-bit sample: 10 steps are −40 dBFS, all above −12 are one."""
_VOICED_STEPS = 8
_SILENT_STEPS = 1.8
"""−50 dBFS, where a VAD begins: that is of the root mean square, which is √2 times the mean in speech (Laplace), and a
magnitude counted in whole steps loses half a step: 103.6 / √2 / 32 − 0.5.
"""
EDGE_SEARCH_MS = 400
"""So far back a word's edge is looked for: the longest a syllable is."""


def _magnitude(code: int) -> int:
    """Of a µ-law code, as 16-bit linear (ITU-T G.711)."""
    bits = ~code & 0xFF
    return ((((bits & 0x0F) << 3) + 0x84) << ((bits & 0x70) >> 4)) - 0x84


_STEPS = bytes(min(255, _magnitude(code) // _STEP) for code in range(256))


def level(ulaw: bytes) -> float:
    """Mean magnitude of some audio, in steps of 32 of a 16-bit sample."""
    return sum(ulaw.translate(_STEPS)) / len(ulaw) if ulaw else 0.0


def voiced_ms(ulaw: bytes) -> int:
    """How much of some audio is voiced, in whole frames of 20 ms."""
    frames = range(0, len(ulaw) - FRAME_BYTES + 1, FRAME_BYTES)
    return FRAME_MS * sum(level(ulaw[at : at + FRAME_BYTES]) >= _VOICED_STEPS for at in frames)


def pauses_ms(ulaw: bytes, least_ms: int) -> int:
    """How much of some audio lies in silences that last `least_ms` or longer, in whole frames of 20 ms."""
    frames = range(0, len(ulaw) - FRAME_BYTES + 1, FRAME_BYTES)
    silent = (level(ulaw[at : at + FRAME_BYTES]) < _SILENT_STEPS for at in frames)
    runs = (FRAME_MS * sum(1 for _ in run) for is_silent, run in groupby(silent) if is_silent)
    return sum(run_ms for run_ms in runs if run_ms >= least_ms)


def word_edge(ulaw: bytes) -> int:
    """Where to take speech up again that was heard up to the end of `ulaw`: the byte at which its last word begins.

    That is behind the last quiet frame, or, where speech ran on, behind the quietest one.
    """
    last = len(ulaw) - len(ulaw) % FRAME_BYTES
    first = max(0, last - EDGE_SEARCH_MS * LINE_RATE_HZ // 1_000)
    levels = [(level(ulaw[at : at + FRAME_BYTES]), at) for at in range(first, last, FRAME_BYTES)]
    if not levels:
        return len(ulaw)
    quiet = [at for loud, at in levels if loud < _VOICED_STEPS]
    return (quiet[-1] if quiet else min(levels)[1]) + FRAME_BYTES
