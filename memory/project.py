"""The projector: which form each page takes in the window (paper, section on projection). Pure, O(N log N).

Every candidate starts in its best available form. While the whole is over the budget, candidates are degraded in
increasing order of relevance, audio → transcript → summary → omitted, one to its end before the next; forms that a
page lacks are skipped, and so are forms that would not be cheaper.

Beyond the paper: where a search knows which side of a page answers (`Candidate.sides`), each side is degraded by
itself; its relevance is charged for its cost; and a share of the budget is kept for one sentence, picked for the
query, of each further page.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory.costs import audio_tokens, text_tokens, word_count
from memory.model import Form, Page, Window, WindowEntry

LABELS = ("caller", "assistant")
LABEL_WORDS = 1
"""The speaker's label before each side's words."""
THREAD_SHARE = 8
"""Thread summaries take one part in so many at most: page ranking answers questions better than they do."""
FOCUS_SHARE = 0.15
"""What is kept for sentences of further pages. More finds more pages, and fewer of them word for word."""
COST_WEIGHT = 0.8
"""How much of its logit an utterance pays for each e-fold of its tokens. Tuned on LoCoMo's first five dialogues."""
CHEAP_TOKENS = 10
"""Below this nothing is cheaper still: a "Right." is not worth its place for being short."""

Focus = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page that may enter the window. `audio`: its audio can be had in this session.

    `sides`, if given, are how relevant what the caller and what the reply said is, in place of `relevance`.
    """

    page: Page
    relevance: float
    audio: bool = False
    sides: tuple[float, float] | None = None


class FormCost(NamedTuple):
    """A form that a page can take, and its estimated tokens."""

    form: Form
    tokens: int


OMITTED = FormCost(Form.OMITTED, 0)


class _Unit(NamedTuple):
    """What is degraded as one: a page, or one side of it."""

    page: Page
    relevance: float
    forms: list[FormCost]
    side: int | None = None


def forms_of(candidate: Candidate) -> list[FormCost]:
    """The candidate's forms from its best to omitted, each cheaper than the one before."""
    page = candidate.page
    forms = []
    if candidate.audio and page.user_audio_ms > 0:
        forms.append(FormCost(Form.AUDIO, audio_tokens(page.user_audio_ms) + said_tokens(page.reply_text)))
    if page.user_text or page.reply_text:
        forms.append(FormCost(Form.TRANSCRIPT, said_tokens(page.user_text) + said_tokens(page.reply_text)))
    if page.summary:
        forms.append(FormCost(Form.SUMMARY, text_tokens(word_count(page.summary) + LABEL_WORDS)))
    return [*_cheaper_and_cheaper(forms), OMITTED]


def project(
    candidates: Sequence[Candidate],
    budget_tokens: int,
    *,
    safe_tokens: int = 0,
    threads: Sequence[str] = (),
    focus: Focus | None = None,
) -> Window:
    """The window over these candidates, in conversational order, never over `budget_tokens - safe_tokens`.

    `threads` are summaries, most relevant first; those that fit into an eighth of the budget come along. A page given
    twice counts once. Ties of relevance are broken for the newer page. `focus` picks the sentence of a text that the
    query asks for; without it nothing is kept for such sentences.
    """
    budget = max(0, budget_tokens - safe_tokens)
    kept_threads, thread_tokens = _fit_threads(threads, budget // THREAD_SHARE)
    unique = {candidate.page.page_id: candidate for candidate in candidates}
    units = [unit for candidate in unique.values() for unit in _units(candidate)]
    units.sort(key=lambda one: (one.relevance, one.page.created_at, one.page.page_id, -(one.side or 0)))
    room = budget - thread_tokens
    kept = int(room * FOCUS_SHARE) if focus is not None and any(u.side is not None for u in units) else 0
    entries = _merge(zip(units, _degrade([unit.forms for unit in units], room - kept), strict=True))
    if focus is not None and kept:
        entries.update(_sentences(units, entries.keys(), kept, focus))
    placed = sorted(entries.values(), key=lambda entry: (entry.page.created_at, entry.page.page_id))
    return Window(
        entries=tuple(placed),
        threads=kept_threads,
        tokens=thread_tokens + sum(entry.tokens for entry in placed),
        budget_tokens=budget,
        omitted=len(unique) - len(placed),
    )


def said_tokens(text: str) -> int:
    """Tokens of one side's words with its label; 0 for a side that said nothing."""
    return text_tokens(word_count(text) + LABEL_WORDS) if text else 0


def charged(logit: float, tokens: int) -> float:
    """What an utterance is worth for its cost."""
    return logit - COST_WEIGHT * math.log(max(tokens, CHEAP_TOKENS))


def labelled(page: Page, side: int, text: str = "") -> str:
    """One side as a line of a record: all that it said, or only `text` of it."""
    return f"{LABELS[side]}: {text or _said(page, side)}"


def _units(candidate: Candidate) -> list[_Unit]:
    if candidate.sides is None:
        return [_Unit(candidate.page, candidate.relevance, forms_of(candidate))]
    units = []
    for side, relevance in enumerate(candidate.sides):
        tokens = said_tokens(_said(candidate.page, side))
        if tokens and relevance > -math.inf:
            forms = [FormCost(Form.TRANSCRIPT, tokens), OMITTED]
            units.append(_Unit(candidate.page, charged(relevance, tokens), forms, side))
    return units


def _said(page: Page, side: int) -> str:
    return page.reply_text if side else page.user_text


def _merge(choices: Iterable[tuple[_Unit, FormCost]]) -> dict[int, WindowEntry]:
    """Entries by page. A page of which both sides are there is a whole transcript."""
    entries: dict[int, WindowEntry] = {}
    for unit, choice in choices:
        if choice.form is Form.OMITTED:
            continue
        page, other = unit.page, entries.get(unit.page.page_id)
        if other is not None:
            entries[page.page_id] = WindowEntry(page, choice.form, other.tokens + choice.tokens)
            continue
        whole = unit.side is None or not _said(page, 1 - unit.side)
        text = "" if whole or unit.side is None else labelled(page, unit.side)
        entries[page.page_id] = WindowEntry(page, choice.form, choice.tokens, text)
    return entries


def _sentences(
    units: Sequence[_Unit], placed: Iterable[int], budget: int, focus: Focus
) -> dict[int, WindowEntry]:
    """One sentence of each further page's better side, most relevant first, until the first that does not fit."""
    done = set(placed)
    found: dict[int, WindowEntry] = {}
    for unit in reversed(units):
        if unit.side is None or unit.page.page_id in done:
            continue
        done.add(unit.page.page_id)
        sentence = focus(_said(unit.page, unit.side))
        tokens = said_tokens(sentence)
        if tokens > budget:
            break
        budget -= tokens
        said_all = len(sentence.split()) == len(_said(unit.page, unit.side).split())
        form = Form.TRANSCRIPT if said_all else Form.SUMMARY
        found[unit.page.page_id] = WindowEntry(
            unit.page, form, tokens, labelled(unit.page, unit.side, sentence)
        )
    return found


def _degrade(forms: Sequence[Sequence[FormCost]], budget: int) -> list[FormCost]:
    """The chosen form of each unit; `forms` in increasing order of relevance."""
    chosen = [options[0] for options in forms]
    total = sum(choice.tokens for choice in chosen)
    for index, options in enumerate(forms):
        for option in options[1:]:
            if total <= budget:
                return chosen
            total += option.tokens - chosen[index].tokens
            chosen[index] = option
    return chosen


def _fit_threads(summaries: Iterable[str], budget: int) -> tuple[tuple[str, ...], int]:
    kept, total = [], 0
    for summary in summaries:
        tokens = text_tokens(word_count(summary))
        if summary and total + tokens <= budget:
            kept.append(summary)
            total += tokens
    return tuple(kept), total


def _cheaper_and_cheaper(forms: Iterable[FormCost]) -> list[FormCost]:
    kept: list[FormCost] = []
    for form in forms:
        if not kept or form.tokens < kept[-1].tokens:
            kept.append(form)
    return kept
