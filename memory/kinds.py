"""What kind of answer a question wants, and which kinds a text could give: times, numbers, names. Pure.

Who asks *when* is answered by a text that names a time, whatever its other words. English words, and digits; in
another language nothing is wanted, and what texts are is left to their other cues.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

KINDS = ("time", "number", "name", "question")
MANY = 3
"""More of a kind than this says nothing more."""

_TIME_WORDS = (
    "yesterday|today|tomorrow|tonight|ago|last|next|week|weekend|month|year|monday|tuesday|wednesday|thursday|friday"
    "|saturday|sunday|january|february|march|april|may|june|july|august|september|october|november|december|morning"
    "|evening|night|since|recently|soon"
)
_TIME = re.compile(rf"\b(?:{_TIME_WORDS})\b|\d", re.IGNORECASE)
_NUMBER = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|couple|few|several|many|twice|once|first|second"
    r"|third|\d+)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'’-]+")
"""A capital inside a sentence."""
_PUNCTUATION = re.compile(r"[.!?,;:]")
_ASKS = re.compile(
    r"\b(?:(?:what|how|when|where|who|why|which)(?:'s|'re)?|(?:do|did|does|are|were|have|has|can|could|would|will|is|was)"
    r" (?:you|your|it|that|there|they|he|she|we|i)|how about)\b",
    re.IGNORECASE,
)
ASKING_WORDS = 12
"""A recogniser writes no question mark: who asks does so in the last so many words."""
ASKING_LIKELY, ASKING_UNLIKELY = 0.67, 0.07
"""Of texts with and without such words, the share that had a question mark before it was taken away (LoCoMo's first
five dialogues as a recogniser writes them)."""
_WHEN = re.compile(r"\bwhen\b|\bwhat (?:date|day|month|year|time)\b|\bhow long\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow (?:many|much|often)\b", re.IGNORECASE)
_WHICH = re.compile(r"\b(?:who|which|where|what)\b", re.IGNORECASE)


class Wanted(NamedTuple):
    """What a question asks for."""

    time: bool = False
    number: bool = False
    name: bool = False


NOTHING_WANTED = Wanted()


def wanted_by(question: str) -> Wanted:
    """A time, a number, or the name of somebody or something."""
    time = _WHEN.search(question) is not None
    return Wanted(
        time, _HOW_MANY.search(question) is not None, not time and _WHICH.search(question) is not None
    )


def kinds_of(text: str) -> tuple[int, int, int, float]:
    """How many times, numbers and names a text has (at most 3), and how likely it is a question; as in `KINDS`."""
    times, numbers, names = (min(len(each.findall(text)), MANY) for each in (_TIME, _NUMBER, _NAME))
    return times, numbers, names, _question(text)


def _question(text: str) -> float:
    if _PUNCTUATION.search(text) or not text:
        return float(text.rstrip().endswith("?"))
    asks = _ASKS.search(" ".join(text.split()[-ASKING_WORDS:])) is not None
    return ASKING_LIKELY if asks else ASKING_UNLIKELY


def table_of(texts: list[str]) -> NDArray[np.float32]:
    """Shape (texts, kinds)."""
    return np.array([kinds_of(text) for text in texts], np.float32).reshape(-1, len(KINDS))
