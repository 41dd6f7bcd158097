"""Measures a voice's table: words a minute at each speed setting, over passages that no bench replies with."""

import itertools
import math
from collections.abc import Awaitable, Callable, Sequence

from ivr.bench.rate_texts import PASSAGES
from ivr.core.speaking import ENGLISH, VoiceProfile, count_units
from ivr.core.units import pcm24k_ms

COARSE = tuple(round(0.5 + 0.05 * step, 2) for step in range(21))
"""0.50 to 1.50: what the provider's setting and the plausible rates of speech have in common."""
FINE_STEP = 0.01
JUMP = 1.05
"""Between neighbours that differ by more than this factor, a step that can be heard (Quené 2007: tempo, about 5 %),
the voice is measured at each hundredth.
"""

Speak = Callable[[str, str, float], Awaitable[bytes]]
"""Text, voice, speed → PCM16 24 kHz."""


def units_of(text: str) -> int:
    """Words of an English text of ours. Raises: `ValueError` if it cannot be counted."""
    units = count_units(text, ENGLISH)
    if units is None:
        raise ValueError("a text of digits, or not in English")
    return units


async def measure_voice(
    speak: Speak, voice: str, passages: Sequence[str] = PASSAGES, step: Callable[[], None] = lambda: None
) -> VoiceProfile:
    """The voice's table. Settings that make it no faster than the one before are left out."""
    rates: dict[float, float] = {}

    async def at(speed: float) -> None:
        spoken = [pcm24k_ms(await speak(text, voice, speed)) for text in passages]
        rates[speed] = sum(units_of(text) for text in passages) * 60_000 / sum(spoken)
        step()

    for speed in COARSE:
        await at(speed)
    for low, high in itertools.pairwise(COARSE):
        if rates[high] > JUMP * rates[low]:
            for hundredth in range(1, round((high - low) / FINE_STEP)):
                await at(round(low + FINE_STEP * hundredth, 2))
    return VoiceProfile(_rising(rates), "en", sum(units_of(text) for text in passages))


def _rising(rates: dict[float, float]) -> tuple[tuple[float, float], ...]:
    points: list[tuple[float, float]] = []
    best = -math.inf
    for speed, rate in sorted(rates.items()):
        shown = round(rate, 1)
        if shown > best:
            points.append((speed, shown))
            best = shown
    return tuple(points)
