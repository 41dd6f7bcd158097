"""A little English: words, stems, questions, unfinished turns. Enough to be extractive, no more."""

import re

_WORD = re.compile(r"[a-z0-9]+(?:[:.'-][a-z0-9]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _set(
    """
    a about actually again ah all also am an and any are as at back be been but by can could did do does
    done else for from get give go got had has have he hello her hi him his how i i'd i'll i'm i've if in
    is it it's its just kind know let like little may me might mine more much my need needs no not now of oh ok okay
    on one or our out please put really said say she should so some tell than thank thanks that that's
    the their them then there there's these they this those to too uh um up us very want was we well were
    what what's when where which who why will with would yes you your yours
    """
)

_UNFINISHED = _set(
    """
    a an and as at because but by for from i i'd i'm if in into is are my of on or our so than that the
    their then to um uh when which who with your
    """
)

_QUESTION_STARTS = _set(
    """
    am are can could did do does had has have how is may might shall should was were what what's when
    when's where where's which who who's whom whose why will would
    """
)
_ASKS = re.compile(
    r"\b(tell me|i(?:'d| would) like to know|i want to know|i(?:'m| am) wondering|i was wondering)\b"
)

# Words that stand for one thing on the telephone. Stems, so that plurals and tenses meet.
_TOPICS = (
    "hour open clos when",
    "address street locat where find road squar",
    "pric cost much charg fee euro pound dollar pay expens cheap",
    "phon number call telephon",
    "park car garag",
    "book reserv tabl appoint visit slot",
    "menu dish food eat meal dinner lunch cook kitch vegetarian vegan dessert cake order allerg nut peanut gluten",
    "allerg nut peanut gluten lactos vegetarian vegan diet",
    "morn even afternoon noon night tomorrow today time o'clock before after earl late appoint book",
)


def normal(text: str) -> str:
    """Lower case, straight apostrophes, single spaces."""
    return " ".join(text.lower().replace("’", "'").split())


def words(text: str) -> list[str]:
    """The words of a text, in order, in lower case. `check-up` counts as `checkup`, and as its parts.

    A recogniser writes such a word in any of the three ways.
    """
    found: list[str] = []
    for word in _WORD.findall(normal(text)):
        if "-" in word:
            found.append(word.replace("-", ""))
        found += word.split("-")
    return found


def stem(word: str) -> str:
    """Plural, then ending: `allergies`, `allergy` and `allergic` meet as `allerg`."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-2] if word.endswith(("ses", "shes", "ches", "xes")) else word[:-1]
    for ending in ("ing", "ed", "ic", "y", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stems(text: str) -> set[str]:
    """Stems of the words that carry meaning."""
    return {stem(word) for word in words(text) if word not in STOP_WORDS}


_GROUPS = tuple(frozenset(topic.split()) for topic in _TOPICS)


def related(one: str) -> frozenset[str]:
    """Stems that stand for the same thing as this one; itself not among them."""
    found: set[str] = set()
    for group in _GROUPS:
        if one in group:
            found |= group
    return frozenset(found - {one})


def topics(text: str) -> set[int]:
    """Which of the telephone's everyday topics a text touches."""
    present = {stem(word) for word in words(text)}
    return {number for number, group in enumerate(_GROUPS) if present & group}


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in _SENTENCE_END.split(text.strip()) if part.strip()]


def is_question(text: str) -> bool:
    """Whether something is asked: by its mark, its first word, or a phrase that asks."""
    if text.rstrip().endswith("?") or _ASKS.search(normal(text)):
        return True
    said = [
        word
        for word in words(text)
        if word not in {"and", "but", "so", "well", "okay", "ok", "um", "uh", "please"}
    ]
    return bool(said) and said[0] in _QUESTION_STARTS


def is_unfinished(text: str) -> bool:
    """Whether a turn is empty or breaks off on a word that wants another."""
    said = words(text)
    return not said or (said[-1] in _UNFINISHED and not text.rstrip().endswith("?"))


def shortened(text: str, limit_words: int) -> str:
    """At most so many words, with an ellipsis where some were left out."""
    parts = text.split()
    return text.strip() if len(parts) <= limit_words else " ".join(parts[:limit_words]).rstrip(",;:.") + "…"


def quoted(text: str, limit_words: int = 22) -> str:
    """Somebody's words, to be repeated: short, without the full stop of the sentence they were."""
    return '"' + shortened(text, limit_words).rstrip(".!, ") + '"'
