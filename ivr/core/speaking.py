"""How fast the caller speaks, how fast our voice does, and the speed that brings the two together.

The caller's rate and the mapping to a speed are the paper's (paralinguistic state; speed mapping). Ours: units and
bands of other languages, a measured table in place of a line, and its correction by what the voice really spoke.
"""

import math
import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

KEEP = 10
MIN_UTTERANCE_MS = 500
MAX_UNCOUNTED_SHARE = 0.2
"""With more of a text in digits, or in another script than its language's, nobody knows what was spoken of it."""
MIN_REPLY_UNITS = 20
"""Shorter replies tell little of a voice: too much of them is the silence around the words."""
TRUSTED_UNITS = 200
"""What a measured table is worth at most against what the call itself has heard of the voice: four replies."""
SPEED_DECIMALS = 2


class Unit(StrEnum):
    """What is counted."""

    WORDS = "words"
    CHARACTERS = "characters"


_LATIN = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_ARABIC = re.compile("[\u0620-\u06ff]")
_CYRILLIC = re.compile("[\u0400-\u052f]")
_HEBREW = re.compile("[\u05d0-\u05ea]")
_NO_SPACES = re.compile("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
"""Han, kana and the iteration mark: written without spaces, so that only characters can be counted."""
_JOINT = re.compile("[-\u2010-\u2015]")
"""Hyphens and dashes: "ill-disposed" is spoken, and elsewhere written, as two words."""
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Band:
    """How a language's speech is counted, and the rates it plausibly has, in units a minute."""

    unit: Unit
    low: float
    high: float
    script: re.Pattern[str]


ENGLISH = Band(Unit.WORDS, 100.0, 300.0, _LATIN)
"""The paper's."""
_ENGLISH_ALOUD = 228
_ALOUD: dict[str, tuple[int, Unit, re.Pattern[str]]] = {
    "ar": (138, Unit.WORDS, _ARABIC),
    "de": (179, Unit.WORDS, _LATIN),
    "en": (_ENGLISH_ALOUD, Unit.WORDS, _LATIN),
    "es": (218, Unit.WORDS, _LATIN),
    "fi": (161, Unit.WORDS, _LATIN),
    "fr": (195, Unit.WORDS, _LATIN),
    "he": (187, Unit.WORDS, _HEBREW),
    "it": (188, Unit.WORDS, _LATIN),
    "ja": (357, Unit.CHARACTERS, _NO_SPACES),
    "nl": (202, Unit.WORDS, _LATIN),
    "pl": (166, Unit.WORDS, _LATIN),
    "pt": (181, Unit.WORDS, _LATIN),
    "ru": (184, Unit.WORDS, _CYRILLIC),
    "sl": (180, Unit.WORDS, _LATIN),
    "sv": (199, Unit.WORDS, _LATIN),
    "tr": (166, Unit.WORDS, _LATIN),
    "zh": (255, Unit.CHARACTERS, _NO_SPACES),
}
"""Mean rate of equivalent texts read aloud (Trauzettel-Klosinski & Dietz 2012, doi:10.1167/iovs.11-8284). A
language's band is the paper's English one, times what the language's mean is to the English mean.
"""


def band_of(language: str) -> Band | None:
    """The band of a language tag; `None` where no unit is known, and nothing may be concluded from a rate."""
    found = _ALOUD.get(language.split("-")[0].lower())
    if found is None:
        return None
    aloud, unit, script = found
    share = aloud / _ENGLISH_ALOUD
    return Band(unit, ENGLISH.low * share, ENGLISH.high * share, script)


def count_units(text: str, band: Band) -> int | None:
    """How many words or characters `text` has; `None` if too much of it is not of the band's script, or digits.

    A single digit is a word. So is a longer number, as it is written: where they are few, that is near enough.
    """
    counted = uncounted = numbers = 0
    for word in _JOINT.sub(" ", _NO_SPACES.sub(r" \g<0> ", text)).split():
        digits = len(_DIGIT.findall(word))
        if digits > 1:
            numbers += 1
        elif digits or band.script.search(word):
            counted += 1
        elif _LETTER.search(word):
            uncounted += 1
    if uncounted + numbers > MAX_UNCOUNTED_SHARE * (counted + uncounted + numbers):
        return None
    return counted + numbers


class SpeakingRate:
    """Linearly weighted mean of the last ten plausible utterances, r̂ = Σ i·rᵢ / Σ i, newest heaviest.

    Rates are in units a minute; `recent` are those of an earlier stream of the call, oldest first.
    """

    def __init__(self, language: str, recent: Iterable[float] = ()) -> None:
        self.band = band_of(language)
        self._rates: deque[float] = deque(recent if self.band is not None else (), maxlen=KEEP)

    @property
    def recent(self) -> Sequence[float]:
        """What the estimate is made of, oldest first."""
        return tuple(self._rates)

    def add(self, text: str, duration_ms: float) -> None:
        """Take an utterance in, unless it is too short, not of the language's unit, or not plausible for it."""
        if self.band is None or duration_ms < MIN_UTTERANCE_MS:
            return
        units = count_units(text, self.band)
        if units is None:
            return
        rate = units * 60_000 / duration_ms
        if self.band.low <= rate <= self.band.high:
            self._rates.append(rate)

    def estimate(self) -> float | None:
        """Units a minute, or `None` while nothing plausible was heard."""
        if not self._rates:
            return None
        weights = range(1, len(self._rates) + 1)
        return sum(i * r for i, r in zip(weights, self._rates, strict=True)) / sum(weights)

    def shown(self) -> str:
        """The estimate as the model is told it."""
        rate = self.estimate()
        if rate is None or self.band is None:
            return "unknown"
        return f"{rate:.0f} {self.band.unit} a minute"


@dataclass(frozen=True, slots=True)
class VoiceProfile:
    """What a voice's `speed` setting comes to: points (speed, units a minute), both rising; for one language.

    Two points are the paper's line. `measured_units`: words spoken at each point when the table was measured.
    Raises: `ValueError` for less than two points, or points that do not rise.
    """

    points: tuple[tuple[float, float], ...]
    language: str = "en"
    measured_units: int = 0

    def __post_init__(self) -> None:
        pairs = list(zip(self.points, self.points[1:], strict=False))
        if not pairs or any(a[0] >= b[0] or a[1] >= b[1] for a, b in pairs):
            raise ValueError("a voice profile needs two or more points, speeds and rates rising")

    def fits(self, language: str) -> bool:
        """Whether it says anything about this voice in `language`: a rate of other units would mislead."""
        return self.language.split("-")[0].lower() == language.split("-")[0].lower()

    def rate_at(self, speed: float) -> float:
        """Units a minute at a speed setting; beyond the table's ends, in proportion to the nearest point."""
        first, last = self.points[0], self.points[-1]
        if not first[0] <= speed <= last[0]:
            nearest = first if speed < first[0] else last
            return nearest[1] * speed / nearest[0]
        return _between(speed, self.points)

    def speed_for(self, rate: float) -> float:
        """The speed that brings the voice to `rate`, within the table: s(r) of the paper, piecewise."""
        turned = tuple((r, s) for s, r in self.points)
        return _between(min(turned[-1][0], max(turned[0][0], rate)), turned)


def _between(x: float, points: Sequence[tuple[float, float]]) -> float:
    """Linear between the two points around `x`, which is within them."""
    right = min(max(bisect_right(points, (x, math.inf)), 1), len(points) - 1)
    (x0, y0), (x1, y1) = points[right - 1], points[right]
    return y0 + (x - x0) / (x1 - x0) * (y1 - y0)


class VoicePace:
    """How far the voice is from its profile, by the replies it spoke in this call: one factor on its rates.

    The factor is the geometric mean of measured to expected, each reply weighing its words; the table weighs the
    words it was measured on, at most `TRUSTED_UNITS`.
    """

    def __init__(self, profile: VoiceProfile, band: Band) -> None:
        self._profile = profile
        self._band = band
        self._log_sum = 0.0
        self._weight = float(min(TRUSTED_UNITS, profile.measured_units))

    @property
    def factor(self) -> float:
        """Above 1: the voice is faster than its profile says."""
        return math.exp(self._log_sum / self._weight) if self._weight else 1.0

    def spoke(self, text: str, duration_ms: float, speed: float) -> None:
        """A reply was spoken to its end at `speed`."""
        units = count_units(text, self._band)
        if units is None or units < MIN_REPLY_UNITS or duration_ms <= 0:
            return
        rate = units * 60_000 / duration_ms
        self._log_sum += units * math.log(rate / self._profile.rate_at(speed))
        self._weight += units

    def speed_for(self, rate: float) -> float:
        """The speed at which this voice, as it was heard, speaks at `rate`."""
        return round(self._profile.speed_for(rate / self.factor), SPEED_DECIMALS)


class SpeedBy(StrEnum):
    """What set the speed in force."""

    DEFAULT = "default"
    MATCHED = "matched"
    """Inferred from how fast the caller speaks."""
    ASKED = "asked"
    """The caller asked for it in words: no measurement changes it any more (paper: explicit before inferred)."""


@dataclass(frozen=True, slots=True)
class SpeedState:
    """The speed in force, what set it, and the caller's last rates: what a call that goes on begins with."""

    speed: float = 1.0
    by: SpeedBy = SpeedBy.DEFAULT
    rates: tuple[float, ...] = ()


class Delivery:
    """The speed of our voice in one call. Without a profile that fits the language nothing is ever inferred."""

    def __init__(self, language: str, profile: VoiceProfile | None, state: SpeedState) -> None:
        self.rate = SpeakingRate(language, state.rates)
        self.speed = state.speed
        self.by = state.by
        band = self.rate.band
        self._pace = VoicePace(profile, band) if profile and band and profile.fits(language) else None

    def set(self, speed: float, *, asked: bool) -> None:
        """The model decided it: because the caller `asked`, or to match them. The latter never undoes the former."""
        if asked or self.by is not SpeedBy.ASKED:
            self.speed, self.by = speed, SpeedBy.ASKED if asked else SpeedBy.MATCHED

    def matching_speed(self) -> float | None:
        """The speed at which we would speak as fast as the caller; `None` where nobody knows."""
        rate = self.rate.estimate()
        return None if rate is None or self._pace is None else self._pace.speed_for(rate)

    def match(self) -> bool:
        """Take the caller's rate, unless they asked for a speed. Returns whether the speed changed."""
        speed = self.matching_speed()
        if speed is None or self.by is SpeedBy.ASKED:
            return False
        changed = speed != self.speed
        self.speed, self.by = speed, SpeedBy.MATCHED
        return changed

    def spoke(self, text: str, duration_ms: float, speed: float) -> None:
        """A reply was spoken to its end at `speed`: what it tells of the voice."""
        if self._pace is not None:
            self._pace.spoke(text, duration_ms, speed)

    def state(self) -> SpeedState:
        """What another stream of this call, or a call that resumes it, begins with."""
        return SpeedState(self.speed, self.by, tuple(round(r, 1) for r in self.rate.recent))
