"""How much of what answers a question is in the window: LoCoMo's questions through the real store and retrieval.

hit: mean over questions of the share of evidence pages in the window in any form; a page is in it too when a summary
of several pages is of it (the paper counts so), whatever the summary still says. verbatim: the same with every evidence
turn of the page there word for word, looked up in the text of the window.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias

import msgspec
import numpy as np

from ivr.bench.fit import Example
from ivr.bench.locomo import Dialogue, Question
from ivr.bench.memory_world import BUSINESS, MemoryWorld, Step, call_of, item_of, remember
from memory.caller_cache import CallerCache
from memory.costs import text_tokens, word_count
from memory.model import Form, Owner, Window, WindowEntry
from memory.project import LABEL_WORDS, LABELS
from memory.service import Memory
from memory.strategies import Past, Policy, Strategy, StrategyName
from memory.strategies_baselines import STRATEGIES

OURS = StrategyName.VTHREADS
QUESTION_CALL = "question"


@dataclass(frozen=True, slots=True)
class Shown:
    """One text of a window: a page, or a summary of several; and the ids of the turns that it is of."""

    text: str
    form: Form
    dia_ids: tuple[str, ...]
    tokens: int
    pages: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """One question at one budget: what was shown, and what of the evidence was in it."""

    dialogue: str
    question: str
    category: int
    evidence: tuple[str, ...]
    strategy: StrategyName
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


Scores: TypeAlias = dict[StrategyName, dict[int, Score]]


@dataclass(frozen=True, slots=True)
class Remembered:
    """A dialogue in the store. `index_of`: a page's index in the dialogue by its id there.

    Its questions are asked in the call `asked_in`, in whose session the audio of `live_items` is still there.
    """

    dialogue: Dialogue
    owner: Owner
    index_of: dict[int, int]
    asked_in: str = QUESTION_CALL
    live_items: tuple[str, ...] = ()


def owner_of(number: int) -> Owner:
    """The caller whose past a dialogue is."""
    return Owner(BUSINESS, f"+1202555{number:04}")


async def remember_all(
    world: MemoryWorld, dialogues: Sequence[Dialogue], step: Step, *, spoken: bool = False
) -> list[Remembered]:
    """Put every dialogue into the store, each as another caller's past. `step` is called once a page.

    `spoken`: what callers said has audio as long as its words take, and the questions come at the end of the last
    session's call, with its audio still there; else they are asked in calls of their own.
    """
    callers = [(dialogue, owner_of(number)) for number, dialogue in enumerate(dialogues)]
    # All at once: most of a page's time is waiting for the database.
    known = await asyncio.gather(
        *(remember(world, dialogue, owner, step, spoken=spoken) for dialogue, owner in callers)
    )
    pasts = [
        Remembered(dialogue, owner, index_of)
        for (dialogue, owner), index_of in zip(callers, known, strict=True)
    ]
    return [_at_its_end(past) for past in pasts] if spoken else pasts


def _at_its_end(past: Remembered) -> Remembered:
    """The same, asked in its last call."""
    pages = past.dialogue.pages
    last = pages[-1].session
    spoken = (index for index, page in enumerate(pages) if page.session == last and page.said(0))
    live = tuple(item_of(past.dialogue, index) for index in spoken)
    return replace(past, asked_in=call_of(past.dialogue, last), live_items=live)


async def ask_all(
    memory: Memory,
    pasts: Sequence[Remembered],
    budgets: Sequence[int],
    step: Step,
    strategies: Sequence[StrategyName] = (OURS,),
) -> list[Answer]:
    """Ask every dialogue's questions, of all dialogues at once; as `ask`."""
    asked = await asyncio.gather(*(ask(memory, past, budgets, step, strategies) for past in pasts))
    return [answer for answers in asked for answer in answers]


async def ask(
    memory: Memory,
    past: Remembered,
    budgets: Sequence[int],
    step: Step,
    strategies: Sequence[StrategyName] = (OURS,),
) -> list[Answer]:
    """Ask the dialogue's questions, each in a call of its own. `step` is called once a question.

    Ours is asked as a call asks it; the others choose from the same store, read once a question.
    """
    others = {name: STRATEGIES[name] for name in strategies if name is not OURS}
    fixed = await _unasked(memory, past, budgets, others)
    answers = []
    for question in past.dialogue.questions:
        windows: dict[tuple[StrategyName, int], Window] = dict(fixed)
        if OURS in strategies:
            windows |= {(OURS, budget): await _recalled(memory, past, question, budget) for budget in budgets}
        if any(strategy.asks for strategy in others.values()):
            everything = await _all_of(memory, past, question.text)
            for name, strategy in others.items():
                if strategy.asks:
                    windows |= {(name, budget): strategy.window(everything, budget, 0) for budget in budgets}
        answers += [judge(past, question, window, name, budget) for (name, budget), window in windows.items()]
        step()
    return answers


async def _recalled(memory: Memory, past: Remembered, question: Question, budget: int) -> Window:
    return await memory.recall(
        past.owner,
        past.asked_in,
        question.text,
        past.live_items,
        policy=Policy(OURS, budget),
        safe_tokens=0,
        parties=past.dialogue.parties,
    )


async def _all_of(memory: Memory, past: Remembered, query: str) -> Past:
    every = Policy(StrategyName.PAGE_RAG)
    return await memory.past(
        past.owner, past.asked_in, query, past.live_items, policy=every, parties=past.dialogue.parties
    )


async def _unasked(
    memory: Memory, past: Remembered, budgets: Sequence[int], strategies: Mapping[StrategyName, Strategy]
) -> dict[tuple[StrategyName, int], Window]:
    """Windows that are the same whatever is asked."""
    everything = await _all_of(memory, past, "")
    return {
        (name, budget): strategy.window(everything, budget, 0)
        for name, strategy in strategies.items()
        if not strategy.asks
        for budget in budgets
    }


async def examples_of(world: MemoryWorld, past: Remembered) -> list[Example]:
    """What the search sees for each of the dialogue's questions, with the right answers."""
    dialogue, examples = past.dialogue, []
    page_of, turns = dialogue.page_of(), dialogue.turns()
    cache = CallerCache(world.store)
    for question in dialogue.questions:
        query = dialogue.parties.without_names(question.text)
        vectors = await world.embedder.embed([query]) if world.embedder else None
        model = world.embedder.model if world.embedder else ""
        known = await cache.past(past.owner, model, query, QUESTION_CALL)
        scan = known.pages.scan(known.asked_terms, vectors[0] if vectors else None, query)
        row_of = {past.index_of[page_id]: row for row, page_id in enumerate(scan.page_ids.tolist())}
        answers = np.zeros((len(scan), 2))
        for dia_id in question.evidence:
            answers[row_of[page_of[dia_id]], turns[dia_id].side] = 1.0
        examples.append(Example(dialogue.name, scan, dialogue.parties.asked_side(question.text), answers))
    return examples


def judge(
    past: Remembered,
    question: Question,
    window: Window,
    strategy: StrategyName = OURS,
    budget: int | None = None,
) -> Answer:
    """What of the question's evidence the window holds."""
    dialogue, index_of = past.dialogue, past.index_of
    page_of, turns = dialogue.page_of(), dialogue.turns()
    shown = {index_of[entry.page.page_id]: show(entry, past) for entry in window.entries}
    summaries = [
        _show_summary(text, page_ids, past)
        for text, page_ids in zip(window.threads, window.covers, strict=False)
    ]
    covered = {index_of[page_id] for page_ids in window.covers for page_id in page_ids}
    wanted: dict[int, list[str]] = {}
    for dia_id in question.evidence:
        wanted.setdefault(page_of[dia_id], []).append(dia_id)
    hits = [index in shown or index in covered for index in wanted]
    verbatim = [
        index in shown and all(turns[dia_id].text in shown[index].text for dia_id in dia_ids)
        for index, dia_ids in wanted.items()
    ]
    return Answer(
        dialogue=dialogue.name,
        question=question.text,
        category=question.category,
        evidence=question.evidence,
        strategy=strategy,
        budget=window.budget_tokens if budget is None else budget,
        shown=(*summaries, *shown.values()),
        tokens=window.tokens,
        hit=fmean(hits),
        verbatim=fmean(verbatim),
        evidence_pages=len(wanted),
    )


def _show_summary(text: str, page_ids: Iterable[int], past: Remembered) -> Shown:
    sources = [past.dialogue.pages[past.index_of[page_id]] for page_id in page_ids]
    ids = tuple(turn.dia_id for source in sources for turn in source.turns)
    return Shown(text, Form.SUMMARY, ids, text_tokens(word_count(text) + LABEL_WORDS), len(sources))


def show(entry: WindowEntry, past: Remembered) -> Shown:
    """The entry as the model reads it."""
    page = entry.page
    source = past.dialogue.pages[past.index_of[page.page_id]]
    if entry.text:
        starts = [line.partition(":")[0] for line in entry.text.splitlines()]
        sides = {number for number, label in enumerate(LABELS) if label in starts}
        ids = tuple(turn.dia_id for turn in source.turns if turn.side in sides)
        return Shown(entry.text, entry.form, ids, entry.tokens)
    ids = tuple(turn.dia_id for turn in source.turns)
    if entry.form is Form.SUMMARY:
        return Shown(page.summary, entry.form, ids, entry.tokens)
    said = zip(LABELS, (page.user_text, page.reply_text), strict=True)
    text = "\n".join(f"{label}: {words}" for label, words in said if words)
    return Shown(text, entry.form, ids, entry.tokens)


def scores(answers: Iterable[Answer]) -> Scores:
    """By strategy and budget."""
    groups: dict[tuple[StrategyName, int], list[Answer]] = {}
    for answer in answers:
        groups.setdefault((answer.strategy, answer.budget), []).append(answer)
    result: Scores = {}
    order = list(StrategyName)
    for (strategy, budget), group in sorted(groups.items(), key=lambda one: order.index(one[0][0])):
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
        pages=_pages(group),
    )


def _pages(group: Sequence[Answer]) -> dict[str, float]:
    """Mean pages in the window by form; of a summary of several each is counted."""
    return {
        form.value: _mean(
            sum(shown.pages for shown in answer.shown if shown.form is form) for answer in group
        )
        for form in (Form.AUDIO, Form.TRANSCRIPT, Form.SUMMARY)
    }


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return round(fmean(listed), 4) if listed else 0.0
