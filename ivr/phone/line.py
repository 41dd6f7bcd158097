"""The µ-law telephone line: constants, silence, and telling voice from silence.

8 kHz, one byte a sample (ITU-T G.711), whole frames of 20 ms. Written apart from the service's own constants:
this package is the other side of the wire and must not share its mistakes.
"""

import audioop
import math

import numpy as np

RATE_HZ = 8_000
FRAME_MS = 20
FRAME_BYTES = 160
SILENCE = b"\xff"
SILENT_FRAME = SILENCE * FRAME_BYTES

VOICED_PEAK = 500
"""Peak (of 32768) above which a stretch counts as voice: −36 dBFS, over comfort noise, under any speech."""

_MURMUR_MS_PER_CHARACTER = 65
_MURMUR_PERIOD_S = 0.25


def is_voiced(ulaw: bytes) -> bool:
    """Whether any sample of `ulaw` is louder than `VOICED_PEAK`."""
    if not ulaw or ulaw.count(SILENCE) == len(ulaw):
        return False
    return audioop.max(audioop.ulaw2lin(ulaw, 2), 2) > VOICED_PEAK


def silence_ulaw(duration_ms: float) -> bytes:
    """Silence lasting `duration_ms`, rounded down to whole samples."""
    return SILENCE * int(duration_ms * RATE_HZ // 1_000)


def duration_ms(ulaw: bytes | bytearray) -> float:
    """How long `ulaw` lasts, in ms."""
    return len(ulaw) * 1_000 / RATE_HZ


def murmur(text: str) -> bytes:
    """A stand-in for `<Say>` where no voice is given: a soft hum as long as `text` would take."""
    samples = RATE_HZ * max(400, _MURMUR_MS_PER_CHARACTER * len(text)) // 1_000
    seconds = np.arange(samples) / RATE_HZ
    envelope = 0.55 + 0.45 * np.sin(2 * math.pi * seconds / _MURMUR_PERIOD_S)
    pcm = 1_500 * envelope * np.sin(2 * math.pi * 180 * seconds)
    return audioop.lin2ulaw(pcm.astype("<i2").tobytes(), 2)
