"""The projector: which form each page takes in the window (paper, section on projection). Pure, O(N log N).

The paper's rule: every candidate starts in its best available form. While the whole is over the budget, candidates
are degraded in increasing order of relevance, audio → transcript → summary → omitted, one to its end before the next;
forms that a page lacks are skipped, and so are forms that would not be cheaper. What is left then is found here from
the other end: the most relevant in their best forms for as long as they fit, the first that does not in the best form
that does, and nothing of the rest. So only what is shown is looked at closely.

Beyond the paper: where a search knows which side of a page answers (`Candidate.sides`), each side is degraded by
itself; its relevance is charged for its cost; and a share of the budget is kept for one sentence, picked for the
query, of each further page.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from memory.costs import audio_tokens, text_tokens, word_count
from memory.model import Form, Page, Window, WindowEntry

LABELS = ("caller", "assistant")
LABEL_WORDS = 1
"""The speaker's label before each side's words."""
THREAD_SHARE = 8
"""Thread summaries take one part in so many at most: page ranking answers questions better than they do."""
FACT_SHARE = 4
"""Business facts take one part in so many at most."""
FOCUS_SHARE = 0.15
"""What is kept for sentences of further pages. More finds more pages, and fewer of them word for word."""
COST_WEIGHT = 0.8
"""How much of its logit an utterance pays for each e-fold of its tokens. Tuned on LoCoMo's first five dialogues."""
CHEAP_TOKENS = 10
"""Below this nothing is cheaper still: a "Right." is not worth its place for being short."""

WHOLE = -1
UNCOUNTED = -1

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
    """What is degraded as one: a page, or one side of it. `tokens`: the side's."""

    candidate: Candidate
    side: int | None = None
    tokens: int = 0

    @property
    def page(self) -> Page:
        return self.candidate.page

    @property
    def is_better_side(self) -> bool:
        """It answers better than what the other one said."""
        sides = self.candidate.sides
        return sides is not None and self.side is not None and sides[self.side] > sides[1 - self.side]

    def forms(self) -> list[FormCost]:
        """From its best to omitted."""
        if self.side is None:
            return forms_of(self.candidate)
        return [FormCost(Form.TRANSCRIPT, self.tokens), OMITTED]


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
    kept_threads, thread_tokens = _fit(threads, budget // THREAD_SHARE)
    unique = {candidate.page.page_id: candidate for candidate in candidates}
    room = budget - thread_tokens
    kept = int(room * FOCUS_SHARE) if focus is not None and any(map(_has_sides, unique.values())) else 0
    units = _most_relevant_first(unique.values())
    entries, cut = _fill(units, room - kept)
    if focus is not None and kept and cut is not None:
        entries.update(_sentences(chain((cut,), units), entries, kept, focus))
    placed = sorted(entries.values(), key=lambda entry: (entry.page.created_at, entry.page.page_id))
    return Window(
        entries=tuple(placed),
        threads=kept_threads,
        tokens=thread_tokens + sum(entry.tokens for entry in placed),
        budget_tokens=budget,
        omitted=len(unique) - len(placed),
    )


def fit_facts(facts: Iterable[str], budget_tokens: int) -> tuple[tuple[str, ...], int]:
    """Those of the most relevant passages that fit into their share of the budget, and their tokens."""
    return _fit(facts, budget_tokens // FACT_SHARE)


def said_tokens(text: str) -> int:
    """Tokens of one side's words with its label; 0 for a side that said nothing."""
    return text_tokens(word_count(text) + LABEL_WORDS) if text else 0


def charged(logit: float, tokens: int) -> float:
    """What an utterance is worth for its cost."""
    return logit - COST_WEIGHT * math.log(max(tokens, CHEAP_TOKENS))


def labelled(page: Page, side: int, text: str = "") -> str:
    """One side as a line of a record: all that it said, or only `text` of it."""
    return f"{LABELS[side]}: {text or _said(page, side)}"


def _has_sides(candidate: Candidate) -> bool:
    return candidate.sides is not None and any(
        logit > -math.inf and _said(candidate.page, side) for side, logit in enumerate(candidate.sides)
    )


def _said(page: Page, side: int) -> str:
    return page.reply_text if side else page.user_text


def _most_relevant_first(candidates: Iterable[Candidate]) -> Iterator[_Unit]:
    """Pages, or sides of them, by falling relevance; of equals the newer first, then the caller's side.

    What a side is charged for is counted only once it would be next if it were as cheap as can be: a window has room
    for few of thousands, and counting words is most of what a projection costs.
    """
    cheapest = charged(0.0, 0)
    waiting: list[tuple[float, float, int, int, int, Candidate]] = []
    for candidate in candidates:
        page = candidate.page
        newer, number = -page.created_at.timestamp(), -page.page_id
        if candidate.sides is None:
            waiting.append((-candidate.relevance, newer, number, WHOLE, 0, candidate))
            continue
        user, reply = candidate.sides
        if page.user_text and user > -math.inf:
            waiting.append((-(user + cheapest), newer, number, 0, UNCOUNTED, candidate))
        if page.reply_text and reply > -math.inf:
            waiting.append((-(reply + cheapest), newer, number, 1, UNCOUNTED, candidate))
    heapq.heapify(waiting)
    while waiting:
        _, newer, number, side, tokens, candidate = waiting[0]
        if tokens != UNCOUNTED:
            heapq.heappop(waiting)
            yield _Unit(candidate, None if side == WHOLE else side, tokens)
            continue
        tokens = said_tokens(_said(candidate.page, side))
        relevance = charged(candidate.sides[side] if candidate.sides else 0.0, tokens)
        heapq.heapreplace(waiting, (-relevance, newer, number, side, tokens, candidate))


def _fill(units: Iterator[_Unit], budget: int) -> tuple[dict[int, WindowEntry], _Unit | None]:
    """Entries by page, and the first unit that did not fit in its best form."""
    entries: dict[int, WindowEntry] = {}
    for unit in units:
        forms = unit.forms()
        chosen = next(form for form in forms if form.tokens <= budget)
        if chosen.form is not Form.OMITTED:
            entries[unit.page.page_id] = _entry(unit, chosen, entries.get(unit.page.page_id))
            budget -= chosen.tokens
        if chosen is not forms[0]:
            return entries, unit
    return entries, None


def _entry(unit: _Unit, chosen: FormCost, other: WindowEntry | None) -> WindowEntry:
    """The unit's page in the window. A page of which both sides are there is a whole transcript."""
    page = unit.page
    if other is not None:
        return WindowEntry(page, chosen.form, other.tokens + chosen.tokens)
    whole = unit.side is None or not _said(page, 1 - unit.side)
    text = "" if whole or unit.side is None else labelled(page, unit.side)
    return WindowEntry(page, chosen.form, chosen.tokens, text)


def _sentences(
    units: Iterable[_Unit], placed: Mapping[int, WindowEntry], budget: int, focus: Focus
) -> dict[int, WindowEntry]:
    """One sentence of each further page's better side, most relevant first, until the first that does not fit.

    And of a page whose better side was too long, while the other one found a place.
    """
    done: set[int] = set()
    found: dict[int, WindowEntry] = {}
    for unit in units:
        page, side = unit.page, unit.side
        if side is None or page.page_id in done:
            continue
        other = placed.get(page.page_id)
        if other is not None and not (other.text and unit.is_better_side):
            continue
        done.add(page.page_id)
        said = _said(page, side)
        sentence = focus(said)
        tokens = said_tokens(sentence)
        if tokens > budget:
            break
        budget -= tokens
        form = Form.TRANSCRIPT if len(sentence.split()) == len(said.split()) else Form.SUMMARY
        found[page.page_id] = _beside(
            other, WindowEntry(page, form, tokens, labelled(page, side, sentence)), side
        )
    return found


def _beside(other: WindowEntry | None, entry: WindowEntry, side: int) -> WindowEntry:
    """The entry with what is there of its page's other side, in the order in which they spoke."""
    if other is None:
        return entry
    lines = (other.text, entry.text) if side else (entry.text, other.text)
    return WindowEntry(entry.page, entry.form, entry.tokens + other.tokens, "\n".join(lines))


def _fit(summaries: Iterable[str], budget: int) -> tuple[tuple[str, ...], int]:
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
