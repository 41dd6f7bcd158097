"""`ivr bench cost`: one caller's past grows in the real store; at each length questions are asked of every strategy."""

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from statistics import fmean

import msgspec

from ivr.bench.cost import (
    CACHED_SHARES,
    WORDS_PER_MIN,
    Assumptions,
    Row,
    Shape,
    tokens_of,
    turn_usd,
)
from ivr.bench.cost_talk import made_up
from ivr.bench.locomo import Dialogue, DialoguePage, Question
from ivr.bench.memory_world import MemoryWorld, Step, remember
from ivr.bench.recall import Remembered, judge, owner_of
from memory.model import Form, Page, Window
from memory.parties import Parties
from memory.strategies import AUDIO_TURNS, Past, Policy, Strategy, StrategyName
from memory.strategies_baselines import STRATEGIES, TOP_PAGES, FullHistory, HybridRag, page_tokens

HISTORY_MIN = (1.0, 2.0, 5.0, 15.0, 30.0, 58.0, 120.0, 240.0, 420.0, 600.0)
BUDGETS = (
    500,
    750,
    1_000,
    1_500,
    2_000,
    3_000,
    4_000,
    6_000,
    8_000,
    12_000,
    16_000,
    24_000,
    32_000,
    64_000,
    96_000,
)
"""Swept for equal quality."""
CALL = "one long call"
ALL_TURNS = 1_000_000


class Equal(msgspec.Struct, frozen=True):
    """What a strategy must spend to find as much word for word as ours. None: no budget reaches it."""

    history_min: float
    wanted_verbatim: float
    usd_per_turn: float | None
    budget_tokens: int | None
    verbatim: float


@dataclass(slots=True)
class Growth:
    """Rows of every strategy, and what equal quality costs, by name; and what they were measured on."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    equal: dict[str, list[Equal]] = field(default_factory=dict)
    questions: dict[float, int] = field(default_factory=dict)
    threads_a_page: dict[float, float] = field(default_factory=dict)
    made_up_from_min: float | None = None
    """From this length on the talk is made up, because the dialogues are over."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with what each strategy can choose from to answer it."""

    question: Question
    seen: Past


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure. `questions`: asked at each length, drawn anew from all that was said until then."""

    history_min: Sequence[float] = HISTORY_MIN
    budget_tokens: int = 1_500
    questions: int = 60
    equal_from_min: float = 15.0
    given: Assumptions = field(default_factory=Assumptions)


@dataclass(frozen=True, slots=True)
class Talk:
    """Several dialogues as one caller's past, one after another; `parties` of each question's own dialogue."""

    dialogue: Dialogue
    parties: tuple[Parties, ...]
    made_up_from_min: float | None = None


def said_min(page: DialoguePage) -> float:
    """Minutes of the caller's audio, at 150 words a minute."""
    return len(page.said(0).split()) / WORDS_PER_MIN


def joined(dialogues: Sequence[Dialogue], minutes: float) -> Talk:
    """The dialogues one after another, then made-up talk until it all lasts so long."""
    told = sum(said_min(page) for dialogue in dialogues for page in dialogue.pages)
    made_up_from = None if told >= minutes else told
    if told < minutes:
        per_page = fmean(map(said_min, made_up(60, 1, "").pages))
        dialogues = [*dialogues, made_up(int((minutes - told) / per_page) + 60, 1, "made-up")]
    pages: list[DialoguePage] = []
    questions: list[Question] = []
    parties: list[Parties] = []
    for dialogue in dialogues:
        last = pages[-1].session if pages else 0
        for page in dialogue.pages:
            turns = tuple(replace(turn, dia_id=f"{dialogue.name}/{turn.dia_id}") for turn in page.turns)
            pages.append(DialoguePage(last + page.session, turns))
        for question in dialogue.questions:
            evidence = tuple(f"{dialogue.name}/{dia_id}" for dia_id in question.evidence)
            questions.append(replace(question, evidence=evidence))
            parties.append(dialogue.parties)
    whole = Dialogue("talk", Parties(), tuple(pages), tuple(questions))
    return Talk(whole, tuple(parties), made_up_from)


async def grow(
    world: MemoryWorld, dialogues: Sequence[Dialogue], plan: Plan, step: Step, tell: Callable[[str], None]
) -> Growth:
    """Let the past grow, and measure at each length. `step` is called once a page and once a question."""
    talk = joined(dialogues, max(plan.history_min))
    growth = Growth(made_up_from_min=talk.made_up_from_min)
    owner, pages = owner_of(0), talk.dialogue.pages
    past = Remembered(talk.dialogue, owner, {})
    ends = list(accumulate(map(said_min, pages)))
    shape = shape_of(pages[: bisect_left(ends, max(plan.history_min)) + 1])
    for minutes in plan.history_min:
        start, end = len(past.index_of), bisect_left(ends, minutes) + 1
        piece = replace(talk.dialogue, name=f"{minutes:g}", pages=pages[start:end])
        added = await remember(world, piece, owner, step)
        past.index_of.update({page_id: start + index for page_id, index in added.items()})
        call_id = f"{minutes:g}-{pages[min(end, len(pages)) - 1].session}"
        asked = await _ask(world, talk, past, call_id, plan, minutes, shape, step)
        growth.questions[minutes] = sum(bool(one.question.evidence) for one in asked)
        threads = await world.store.threads_of(owner, list(past.index_of))
        references = sum(len(thread.page_ids) for thread in threads)
        growth.threads_a_page[minutes] = round(references / len(past.index_of), 3)
        tell(f"{minutes:g} min: {len(past.index_of)} pages, {growth.questions[minutes]} questions")
        _measure(growth, _Point(asked, past, shape, plan, minutes, growth.threads_a_page[minutes]))
    return growth


async def _ask(
    world: MemoryWorld,
    talk: Talk,
    past: Remembered,
    call_id: str,
    plan: Plan,
    minutes: float,
    shape: Shape,
    step: Step,
) -> list[Asked]:
    """Questions about what was said so far, drawn at random but the same in every run; one without evidence else."""
    page_of, said = talk.dialogue.page_of(), len(past.index_of)
    answerable = [
        (question, parties)
        for question, parties in zip(talk.dialogue.questions, talk.parties, strict=True)
        if all(page_of[dia_id] < said for dia_id in question.evidence)
    ]
    rng = random.Random(minutes)  # noqa: S311 - reproducible
    drawn = rng.sample(answerable, min(plan.questions, len(answerable)))
    memory, every = world.memory(), Policy(StrategyName.PAGE_RAG)
    asked = []
    for question, parties in drawn or [(Question("What did I say?", 0, ()), Parties())]:
        seen = await memory.past(past.owner, call_id, question.text, (), policy=every, parties=parties)
        asked.append(Asked(question, _in_one_call(seen, shape)))
        step()
    return asked


def _in_one_call(seen: Past, shape: Shape) -> Past:
    """As if all had been said in this call, whose audio can still be had: what full history is made of.

    Each turn's audio is of mean length: at one length of history the last two turns are short, at another long.
    """

    def of_call(page: Page) -> Page:
        return replace(
            page,
            call_id=CALL,
            user_item_id=f"item-{page.page_id}",
            user_audio_ms=round(shape.user_s * 1_000) if page.user_text else 0,
        )

    pages = [of_call(page) for page in seen.pages]
    live = frozenset(page.user_item_id for page in pages)
    recent = pages[len(pages) - len(seen.recent) :]
    counted = {page.page_id: page_tokens(page) for page in pages}
    return replace(seen, pages=pages, recent=recent, call_id=CALL, live_items=live, transcript_tokens=counted)


def shape_of(pages: Sequence[DialoguePage]) -> Shape:
    """The mean exchange."""
    user, reply = (fmean(len(page.said(side).split()) for page in pages) for side in (0, 1))
    return Shape(user * 60 / WORDS_PER_MIN, user, reply)


@dataclass(frozen=True, slots=True)
class _Point:
    """One length of history: its questions, and what strategies make of them."""

    asked: Sequence[Asked]
    past: Remembered
    shape: Shape
    plan: Plan
    minutes: float
    threads_a_page: float

    def strategy(self, name: StrategyName, budget_tokens: int) -> Strategy:
        """Hybrid RAG's ten pages grow with the budget, or no budget would be of use to it."""
        if name is StrategyName.FULL:
            return FullHistory(self.plan.given.price.input_limit_tokens - self.plan.given.prefix_tokens)
        if name is StrategyName.HYBRID_RAG:
            return HybridRag(max(TOP_PAGES, TOP_PAGES * budget_tokens // self.plan.budget_tokens))
        return STRATEGIES[name]

    def row(
        self,
        name: StrategyName,
        strategy: Strategy,
        budget_tokens: int,
        *,
        cached: float = 0.0,
        audio_turns: int = AUDIO_TURNS,
    ) -> Row:
        """What a turn is shown, and its price."""
        full = name is StrategyName.FULL
        windows = [
            strategy.window(one.seen, budget_tokens, ALL_TURNS if full else audio_turns)
            for one in (self.asked if strategy.asks else self.asked[:1])
        ]
        shown = windows if strategy.asks else windows * len(self.asked)
        answers = [
            judge(self.past, one.question, window)
            for one, window in zip(self.asked, shown, strict=True)
            if one.question.evidence
        ]
        usd = turn_usd(
            name,
            tokens_of(windows),
            self.shape,
            self.plan.given,
            budget_tokens=budget_tokens,
            summarised=name is StrategyName.VTHREADS or any(window.covers for window in windows),
            cached_share=cached,
            threads_a_page=self.threads_a_page,
        )
        forms = _forms(windows, len(self.past.index_of))
        return Row(
            self.minutes,
            round(usd.total, 6),
            cached,
            round(fmean(window.tokens for window in windows), 1),
            round(fmean(answer.hit for answer in answers), 4) if answers else None,
            round(fmean(answer.verbatim for answer in answers), 4) if answers else None,
            forms,
            None if full else budget_tokens,
            full and forms["omitted"] > 0,
            usd,
        )

    def equal(self, name: StrategyName, wanted: float) -> Equal:
        """The smallest budget of the sweep that finds as much word for word as ours does with its own.

        Nobody but the full history is shown audio here: what is measured is words.
        """
        budgets = BUDGETS if name is not StrategyName.FULL else BUDGETS[:1]
        rows: dict[int, Row] = {}

        def verbatim(budget: int) -> float:
            rows[budget] = self.row(name, self.strategy(name, budget), budget, audio_turns=0)
            return rows[budget].verbatim or 0.0

        if STRATEGIES[name].asks:  # more room finds no less, and a row is a window a question
            reached = bisect_left(budgets, wanted, key=verbatim)
        else:
            reached = next(
                (n for n, budget in enumerate(budgets) if verbatim(budget) >= wanted), len(budgets)
            )
        if reached == len(budgets):
            best = max(row.verbatim or 0.0 for row in rows.values())
            return Equal(self.minutes, wanted, None, None, best)
        row = rows[budgets[reached]]
        return Equal(self.minutes, wanted, row.usd_per_turn, row.budget_tokens, row.verbatim or 0.0)


def _measure(growth: Growth, at: _Point) -> None:
    """Rows of every strategy at this length; and, where there is more to find than fits, prices at equal quality."""
    plan = at.plan
    for name in StrategyName:
        strategy = at.strategy(name, plan.budget_tokens)
        shares = CACHED_SHARES if name is StrategyName.FULL else (0.0,)
        rows = growth.rows.setdefault(name, [])
        rows += [at.row(name, strategy, plan.budget_tokens, cached=share) for share in shares]
    wanted = growth.rows[StrategyName.VTHREADS][-1].verbatim
    if at.minutes >= plan.equal_from_min and wanted is not None:
        for name in StrategyName:
            growth.equal.setdefault(name, []).append(at.equal(name, wanted))


def _forms(windows: Sequence[Window], pages: int) -> dict[str, float]:
    """Mean pages by form; those that a summary of several is of count as summaries, the rest is omitted."""

    def count(window: Window, form: Form) -> int:
        alone = sum(entry.form is form for entry in window.entries)
        return alone + (sum(map(len, window.covers)) if form is Form.SUMMARY else 0)

    forms = {
        form.value: round(fmean(count(window, form) for window in windows), 1)
        for form in (Form.AUDIO, Form.TRANSCRIPT, Form.SUMMARY)
    }
    return {**forms, Form.OMITTED.value: round(max(0.0, pages - sum(forms.values())), 1)}
