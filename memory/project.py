"""The projector: which form each page takes in the window (paper, section on projection). Pure, O(N log N).

Every candidate starts in its best available form. While the whole is over the budget, pages are degraded in increasing
order of relevance, audio → transcript → summary → omitted, one page to its end before the next; forms that a page
lacks are skipped, and so are forms that would not be cheaper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.costs import audio_tokens, text_tokens, word_count
from memory.model import Form, Page, Window, WindowEntry

LABEL_WORDS = 2
"""The speaker's name before each side's words."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page that may enter the window. `audio`: its audio can be had in this session."""

    page: Page
    relevance: float
    audio: bool = False


@dataclass(frozen=True, slots=True)
class FormCost:
    """A form that a page can take, and its estimated tokens."""

    form: Form
    tokens: int


OMITTED = FormCost(Form.OMITTED, 0)


def forms_of(candidate: Candidate) -> list[FormCost]:
    """The candidate's forms from its best to omitted, each cheaper than the one before."""
    page = candidate.page
    forms = []
    if candidate.audio and page.user_audio_ms > 0:
        forms.append(FormCost(Form.AUDIO, audio_tokens(page.user_audio_ms) + _said(page.reply_text)))
    if page.user_text or page.reply_text:
        forms.append(FormCost(Form.TRANSCRIPT, _said(page.user_text) + _said(page.reply_text)))
    if page.summary:
        forms.append(FormCost(Form.SUMMARY, text_tokens(word_count(page.summary) + LABEL_WORDS)))
    return [*_cheaper_and_cheaper(forms), OMITTED]


def project(
    candidates: Sequence[Candidate], budget_tokens: int, *, safe_tokens: int = 0, threads: Sequence[str] = ()
) -> Window:
    """The window over these candidates, in conversational order, never over `budget_tokens - safe_tokens`.

    `threads` are summaries, most relevant first; those that fit into an eighth of the budget come along. A page given
    twice counts once. Ties of relevance are broken for the newer page.
    """
    budget = max(0, budget_tokens - safe_tokens)
    kept_threads, thread_tokens = _fit_threads(threads, budget // THREAD_SHARE)
    unique = {candidate.page.page_id: candidate for candidate in candidates}
    ordered = sorted(unique.values(), key=lambda one: (one.relevance, one.page.created_at, one.page.page_id))
    choices = _degrade([forms_of(candidate) for candidate in ordered], budget - thread_tokens)
    entries = [
        WindowEntry(candidate.page, choice.form, choice.tokens)
        for candidate, choice in zip(ordered, choices, strict=True)
        if choice.form is not Form.OMITTED
    ]
    entries.sort(key=lambda entry: (entry.page.created_at, entry.page.page_id))
    return Window(
        entries=tuple(entries),
        threads=kept_threads,
        tokens=thread_tokens + sum(entry.tokens for entry in entries),
        budget_tokens=budget,
        omitted=len(ordered) - len(entries),
    )


THREAD_SHARE = 8
"""Thread summaries take one part in so many at most: page ranking answers questions better than they do."""


def _degrade(forms: Sequence[Sequence[FormCost]], budget: int) -> list[FormCost]:
    """The chosen form of each page; `forms` in increasing order of relevance."""
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


def _said(text: str) -> int:
    return text_tokens(word_count(text) + LABEL_WORDS) if text else 0


def _cheaper_and_cheaper(forms: Iterable[FormCost]) -> list[FormCost]:
    kept: list[FormCost] = []
    for form in forms:
        if not kept or form.tokens < kept[-1].tokens:
            kept.append(form)
    return kept
