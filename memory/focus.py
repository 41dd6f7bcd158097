"""The sentence of a text that answers a query best, by words in common. Pure; the text needs no punctuation."""

import re
from collections.abc import Iterator

FOCUS_WORDS_MAX = 20
STEM_LETTERS = 6

_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w+")
_COMMON_WORDS = (
    "a an and are as at be been but by can could did do does for from had has have he her his how i in is it its me"
    " my of on or our she so than that the their them they this to was we were what when where which who why will"
    " with would you your"
)
_COMMON = frozenset(_COMMON_WORDS.split())


def stems(text: str) -> frozenset[str]:
    """Words cut to their beginnings, so that "allergies" meets "allergic"; the commonest are left out."""
    words = (word for word in _WORD.findall(text.lower()) if word not in _COMMON)
    return frozenset(word.rstrip("s")[:STEM_LETTERS] for word in words)


def focus(text: str, asked: frozenset[str]) -> str:
    """The sentence with the most stems of `asked`, of those the one that says most; at most 20 words."""
    pieces = list(_pieces(text))
    if len(pieces) == 1:
        return pieces[0]
    return max(pieces, key=lambda piece: (len(asked & stems(piece)), len(piece)), default="")


def _pieces(text: str) -> Iterator[str]:
    for sentence in _END.split(text.strip()):
        words = sentence.split()
        for start in range(0, len(words), FOCUS_WORDS_MAX):
            yield " ".join(words[start : start + FOCUS_WORDS_MAX])
