"""Answers by extraction: the sentence, of those given, that shares most with what was asked."""

import math
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from ivr.sandbox.brain import Line, Question, Who
from ivr.sandbox.language import is_question, related, sentences, stem, stems, topics, words

_THRESHOLD = 0.3
_SECOND = 0.8
_RELATED_WEIGHT = 0.5

_HEADING = re.compile(r"^#+\s*(?P<title>.*)$")
_CONSTRAINT = re.compile(
    r"\b(no|not|never|without|only|allerg\w*|can't|cannot|don't|vegetarian|vegan|before|after|must|prefer)\b",
    re.I,
)
_PERSONAL = re.compile(
    r"\b(my|mine|(did|am|have|was|what) i|i (told|said|mentioned|asked)|remember|about me)\b", re.I
)
_SETTING = re.compile(r"\w+\s*[=:]\s*-?\d")
_SPEAKER = re.compile(r"\b(?P<who>caller|agent|user|assistant):\s*", re.I)


class Source(StrEnum):
    """Where a sentence comes from."""

    FACT = "fact"
    USER = "user"
    MEMORY = "memory"


@dataclass(frozen=True)
class Candidate:
    """A sentence that may be repeated."""

    text: str
    source: Source


def facts(instructions: str) -> list[Candidate]:
    """Lines that begin with `- ` under a heading `# Facts` (any depth), up to the next heading."""
    found: list[Candidate] = []
    inside = False
    for line in instructions.splitlines():
        heading = _HEADING.match(line.strip())
        if heading:
            inside = heading["title"].strip().lower().startswith("facts")
        elif inside and line.strip().startswith("- "):
            found.append(Candidate(line.strip()[2:].strip(), Source.FACT))
    return found


def papers(lines: tuple[Line, ...]) -> list[Candidate]:
    """The sentences of the business's own papers. A passage begins with its document's title and a colon."""
    return [
        Candidate(part, Source.FACT)
        for line in lines
        if line.who is Who.DOCUMENT
        for part in sentences(line.text.partition(": ")[2] or line.text)
    ]


def told(lines: tuple[Line, ...]) -> list[Candidate]:
    """What the user stated in earlier turns, and what memory says in system messages, oldest first."""
    found: list[Candidate] = []
    for line in lines:
        if line.who is Who.USER:
            found += [
                Candidate(part, Source.USER)
                for part in sentences(line.text)
                if not is_question(part) and len(stems(part)) >= 1 and len(words(part)) >= 3
            ]
        elif line.who is Who.SYSTEM and not _SETTING.search(line.text):
            found += [
                Candidate(part, Source.MEMORY) for part in _callers_part(line.text) if len(words(part)) >= 4
            ]
    return _each_once(found)


def _callers_part(summary: str) -> list[str]:
    """The sentences of a summary; where it names speakers, only the caller's: our own words are no memory."""
    pieces = _SPEAKER.split(summary)
    found = sentences(pieces[0])
    for who, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if who.lower() in ("caller", "user"):
            found += sentences(text)
    return found


def _each_once(candidates: list[Candidate]) -> list[Candidate]:
    """A sentence that stands in a summary and in its page is one sentence; the user's own words go first."""
    ordered = sorted(candidates, key=lambda one: one.source is not Source.USER)
    first = {" ".join(words(one.text)): one for one in reversed(ordered)}
    return [one for one in candidates if first[" ".join(words(one.text))] is one]


def best(asked: str, candidates: list[Candidate]) -> list[Candidate]:
    """The sentence that answers best, with a second that is nearly as good; none below the threshold."""
    ranked = sorted(
        ((score, -number, one) for number, (one, score) in enumerate(_scores(asked, candidates))),
        reverse=True,
    )
    if not ranked or ranked[0][0] < _THRESHOLD:
        return []
    top, _, first = ranked[0]
    also = [one for score, _, one in ranked[1:2] if score >= _SECOND * top and one.source is first.source]
    return [first, *also]


def is_personal(asked: str) -> bool:
    """Whether a question is about what the user told, rather than about the business."""
    return bool(_PERSONAL.search(asked))


def constraints(turn: str, earlier: list[Candidate]) -> list[Candidate]:
    """What the user told before that limits what is wanted now: it shares a word or an everyday topic."""
    now, about = stems(turn), topics(turn)
    return [
        one
        for one in earlier
        if one.source is not Source.FACT
        and _CONSTRAINT.search(one.text)
        and (now & stems(one.text) or about & topics(one.text))
        and one.text not in turn
    ]


def state(question: Question) -> dict[str, float]:
    """Numbers in the last system message (`name=1.0` or `name: 1.0`): the state snapshot, if there is one."""
    systems = [line.text for line in question.lines if line.who is Who.SYSTEM]
    if not systems:
        return {}
    return {
        name: float(value) for name, value in re.findall(r"(\w+)\s*[=:]\s*(-?\d+(?:\.\d+)?)", systems[-1])
    }


def _scores(asked: str, candidates: list[Candidate]) -> list[tuple[Candidate, float]]:
    wanted = _wanted(asked)
    bags = [{stem(word) for word in words(one.text)} for one in candidates]
    seen = Counter(word for bag in bags for word in bag)
    rarity = {word: math.log(1.0 + len(bags) / (seen[word] or 0.5)) for word in wanted}
    total = sum(rarity.values())
    return [
        (one, _match(bag, rarity) / total if total else 0.0)
        for one, bag in zip(candidates, bags, strict=True)
    ]


def _wanted(asked: str) -> set[str]:
    """What to look for: words that carry meaning, and the question word where there is little else."""
    wanted = stems(asked)
    asking = {stem(word) for word in words(asked)} & {"when", "wher", "much"}
    return wanted | {word if word != "wher" else "where" for word in asking}


def _match(bag: set[str], rarity: dict[str, float]) -> float:
    score = 0.0
    for word, weight in rarity.items():
        if word in bag:
            score += weight
        elif related(word) & bag:
            score += weight * _RELATED_WEIGHT
    return score
