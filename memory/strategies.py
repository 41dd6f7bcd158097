"""What of a caller's past a model is shown: one interface, ours and the paper's baselines behind it. Pure.

A business names one (`memory: strategy` in its file), the benches compare them.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from memory.model import Page, Window
from memory.project import Candidate, Focus, project

BUDGET_TOKENS = 1_500
AUDIO_TURNS = 2
"""How many of the latest turns may stay audio: it costs eight times what text does, and says little more."""
PAGES_MIN = 20
TOKENS_PER_PAGE_MIN = 12
"""Pages looked at for a budget: few are cheaper than so many tokens."""
LATEST_TURNS = 2
"""The call's own latest turns are never outranked by what a search finds."""
LATEST_LOGIT = 1_000.0
RECENT_LOGIT = 8.0
"""The start of the latest page on what is found, as a logit; half for the one before, and so on."""
UNSEARCHED_LOGIT = -10.0
"""About that of a page that has nothing to do with the query."""


class StrategyName(StrEnum):
    """`vthreads` is ours; the others are the paper's baselines, as it describes them."""

    VTHREADS = "vthreads"
    PAGE_RAG = "page-rag"
    HYBRID_RAG = "hybrid-rag"
    COMPACTION = "compaction"
    HIERARCHICAL = "hierarchical"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class Policy:
    """How one business wants its callers' past to be used. `audio_turns`: how many latest turns may be audio.

    `languages` are the tags of those that callers speak there; `documents`: the business has some to look up.
    """

    strategy: StrategyName = StrategyName.VTHREADS
    budget_tokens: int = BUDGET_TOKENS
    audio_turns: int = AUDIO_TURNS
    languages: tuple[str, ...] = ("en",)
    documents: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a search says of a page: both sides' logits, and the query's cosine with the page (0 without vectors)."""

    sides: tuple[float, float]
    cosine: float = 0.0


@dataclass(frozen=True, slots=True)
class Past:
    """What a window can be made of: pages of one caller of one business, oldest first, the call's own last.

    `recent` are the call's latest pages, and before them those of the call that it resumes; they are among `pages`.
    `threads` are summaries of the topics at hand, most relevant first.
    """

    pages: Sequence[Page]
    recent: Sequence[Page]
    call_id: str
    live_items: Collection[str] = ()
    found: Mapping[int, Found] = field(default_factory=dict)
    threads: Sequence[str] = ()
    focus: Focus | None = None
    facts: Sequence[str] = ()
    """Passages of the business's documents, most relevant first."""
    transcript_tokens: Mapping[int, int] = field(default_factory=dict)
    """What pages take as transcripts, by id, as far as somebody has counted it: a bench asks of the same again."""

    def is_live(self, page: Page) -> bool:
        """Its audio can still be referenced in the model's session."""
        return bool(page.user_item_id) and page.user_item_id in self.live_items


class Strategy(Protocol):
    """Chooses a window. `reads_all`: it needs every page, not those that a search found. `asks`: the query matters."""

    @property
    def reads_all(self) -> bool: ...
    @property
    def asks(self) -> bool: ...

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """The window, never over the budget (but `full`, whose budget is what the model can hold)."""
        ...


@dataclass(frozen=True, slots=True)
class Vthreads:
    """Ours: words, meaning and neighbourhood rank each utterance; the projector fills the window."""

    reads_all: bool = False
    asks: bool = True

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        candidates = list(_candidates(past, audio_turns))
        return project(candidates, budget_tokens, threads=past.threads, focus=past.focus)


def pages_wanted(budget_tokens: int) -> int:
    """How many of the best pages are worth looking at for a budget."""
    return PAGES_MIN + budget_tokens // TOKENS_PER_PAGE_MIN


def _candidates(past: Past, audio_turns: int) -> Iterator[Candidate]:
    """The call's last turns before all; those before them have a start on what a search found."""
    own = [page.page_id for page in past.recent if page.call_id == past.call_id]
    latest, audible = own[-LATEST_TURNS:], own[max(0, len(own) - audio_turns) :]
    start = {page.page_id: RECENT_LOGIT / back for back, page in enumerate(reversed(past.recent), start=1)}
    unsearched = Found((UNSEARCHED_LOGIT, UNSEARCHED_LOGIT))
    for page in past.pages:
        if page.page_id in latest:
            live = page.page_id in audible and past.is_live(page)
            yield Candidate(page, LATEST_LOGIT + latest.index(page.page_id), live)
            continue
        gain = start.get(page.page_id, 0.0)
        user, reply = past.found.get(page.page_id, unsearched).sides
        yield Candidate(page, max(user, reply) + gain, sides=(user + gain, reply + gain))
