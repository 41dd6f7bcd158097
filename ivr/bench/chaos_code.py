"""Numbers as sound: what the callers and the model of `ivr bench chaos` say, so that a machine knows who heard what.

A number is a marker, five digits and a check digit, 60 ms of one tone each. A caller's marker differs from the model's.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

SYMBOL_MS = 60
HOP_MS = 10
CALLER_HZ, MODEL_HZ = 2_400, 2_700
DIGITS = 5
_DIGIT_HZ = tuple(500 + 170 * digit for digit in range(10))
_LEVEL = 8_000
_QUIET = 1_500.0
"""An RMS level below which nothing is said."""


def check(number: int) -> int:
    """The digit that tells a number from one that was cut or garbled."""
    return sum((place + 3) * int(digit) for place, digit in enumerate(f"{number:0{DIGITS}}", start=1)) % 10


def encode(number: int, marker_hz: int, rate_hz: int) -> NDArray[np.int16]:
    """The number's sound as PCM16."""
    digits = f"{number:0{DIGITS}}{check(number)}"
    tones = [marker_hz, *(_DIGIT_HZ[int(digit)] for digit in digits)]
    return np.concatenate([tone(hz, SYMBOL_MS, rate_hz) for hz in tones])


def tone(hz: float, duration_ms: int, rate_hz: int) -> NDArray[np.int16]:
    """A sine with edges of 3 ms."""
    at = np.arange(duration_ms * rate_hz // 1_000)
    edge = np.clip(np.minimum(at + 1, at[::-1] + 1) / (0.003 * rate_hz), 0, 1)
    return np.asarray(np.rint(_LEVEL * edge * np.sin(2 * np.pi * hz * at / rate_hz)), dtype=np.int16)


def decode(pcm: NDArray[np.int16], marker_hz: int, rate_hz: int) -> list[int]:
    """The numbers that were said whole, in order."""
    window = SYMBOL_MS * rate_hz // 1_000 // 2
    hop = HOP_MS * rate_hz // 1_000
    symbols = _symbols(pcm, window, hop, rate_hz)
    marker = _all_hz().index(marker_hz)
    step = SYMBOL_MS // HOP_MS
    found: list[int] = []
    at = 0
    while at < len(symbols):
        number = _number_at(symbols, at, step) if symbols[at] == marker else None
        if number is None:
            at += 1
        else:
            found.append(number)
            at += step * (DIGITS + 2)
    return found


def _number_at(symbols: list[int], at: int, step: int) -> int | None:
    """The number whose marker's first full window is at `at`."""
    read = [symbols[at + step * place] for place in range(1, DIGITS + 2) if at + step * place < len(symbols)]
    if len(read) <= DIGITS or any(not 0 <= digit <= 9 for digit in read):
        return None
    number = int("".join(str(digit) for digit in read[:DIGITS]))
    return number if read[DIGITS] == check(number) else None


def _symbols(pcm: NDArray[np.int16], window: int, hop: int, rate_hz: int) -> list[int]:
    """For each hop the tone that is heard, as its place in `_all_hz`; -1 for none."""
    if len(pcm) < window:
        return []
    frames = np.lib.stride_tricks.sliding_window_view(pcm, window)[::hop].astype(np.float32)
    strength = np.abs(frames @ _references(window, rate_hz))
    loud = np.sqrt((frames**2).mean(axis=1)) > _QUIET
    return [int(best) if is_loud else -1 for best, is_loud in zip(strength.argmax(axis=1), loud, strict=True)]


@cache
def _all_hz() -> tuple[int, ...]:
    return (*_DIGIT_HZ, CALLER_HZ, MODEL_HZ, 300)


@cache
def _references(window: int, rate_hz: int) -> NDArray[np.complex64]:
    at = np.arange(window)[:, None] / rate_hz
    waves = np.exp(-2j * np.pi * at * np.array(_all_hz())[None, :])
    return np.asarray(waves * np.hanning(window)[:, None], dtype=np.complex64)
