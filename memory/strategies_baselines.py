"""The paper's baselines (its section 5.1), each as it describes them, on the same pages as ours. Pure.

Where the paper leaves a choice open, it is made in the baseline's favour, and said here:
- Pages come as transcripts, not as audio, which costs eight times as much; no threshold of similarity cuts a search.
- A page that does not fit is passed over, and smaller ones behind it are still tried.
- Summaries are made of the pages' own summaries: by the chat model where there is one, else extracted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.costs import audio_tokens, text_tokens, word_count
from memory.model import Form, Page, Window, WindowEntry
from memory.project import LABEL_WORDS, said_tokens
from memory.strategies import Found, Past, Strategy, StrategyName, Vthreads
from memory.summarise import clip, extract_page, facts_in

LAST_TURNS = 2
TOP_PAGES = 10
RELEVANCE_SHARE = 0.7
CHUNK_TURNS = 10
CHUNK_WORDS = 60
COMPACTED_SHARE = 3
"""A compacted history's summary takes one part in so many of the budget at most."""
FULL_TOKENS = 96_000
"""What gpt-realtime-2.1 takes in: its 128,000 less the 32,000 that it keeps for its answer."""
NOT_FOUND = Found((0.0, 0.0))


@dataclass(frozen=True, slots=True)
class FullHistory:
    """Everything, oldest pages dropped only where the model cannot hold more. The budget is not looked at."""

    limit_tokens: int = FULL_TOKENS
    reads_all: bool = True
    asks: bool = False

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        room = _Room(past, self.limit_tokens, audio_turns)
        for page in reversed(past.pages):
            if not room.add(page):
                break
        return room.window()


@dataclass(frozen=True, slots=True)
class PageRag:
    """The pages most like the query, for as long as they fit."""

    reads_all: bool = True
    asks: bool = True

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        room = _Room(past, budget_tokens, audio_turns)
        for page in _by_similarity(past, past.pages):
            room.add(page)
        return room.window()


@dataclass(frozen=True, slots=True)
class HybridRag:
    """The last two turns; then the ten most like the query and the ten latest, by 0.7 relevance + 0.3 recency.

    Relevance is the cosine, scaled to 0…1 over the caller's pages; recency falls evenly from 1 for the latest page.
    """

    top_pages: int = TOP_PAGES
    reads_all: bool = True
    asks: bool = True

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        room = _Room(past, budget_tokens, audio_turns)
        for page in reversed(past.pages[-LAST_TURNS:]):
            room.add(page)
        cosines = [past.found.get(page.page_id, NOT_FOUND).cosine for page in past.pages] or [0.0]
        low, spread = min(cosines), (max(cosines) - min(cosines)) or 1.0
        score = {
            page.page_id: RELEVANCE_SHARE * (cosine - low) / spread
            + (1.0 - RELEVANCE_SHARE) * (place + 1) / len(past.pages)
            for place, (page, cosine) in enumerate(zip(past.pages, cosines, strict=False))
        }
        union = {page.page_id: page for page in _by_similarity(past, past.pages)[: self.top_pages]}
        union |= {page.page_id: page for page in past.pages[-self.top_pages :]}
        for page in sorted(union.values(), key=lambda page: -score[page.page_id]):
            room.add(page)
        return room.window()


@dataclass(frozen=True, slots=True)
class Compaction:
    """All turns, until they are over the budget: then all but the last two become one summary, again and again."""

    reads_all: bool = True
    asks: bool = False

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        summary_words = int(budget_tokens / COMPACTED_SHARE / text_tokens(100) * 100)
        lines: list[str] = []
        compacted: list[int] = []
        kept: list[Page] = []
        tokens = 0
        for page in past.pages:
            kept.append(page)
            tokens += page_tokens(page)
            if tokens + _line_tokens(lines) > budget_tokens and len(kept) > LAST_TURNS:
                gone, kept = kept[:-LAST_TURNS], kept[-LAST_TURNS:]
                lines = condense([*lines, *map(_summary, gone)], summary_words)
                compacted += [page.page_id for page in gone]
                tokens = sum(map(page_tokens, kept))
        room = _Room(past, budget_tokens, audio_turns)
        room.add_summary(" ".join(lines), compacted)
        for page in reversed(kept):
            room.add(page)
        return room.window()


@dataclass(frozen=True, slots=True)
class HierarchicalSummary:
    """The last two turns, and a summary of each ten turns before them, the latest first where room is short."""

    reads_all: bool = True
    asks: bool = False

    def window(self, past: Past, budget_tokens: int, audio_turns: int) -> Window:
        """See the protocol."""
        room = _Room(past, budget_tokens, audio_turns)
        for page in reversed(past.pages[-LAST_TURNS:]):
            room.add(page)
        older = past.pages[:-LAST_TURNS]
        chunks = [older[start : start + CHUNK_TURNS] for start in range(0, len(older), CHUNK_TURNS)]
        for chunk in reversed(chunks):
            summary = " ".join(condense([_summary(page) for page in chunk], CHUNK_WORDS))
            if not room.add_summary(summary, [page.page_id for page in chunk]):
                break
        return room.window()


STRATEGIES: dict[StrategyName, Strategy] = {
    StrategyName.VTHREADS: Vthreads(),
    StrategyName.PAGE_RAG: PageRag(),
    StrategyName.HYBRID_RAG: HybridRag(),
    StrategyName.COMPACTION: Compaction(),
    StrategyName.HIERARCHICAL: HierarchicalSummary(),
    StrategyName.FULL: FullHistory(),
}


def condense(lines: Sequence[str], words_max: int) -> list[str]:
    """The lines with the most facts a word that fit together, in their order; the first of them at least, cut."""
    ranked = sorted(range(len(lines)), key=lambda one: (-_facts_a_word(lines[one]), -one))
    kept: set[int] = set()
    words_left = words_max
    for index in ranked:
        words = len(lines[index].split())
        if words and words <= words_left:
            kept.add(index)
            words_left -= words
    if not kept and ranked and words_max > 0:
        return [clip(lines[ranked[0]], words_max)]
    return [lines[index] for index in sorted(kept)]


class _Room:
    """A window being filled with whole pages and summaries, up to so many tokens."""

    def __init__(self, past: Past, budget_tokens: int, audio_turns: int) -> None:
        own = [page for page in past.pages if page.call_id == past.call_id]
        audible = own[max(0, len(own) - audio_turns) :]
        self._audible = {page.page_id for page in audible if past.is_live(page)}
        self._candidates = len(past.pages)
        self._counted = past.transcript_tokens
        self._budget_tokens = budget_tokens
        self._tokens = 0
        self._entries: dict[int, WindowEntry] = {}
        self._summaries: list[tuple[tuple[int, ...], str]] = []

    def add(self, page: Page) -> bool:
        """Whether there was room for it (or it is there already)."""
        if page.page_id in self._entries:
            return True
        audible = page.page_id in self._audible
        form = Form.AUDIO if audible else Form.TRANSCRIPT
        counted = None if audible else self._counted.get(page.page_id)
        tokens = page_tokens(page, audible=audible) if counted is None else counted
        if self._tokens + tokens > self._budget_tokens:
            return False
        if tokens:
            self._entries[page.page_id] = WindowEntry(page, form, tokens)
            self._tokens += tokens
        return True

    def add_summary(self, text: str, page_ids: Iterable[int]) -> bool:
        """Whether there was room for it."""
        tokens = _line_tokens([text])
        if not text or self._tokens + tokens > self._budget_tokens:
            return not text
        self._summaries.append((tuple(page_ids), text))
        self._tokens += tokens
        return True

    def window(self) -> Window:
        """All that was added, in conversational order."""
        entries = sorted(self._entries.values(), key=lambda one: (one.page.created_at, one.page.page_id))
        summaries = sorted(self._summaries, key=lambda one: one[0][:1])
        covered = sum(len(page_ids) for page_ids, _ in summaries)
        return Window(
            entries=tuple(entries),
            threads=tuple(text for _, text in summaries),
            tokens=self._tokens,
            budget_tokens=self._budget_tokens,
            omitted=max(0, self._candidates - len(entries) - covered),
            covers=tuple(page_ids for page_ids, _ in summaries),
        )


def _by_similarity(past: Past, pages: Iterable[Page]) -> list[Page]:
    """The most similar first; without vectors by what the words say; of equals the newer."""

    def key(page: Page) -> tuple[float, float, int]:
        found = past.found.get(page.page_id, NOT_FOUND)
        return -found.cosine, -max(found.sides), -page.page_id

    return sorted(pages, key=key)


def page_tokens(page: Page, *, audible: bool = False) -> int:
    """The page's transcript; with the caller's audio in place of the words if it is `audible`."""
    reply = said_tokens(page.reply_text)
    return reply + (audio_tokens(page.user_audio_ms) if audible else said_tokens(page.user_text))


def _line_tokens(lines: Sequence[str]) -> int:
    words = sum(map(word_count, lines))
    return text_tokens(words + LABEL_WORDS) if words else 0


def _summary(page: Page) -> str:
    return page.summary or extract_page(page.user_text, page.reply_text)


def _facts_a_word(line: str) -> float:
    return len(facts_in(line)) / (len(line.split()) + 1)
