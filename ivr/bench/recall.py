"""How much of what answers a question is in the window: LoCoMo's questions through the real store and retrieval.

hit: mean over questions of the share of evidence pages in the window in any form. verbatim: the same with every
evidence turn of the page there word for word, recounted from the text of the window.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

import msgspec
import numpy as np

from ivr.bench.fit import Example
from ivr.bench.locomo import Dialogue, Question
from ivr.bench.memory_world import BUSINESS, MemoryWorld, Step, remember
from memory.model import Form, Owner, Window, WindowEntry
from memory.project import LABELS
from memory.service import Memory

OURS = "vthreads"
QUESTION_CALL = "question"


@dataclass(frozen=True, slots=True)
class Shown:
    """One page in a window: the text that stands for it, and the ids of the turns that the text is of."""

    text: str
    form: Form
    dia_ids: tuple[str, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class Answer:
    """One question at one budget: what was shown, and what of the evidence was in it."""

    dialogue: str
    question: str
    category: int
    evidence: tuple[str, ...]
    strategy: str
    budget: int
    shown: tuple[Shown, ...]
    tokens: int
    hit: float
    verbatim: float
    evidence_pages: int


class Score(msgspec.Struct, frozen=True):
    """Means over questions; `_single` and `_multi`: those with one and with several evidence pages."""

    n: int
    hit: float
    hit_single: float
    hit_multi: float
    verbatim: float
    verbatim_multi: float
    tokens: float
    pages: dict[str, float]
    """Pages in the window by their form."""


Scores: TypeAlias = dict[str, dict[int, Score]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """A dialogue in the store. `index_of`: a page's index in the dialogue by its id there."""

    dialogue: Dialogue
    owner: Owner
    index_of: dict[int, int]


def owner_of(number: int) -> Owner:
    """The caller whose past a dialogue is."""
    return Owner(BUSINESS, f"+1202555{number:04}")


async def remember_all(world: MemoryWorld, dialogues: Sequence[Dialogue], step: Step) -> list[Remembered]:
    """Put every dialogue into the store, each as another caller's past. `step` is called once a page."""
    return [
        Remembered(dialogue, owner_of(number), await remember(world, dialogue, owner_of(number), step))
        for number, dialogue in enumerate(dialogues)
    ]


async def ask(memory: Memory, past: Remembered, budgets: Sequence[int], step: Step) -> list[Answer]:
    """Ask the dialogue's questions, each in a call of its own. `step` is called once a question."""
    answers = []
    for question in past.dialogue.questions:
        for budget in budgets:
            window = await memory.recall(
                past.owner,
                QUESTION_CALL,
                question.text,
                (),
                budget_tokens=budget,
                safe_tokens=0,
                parties=past.dialogue.parties,
            )
            answers.append(judge(past, question, window))
        step()
    return answers


async def examples_of(world: MemoryWorld, past: Remembered) -> list[Example]:
    """What the search sees for each of the dialogue's questions, with the right answers."""
    dialogue, examples = past.dialogue, []
    page_of, turns = dialogue.page_of(), dialogue.turns()
    for question in dialogue.questions:
        query = dialogue.parties.without_names(question.text)
        vectors = await world.embedder.embed([query]) if world.embedder else None
        model = world.embedder.model if world.embedder else ""
        scan = await world.store.scan(past.owner, query, vectors[0] if vectors else None, model)
        row_of = {past.index_of[page_id]: row for row, page_id in enumerate(scan.page_ids.tolist())}
        answers = np.zeros((len(scan), 2))
        for dia_id in question.evidence:
            answers[row_of[page_of[dia_id]], turns[dia_id].side] = 1.0
        examples.append(Example(dialogue.name, scan, dialogue.parties.asked_side(question.text), answers))
    return examples


def judge(past: Remembered, question: Question, window: Window) -> Answer:
    """What of the question's evidence the window holds."""
    dialogue, index_of = past.dialogue, past.index_of
    page_of, turns = dialogue.page_of(), dialogue.turns()
    shown = {index_of[entry.page.page_id]: show(entry, past) for entry in window.entries}
    wanted: dict[int, list[str]] = {}
    for dia_id in question.evidence:
        wanted.setdefault(page_of[dia_id], []).append(dia_id)
    hits = [index in shown for index in wanted]
    verbatim = [
        index in shown and all(turns[dia_id].text in shown[index].text for dia_id in dia_ids)
        for index, dia_ids in wanted.items()
    ]
    return Answer(
        dialogue=dialogue.name,
        question=question.text,
        category=question.category,
        evidence=question.evidence,
        strategy=OURS,
        budget=window.budget_tokens,
        shown=tuple(shown.values()),
        tokens=window.tokens,
        hit=fmean(hits),
        verbatim=fmean(verbatim),
        evidence_pages=len(wanted),
    )


def show(entry: WindowEntry, past: Remembered) -> Shown:
    """The entry as the model reads it."""
    page = entry.page
    source = past.dialogue.pages[past.index_of[page.page_id]]
    if entry.text:
        side = next(number for number, label in enumerate(LABELS) if entry.text.startswith(f"{label}:"))
        ids = tuple(turn.dia_id for turn in source.turns if turn.side == side)
        return Shown(entry.text, entry.form, ids, entry.tokens)
    ids = tuple(turn.dia_id for turn in source.turns)
    if entry.form is Form.SUMMARY:
        return Shown(page.summary, entry.form, ids, entry.tokens)
    said = zip(LABELS, (page.user_text, page.reply_text), strict=True)
    text = "\n".join(f"{label}: {words}" for label, words in said if words)
    return Shown(text, entry.form, ids, entry.tokens)


def scores(answers: Iterable[Answer]) -> Scores:
    """By strategy and budget."""
    groups: dict[tuple[str, int], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.strategy, answer.budget), []).append(answer)
    result: Scores = {}
    for (strategy, budget), group in groups.items():
        result.setdefault(strategy, {})[budget] = _score(group)
    return result


def _score(group: Sequence[Answer]) -> Score:
    single = [answer for answer in group if answer.evidence_pages == 1]
    multi = [answer for answer in group if answer.evidence_pages > 1]
    return Score(
        n=len(group),
        hit=_mean(answer.hit for answer in group),
        hit_single=_mean(answer.hit for answer in single),
        hit_multi=_mean(answer.hit for answer in multi),
        verbatim=_mean(answer.verbatim for answer in group),
        verbatim_multi=_mean(answer.verbatim for answer in multi),
        tokens=_mean(answer.tokens for answer in group),
        pages={
            form.value: _mean(sum(shown.form is form for shown in answer.shown) for answer in group)
            for form in (Form.AUDIO, Form.TRANSCRIPT, Form.SUMMARY)
        },
    )


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return round(fmean(listed), 4) if listed else 0.0
