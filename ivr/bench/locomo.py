"""Dialogues in LoCoMo's format as calls of one caller: a session is a call, two turns are an exchange. Pure."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ivr.errors import CallthreadError
from memory.parties import Parties

ASR_WORD_ERRORS = 0.10
ANSWERABLE = (1, 2, 3, 4)
"""Question categories; the fifth asks what was never said."""

_SESSION = re.compile(r"session_(\d+)")
_DIA_ID = re.compile(r"D\d+:\d+")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|{_MONTH},? \d{{4}}|(?:19|20)\d{{2}})\b",
    re.IGNORECASE,
)
_SPOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


class Variant(StrEnum):
    """`anon`: no names, no dates. `asr`: as a recogniser writes it, with one word in ten wrong."""

    PLAIN = "plain"
    ANON = "anon"
    ASR = "asr"


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance. `side`: 0 the caller (LoCoMo's speaker a), 1 the reply."""

    dia_id: str
    side: int
    text: str


@dataclass(frozen=True, slots=True)
class DialoguePage:
    """Turns 2k and 2k+1 of a session; the last may be alone."""

    session: int
    turns: tuple[Turn, ...]

    def said(self, side: int) -> str:
        """All that this side said in it."""
        return " ".join(turn.text for turn in self.turns if turn.side == side)


@dataclass(frozen=True, slots=True)
class Question:
    """`evidence`: the turns that answer it, at least one, all in the dialogue."""

    text: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class Dialogue:
    """Everything one caller said, and what is asked about it."""

    name: str
    parties: Parties
    pages: tuple[DialoguePage, ...]
    questions: tuple[Question, ...]

    def page_of(self) -> dict[str, int]:
        """The page's index by the turn's id."""
        return self._page_of

    def turns(self) -> dict[str, Turn]:
        """The turns by id."""
        return self._turns

    # Looked up for every window of a question: made once.
    @cached_property
    def _page_of(self) -> dict[str, int]:
        return {turn.dia_id: index for index, page in enumerate(self.pages) for turn in page.turns}

    @cached_property
    def _turns(self) -> dict[str, Turn]:
        return {turn.dia_id: turn for page in self.pages for turn in page.turns}


def load_dialogues(path: Path, variant: Variant = Variant.PLAIN, seed: str = "") -> list[Dialogue]:
    """Read a file of dialogues; `seed` draws other recognition errors. Raises: `CallthreadError` if it is none."""
    try:
        raw = msgspec.json.decode(path.read_bytes())
        return [_varied(_dialogue(one), variant, seed) for one in raw]
    except (OSError, msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise CallthreadError(f"{path}: not a LoCoMo file: {type(error).__name__} {error}") from error


def _dialogue(raw: dict[str, Any]) -> Dialogue:
    talk = raw["conversation"]
    caller, agent = talk["speaker_a"], talk["speaker_b"]
    sessions = sorted((int(found[1]), key) for key in talk if (found := _SESSION.fullmatch(key)))
    pages = tuple(
        DialoguePage(number, tuple(_turn(turn, caller) for turn in talk[key][start : start + 2]))
        for number, key in sessions
        for start in range(0, len(talk[key]), 2)
    )
    known = {turn.dia_id for page in pages for turn in page.turns}
    asked = (_question(one, known) for one in raw["qa"] if one["category"] in ANSWERABLE)
    return Dialogue(
        str(raw.get("sample_id", "")),
        Parties((caller,), (agent,)),
        pages,
        tuple(question for question in asked if question.evidence),
    )


def _turn(raw: dict[str, Any], caller: str) -> Turn:
    text = " ".join(str(raw["text"]).split())
    caption = raw.get("blip_caption")
    return Turn(
        raw["dia_id"], int(raw["speaker"] != caller), f"{text} (photo: {caption})" if caption else text
    )


def _question(raw: dict[str, Any], known: set[str]) -> Question:
    ids = [dia_id for evidence in raw.get("evidence", ()) for dia_id in _DIA_ID.findall(evidence)]
    return Question(
        raw["question"], raw["category"], tuple(dia_id for dia_id in dict.fromkeys(ids) if dia_id in known)
    )


def _varied(dialogue: Dialogue, variant: Variant, seed: str) -> Dialogue:
    match variant:
        case Variant.PLAIN:
            return dialogue
        case Variant.ANON:
            return _anonymous(dialogue)
        case Variant.ASR:
            return _recognised(dialogue, seed)


def _anonymous(dialogue: Dialogue) -> Dialogue:
    names = [
        (re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE), role)
        for group, role in ((dialogue.parties.caller, "caller"), (dialogue.parties.agent, "assistant"))
        for name in group
    ]

    def hide(text: str) -> str:
        for name, role in names:
            text = name.sub(role, text)
        return _DATE.sub("that day", text)

    return _rewritten(replace(dialogue, parties=Parties()), hide, hide)


def _recognised(dialogue: Dialogue, seed: str) -> Dialogue:
    """Errors come from a generator seeded by the dialogue's name and `seed`: the same in every run."""
    rng = random.Random(f"{dialogue.name}/{seed}" if seed else dialogue.name)  # noqa: S311 - reproducible, not secret
    vocabulary = sorted({word for turn in dialogue.turns().values() for word in _spoken(turn.text)})

    def hear(text: str) -> str:
        return " ".join(_misheard(_spoken(text), vocabulary, rng)) or text

    return _rewritten(dialogue, hear, hear)


def _spoken(text: str) -> list[str]:
    return [word.lower() for word in _SPOKEN.findall(text)]


def _misheard(words: Sequence[str], vocabulary: Sequence[str], rng: random.Random) -> list[str]:
    """Of ten errors six are a wrong word, two a lost one, two one too many."""
    heard: list[str] = []
    for word in words:
        if rng.random() >= ASR_WORD_ERRORS:
            heard.append(word)
            continue
        kind = rng.random()
        if kind < 0.6:
            heard.append(rng.choice(vocabulary))
        elif kind >= 0.8:
            heard += [word, rng.choice(vocabulary)]
    return heard


def _rewritten(dialogue: Dialogue, turn_text: Any, question_text: Any) -> Dialogue:
    pages = tuple(
        replace(page, turns=tuple(replace(turn, text=turn_text(turn.text)) for turn in page.turns))
        for page in dialogue.pages
    )
    questions = tuple(replace(question, text=question_text(question.text)) for question in dialogue.questions)
    return replace(dialogue, pages=pages, questions=questions)
