"""Memory as a call uses it: recall a window, commit an exchange, say where a dropped call stood."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from memory.audio_store import AudioStore, audio_path, ulaw_to_wav
from memory.calls import CallRow
from memory.embed import Embedder, has_words
from memory.errors import StorageFault, StorageUnavailable
from memory.model import CallSnapshot, Exchange, Owner, Page, Window
from memory.project import Candidate, project
from memory.rank import fuse, thread_score
from memory.store import AudioPaths, Hit, Store, ThreadRow
from memory.store_pages import ULAW_BYTES_PER_MS
from memory.summarise import extract_page, extract_thread

log = structlog.get_logger()

BUDGET_TOKENS = 1_500
SAFE_TOKENS = 100
"""Kept free: the estimate of tokens is an estimate."""
RECENT_PAGES = 8
SEARCH_PAGES = 40
AUDIO_TURNS = 2
"""How many of the latest turns may stay audio; they are also never outranked by what a search finds."""
WINDOW_THREADS = 2
THREAD_SEEDS = 5
"""Threads are looked for around so many best pages."""
BRIEF_EXCHANGES = 3


@dataclass(frozen=True, slots=True)
class ResumeBrief:
    """What to greet a returning caller with: the topic, and the last exchanges, oldest first. Empty for nobody."""

    topic: str
    exchanges: tuple[Page, ...]


class Memory:
    """All callers' memory; each method is about one owner only."""

    def __init__(
        self,
        store: Store,
        audio_store: AudioStore,
        embedder: Embedder | None,
        *,
        budget_tokens: int = BUDGET_TOKENS,
    ) -> None:
        self._store = store
        self._audio_store = audio_store
        self._embedder = embedder
        self._budget_tokens = budget_tokens

    async def recall(
        self,
        owner: Owner,
        call_id: str,
        query: str,
        live_items: Sequence[str],
        *,
        budget_tokens: int | None = None,
        resumed_from: str | None = None,
    ) -> Window:
        """The window for a turn: the call's latest pages (and the resumed call's), and what the query finds.

        For nobody: this call's own pages. `live_items` are the session's items whose audio can still be referenced.
        Raises: `StorageUnavailable`, `StorageFault`.
        """
        recent, hits = await asyncio.gather(
            self._recent(owner, call_id, resumed_from), self._search(owner, query)
        )
        scores = _scores(recent, hits)
        threads = await self._threads(owner, scores)
        expanded = await self._expand(owner, threads, scores)
        latest = [page for page in recent if page.call_id == call_id][-AUDIO_TURNS:]
        live = {page.page_id for page in latest if page.user_item_id and page.user_item_id in live_items}
        found = {page.page_id: page for page in [*(hit.page for hit in hits), *expanded, *recent]}
        for rank, page in enumerate(latest, start=1):
            scores[page.page_id] = float(rank)  # any fused score is far below 1
        candidates = [
            Candidate(page, scores.get(page_id, 0.0), page_id in live) for page_id, page in found.items()
        ]
        budget = self._budget_tokens if budget_tokens is None else budget_tokens
        return _window(candidates, threads, budget)

    async def commit(
        self,
        owner: Owner,
        exchange: Exchange,
        *,
        epoch: int | None = None,
        snapshot: CallSnapshot | None = None,
    ) -> int | None:
        """Keep an exchange: audio files first, then one transaction with page, job and (if given) flow state.

        Returns the page's id; None if it was committed before. An audio file that cannot be written is left out.
        Raises: `StorageUnavailable`, `StaleEpoch`, `UnknownCall`, `ValueError` (another owner's call).
        """
        user, reply = await asyncio.gather(
            self._keep_audio(owner, exchange, "user", exchange.user_ulaw),
            self._keep_audio(owner, exchange, "reply", exchange.reply_ulaw),
        )
        return await self._store.commit_page(
            owner, exchange, AudioPaths(user, reply), epoch=epoch, snapshot=snapshot
        )

    async def resume_brief(self, call: CallRow) -> ResumeBrief:
        """Where a dropped call stood, from what is stored now, whether or not its jobs have run.

        Raises: `StorageUnavailable`.
        """
        if not call.caller:
            return ResumeBrief("", ())
        pages = await self._store.recent_pages(call.owner, call.call_sid, BRIEF_EXCHANGES)
        return ResumeBrief(extract_thread(pages), tuple(pages))

    def of_call(self, owner: Owner, call_id: str, *, resumed_from: str | None = None) -> "CallMemory":
        """This memory bound to one call."""
        return CallMemory(self, owner, call_id, resumed_from)

    async def _recent(self, owner: Owner, call_id: str, resumed_from: str | None) -> list[Page]:
        pages = await self._store.recent_pages(owner, call_id, RECENT_PAGES)
        missing = RECENT_PAGES - len(pages)
        if resumed_from is None or not owner.caller or missing == 0:
            return pages
        earlier = await self._store.recent_pages(owner, resumed_from, missing)
        known = {page.page_id for page in pages}
        return [*(page for page in earlier if page.page_id not in known), *pages]

    async def _search(self, owner: Owner, query: str) -> list[Hit]:
        if not owner.caller or not has_words(query):
            return []
        vectors = await self._embedder.embed([query]) if self._embedder else None
        model = self._embedder.model if self._embedder else ""
        return await self._store.candidates(
            owner, query, vectors[0] if vectors else None, model, SEARCH_PAGES
        )

    async def _threads(self, owner: Owner, scores: Mapping[int, float]) -> list[ThreadRow]:
        seeds = sorted(scores, key=lambda page_id: (scores[page_id], page_id), reverse=True)[:THREAD_SEEDS]
        threads = await self._store.threads_of(owner, seeds)
        threads.sort(key=lambda one: (thread_score(one.page_ids, scores), one.thread_id), reverse=True)
        return threads[:WINDOW_THREADS]

    async def _expand(
        self, owner: Owner, threads: Sequence[ThreadRow], scores: dict[int, float]
    ) -> list[Page]:
        """The threads' other pages; each is worth half of its thread, and less than the pages that were found."""
        worth: dict[int, float] = {}
        for thread in threads:
            half = thread_score(thread.page_ids, scores) / 2
            for page_id in thread.page_ids[-SEARCH_PAGES:]:
                if page_id not in scores:
                    worth[page_id] = max(half, worth.get(page_id, 0.0))
        scores.update(worth)
        return await self._store.pages_by_id(owner, list(worth))

    async def _keep_audio(self, owner: Owner, exchange: Exchange, side: str, ulaw: bytes) -> str:
        if not ulaw:
            return ""
        path = audio_path(owner.business_id, exchange, side)
        try:
            await self._audio_store.put(path, ulaw_to_wav(ulaw))
        except StorageUnavailable as error:
            log.error("audio_not_kept", call_id=exchange.call_id, side=side, error=str(error))  # noqa: TRY400
            return ""
        return path


class CallMemory:
    """The memory of one call. Recall never fails: with the store down it is what the call itself said."""

    def __init__(self, memory: Memory, owner: Owner, call_id: str, resumed_from: str | None) -> None:
        self._memory = memory
        self._owner = owner
        self._call_id = call_id
        self._resumed_from = resumed_from
        self._own: deque[Page] = deque(maxlen=SEARCH_PAGES)

    async def recall(self, query: str, live_items: tuple[str, ...]) -> Window:
        """The window for a turn."""
        try:
            return await self._memory.recall(
                self._owner, self._call_id, query, live_items, resumed_from=self._resumed_from
            )
        except (StorageUnavailable, StorageFault) as error:
            log.warning("recall_without_store", call_id=self._call_id, error=str(error))
            return self._own_window(live_items)

    async def commit(
        self, exchange: Exchange, *, epoch: int | None = None, snapshot: CallSnapshot | None = None
    ) -> int | None:
        """As `Memory.commit`. The exchange is known to this call's recall whether or not it could be stored."""
        self._own.append(_unstored_page(exchange))
        return await self._memory.commit(self._owner, exchange, epoch=epoch, snapshot=snapshot)

    def _own_window(self, live_items: tuple[str, ...]) -> Window:
        latest = set(range(len(self._own) - AUDIO_TURNS, len(self._own)))
        candidates = [
            Candidate(page, float(rank), rank in latest and page.user_item_id in live_items)
            for rank, page in enumerate(self._own)
        ]
        return project(candidates, BUDGET_TOKENS, safe_tokens=SAFE_TOKENS)


def _window(candidates: Sequence[Candidate], threads: Sequence[ThreadRow], budget_tokens: int) -> Window:
    """Pages first; a thread's summary stands in only for pages of it that found no place as themselves."""
    safe_tokens = min(SAFE_TOKENS, budget_tokens // 10)
    window = project(candidates, budget_tokens, safe_tokens=safe_tokens)
    there = {entry.page.page_id for entry in window.entries}
    summaries = [t.summary for t in threads if t.summary and not there.issuperset(t.page_ids)]
    if not summaries:
        return window
    return project(candidates, budget_tokens, safe_tokens=safe_tokens, threads=summaries)


def _scores(recent: Sequence[Page], hits: Sequence[Hit]) -> dict[int, float]:
    """Words, vectors and recency, fused by rank."""
    return fuse(
        [
            {hit.page.page_id: hit.lexical_rank for hit in hits if hit.lexical_rank is not None},
            {hit.page.page_id: hit.dense_rank for hit in hits if hit.dense_rank is not None},
            {page.page_id: rank for rank, page in enumerate(reversed(recent), start=1)},
        ]
    )


def _unstored_page(exchange: Exchange) -> Page:
    """A page as far as the call knows it. Its id is negative: no stored page has it."""
    return Page(
        page_id=-1 - exchange.exchange_no,
        call_id=exchange.call_id,
        exchange_no=exchange.exchange_no,
        user_text=exchange.user_text,
        reply_text=exchange.reply_text,
        summary=extract_page(exchange.user_text, exchange.reply_text),
        user_audio_path="",
        reply_audio_path="",
        user_audio_ms=len(exchange.user_ulaw) // ULAW_BYTES_PER_MS,
        reply_audio_ms=len(exchange.reply_ulaw) // ULAW_BYTES_PER_MS,
        interrupted=exchange.interrupted,
        user_item_id=exchange.user_item_id,
        created_at=datetime.now(UTC),
    )
