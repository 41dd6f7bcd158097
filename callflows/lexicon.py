"""Words that callers use for digits, numbers, days and months, a yes and a no; and texts made comparable."""

import re
import unicodedata
from collections.abc import Mapping

MAX_CHARS = 500


def listed(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())


DIGITS_OF = (
    "zero one two three four five six seven eight nine",
    "null eins zwei drei vier fuenf sechs sieben acht neun",
    "zero un deux trois quatre cinq six sept huit neuf",
    "cero uno dos tres cuatro cinco seis siete ocho nueve",
)
DIGIT_WORDS: Mapping[str, str] = {
    word: str(no) for line in DIGITS_OF for no, word in enumerate(line.split())
} | {"oh": "0", "zwo": "2", "funf": "5", "une": "1", "una": "1"}
TEENS = listed("ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
TENS = listed("twenty thirty forty fifty sixty seventy eighty ninety")
ENGLISH: Mapping[str, int] = {
    **{word: no for no, word in enumerate(DIGITS_OF[0].split())},
    **{word: no for no, word in enumerate(TEENS, start=10)},
    **{word: no * 10 for no, word in enumerate(TENS, start=2)},
    "a": 1,
    "an": 1,
}
SCALES = {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
YES = frozenset(
    listed(
        "yes yeah yep yup sure correct right exactly okay ok true please ja genau richtig jawohl stimmt "
        "oui exact correcto si claro vale daccord"
    )
)
NO = frozenset(listed("no nope not wrong incorrect false never nein falsch nicht non faux incorrecto"))
MONTHS = listed("january february march april may june july august september october november december")
WEEKDAYS = listed("monday tuesday wednesday thursday friday saturday sunday")
ORDINALS = listed(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
    "fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"
)


FILLERS = frozenset(
    listed("it is its my the number uh um please okay ok yes code and es ist meine nummer mi numero le")
)


def plain(text: str) -> str:
    """Lower case, without accents and punctuation, single spaces; at most 500 characters are looked at."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold().replace("ß", "ss")
    for umlaut, letters in (("ä", "ae"), ("ö", "oe"), ("ü", "ue")):
        folded = folded.replace(umlaut, letters)
    bare = "".join(
        c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c)
    ).casefold()
    return " ".join(re.sub(r"[\W_]+", " ", bare.replace("'", "").replace("’", "")).split())


def number_in(text: str) -> float | None:
    """The one number in a text, in figures or English words (`two hundred and five`, `three point five`)."""
    figures = re.findall(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?|-?\d+(?:\.\d+)?", text)
    if figures:
        return float(figures[0].replace(",", "")) if len(figures) == 1 and len(figures[0]) < 16 else None
    whole, point, decimals = plain(text).partition(" point ")
    value = in_words(whole.split())
    if value is None or not point:
        return value
    tail = "".join(DIGIT_WORDS.get(word, "x") for word in decimals.split())
    return float(f"{value:.0f}.{tail}") if tail.isdecimal() else None


def in_words(words: list[str]) -> float | None:
    """English number words as a value; other words around them do not matter, two numbers are none."""
    runs: list[list[str]] = [[]]
    for word in words:
        if word in ENGLISH or word in SCALES or (word == "and" and runs[-1]):
            runs[-1].append(word)
        elif runs[-1]:
            runs.append([])
    meant = [run for run in runs if any((w in ENGLISH and w not in ("a", "an")) or w in SCALES for w in run)]
    return sum_of(meant[0]) if len(meant) == 1 else None


def sum_of(words: list[str]) -> float | None:
    total, part, last = 0, 0, 1_000
    for word in words:
        if word in ENGLISH:
            value = ENGLISH[word]
            # After a ten only a digit may follow: "five six" is no number.
            if last != 1_000 and not (last >= 20 and last % 10 == 0 and 0 < value < 10):
                return None
            part, last = part + value, value
        elif word == "hundred":
            part, last = (part or 1) * 100, 1_000
        elif word in SCALES:
            total, part, last = total + (part or 1) * SCALES[word], 0, 1_000
    return float(total + part)
