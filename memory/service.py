"""Memory as a call uses it: recall a window, commit an exchange, say where a dropped call stood."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import structlog

from memory.audio_store import AudioStore, audio_path, ulaw_to_wav
from memory.caller_cache import CallerCache
from memory.caller_cache import Past as CallerPast
from memory.caller_pages import CallerPages
from memory.calls import CallRow
from memory.embed import Embedder, has_words
from memory.errors import StorageFault, StorageUnavailable
from memory.focus import focus, stems
from memory.fusion import FusionWeights, load_weights, utterance_logits
from memory.model import ALL_OF_IT, Access, CallSnapshot, Exchange, Owner, Page, Window, is_since
from memory.parties import Parties
from memory.project import Candidate, fit_facts, project
from memory.searched import Searched, best, found_in
from memory.store import AudioPaths, Store
from memory.store_pages import ULAW_BYTES_PER_MS
from memory.strategies import Past, Policy, pages_wanted
from memory.strategies_baselines import STRATEGIES
from memory.summarise import extract_page, extract_thread

log = structlog.get_logger()

SAFE_TOKENS = 100
"""Kept free: the estimate of tokens is an estimate."""
RECENT_PAGES = 8
OWN_PAGES = 40
"""How many of its own pages a call holds, for when the store is down."""
WINDOW_THREADS = 2
FACTS_MAX = 5
"""Passages of the business's documents that a turn is offered."""
THREAD_SEEDS = 5
"""Topics are those of so many latest pages."""
LOOP_PAGES_MAX = 2_000
"""Ranking more pages at once would hold up the calls beside it: that is done in a thread."""
UNNAMED = Parties()
POLICY = Policy()

OnStage = Callable[[str, float], None]
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
        policy: Policy = POLICY,
        weights: FusionWeights | None = None,
        on_stage: OnStage | None = None,
    ) -> None:
        """`on_stage` is told each stage of a recall (embed, search, fuse, project) and its milliseconds."""
        self._store = store
        self.callers = CallerCache(store)
        self._audio_store = audio_store
        self._embedder = embedder
        self._policy = policy
        self._weights = weights or load_weights()
        self._on_stage = on_stage

    async def recall(
        self,
        owner: Owner,
        call_id: str,
        query: str,
        live_items: Sequence[str],
        *,
        policy: Policy | None = None,
        safe_tokens: int | None = None,
        resumed_from: str | None = None,
        parties: Parties = UNNAMED,
        access: Access = ALL_OF_IT,
    ) -> Window:
        """The window for a turn: the call's latest pages (and the resumed call's), and what the query finds.

        Summaries of topics come along where talk goes on ("where were we?"), not where a question can be searched.

        For nobody: this call's own pages. `live_items` are the session's items whose audio can still be referenced;
        `access` is what may be looked at.
        Raises: `StorageUnavailable`, `StorageFault`.
        """
        policy = policy or self._policy
        past = await self.past(
            owner,
            call_id,
            query,
            live_items,
            policy=policy,
            resumed_from=resumed_from if access.resumed else None,
            parties=parties,
            access=access,
        )
        budget = policy.budget_tokens
        safe = min(SAFE_TOKENS, budget // 10) if safe_tokens is None else safe_tokens
        with self._stage("project"):
            room = max(0, budget - safe)
            facts, tokens = fit_facts(past.facts, room)
            window = STRATEGIES[policy.strategy].window(past, room - tokens, policy.audio_turns)
            return replace(
                window,
                facts=facts,
                tokens=window.tokens + tokens,
                budget_tokens=window.budget_tokens + tokens,
            )

    async def warm(self, owner: Owner) -> None:
        """Read the caller's pages, so that the first recall finds them here. A store that is down is no fault."""
        if owner.caller:
            with contextlib.suppress(StorageUnavailable, StorageFault):
                await self.callers.past(owner, self._model(), "", "")

    async def past(
        self,
        owner: Owner,
        call_id: str,
        query: str,
        live_items: Sequence[str],
        *,
        policy: Policy,
        resumed_from: str | None = None,
        parties: Parties = UNNAMED,
        access: Access = ALL_OF_IT,
    ) -> Past:
        """What the policy's strategy can choose from; as `recall`."""
        if owner.caller:
            searched = await self._searched(owner, call_id, resumed_from, parties, query, policy, access)
        else:
            own = await self._store.recent_pages(owner, call_id, RECENT_PAGES)
            pages = [page for page in own if is_since(page.exchange_no, access.since_no)]
            facts = await self._facts_for_nobody(owner.business_id, parties.without_names(query), policy)
            searched = Searched(pages, pages, {}, False, CallerPages(), facts)
        recent = searched.recent
        topics = await self._topics(owner, searched) if resumed_from or not searched.has_words else []
        asked = stems(query)
        return Past(
            searched.pages,
            recent,
            call_id,
            live_items,
            searched.found,
            topics,
            lambda text: focus(text, asked),
            searched.facts,
        )

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

    def of_call(
        self,
        owner: Owner,
        call_id: str,
        *,
        resumed_from: str | None = None,
        parties: Parties = UNNAMED,
        policy: Policy | None = None,
    ) -> "CallMemory":
        """This memory bound to one call."""
        return CallMemory(self, owner, call_id, resumed_from, parties, policy or self._policy)

    async def _searched(
        self,
        owner: Owner,
        call_id: str,
        resumed_from: str | None,
        parties: Parties,
        query: str,
        policy: Policy,
        access: Access,
    ) -> Searched:
        asked = parties.without_names(query)
        reads_all = STRATEGIES[policy.strategy].reads_all
        if not has_words(asked):
            past = await self._past(owner, call_id, resumed_from, "", policy)
            seen = past.pages.seen_with(access, past.call_ids)
            recent = seen.latest(past.call_ids, RECENT_PAGES)
            return Searched(recent, seen.all() if reads_all else recent, {}, False, seen)
        past, vector = await asyncio.gather(
            self._past(owner, call_id, resumed_from, asked, policy), self._embedded(asked)
        )
        facts = await self._facts(owner.business_id, asked, policy, vector)
        with self._stage("search"):
            seen = past.pages.seen_with(access, past.call_ids)
            scan = seen.scan(past.asked_terms, vector, asked)
            recent = seen.latest(past.call_ids, RECENT_PAGES)
        with self._stage("fuse"):
            asked_side = parties.asked_side(query)
            if len(scan) > LOOP_PAGES_MAX:
                sides = await asyncio.to_thread(utterance_logits, scan, asked_side, self._weights)
            else:
                sides = utterance_logits(scan, asked_side, self._weights)
            if reads_all:
                found = found_in(scan, sides, range(len(scan)))
                return Searched(recent, seen.all(), found, len(scan.asked_terms) > 0, seen, facts)
            known = {page.page_id for page in recent}
            rows = best(sides, scan.page_ids, pages_wanted(policy.budget_tokens), known)
            found = found_in(scan, sides, rows)
            shown = [*seen.pages(found.keys() - known), *recent]
            return Searched(recent, shown, found, len(scan.asked_terms) > 0, seen, facts)

    async def _facts_for_nobody(self, business_id: str, query: str, policy: Policy) -> list[str]:
        """Who withholds the number has no past, but may ask about the business."""
        asks = policy.documents and has_words(query)
        return await self._facts(business_id, query, policy, await self._embedded(query) if asks else None)

    async def _facts(
        self, business_id: str, query: str, policy: Policy, vector: Sequence[float] | None
    ) -> list[str]:
        """Passages of the business's documents that fit the query, best first."""
        if not policy.documents or not has_words(query):
            return []
        with self._stage("search"):
            found = await self._store.find_facts(
                business_id, query, policy.languages, vector, self._model(), FACTS_MAX
            )
        return [str(passage) for passage in found]

    async def _past(
        self, owner: Owner, call_id: str, resumed_from: str | None, query: str, policy: Policy
    ) -> CallerPast:
        with self._stage("search"):
            return await self.callers.past(
                owner, self._model(), query, call_id, resumed_from, policy.languages
            )

    async def _embedded(self, query: str) -> list[float] | None:
        with self._stage("embed"):
            vectors = await self._embedder.embed([query]) if self._embedder else None
        return vectors[0] if vectors else None

    def _model(self) -> str:
        """The name of the model whose vectors can be compared with a query's; empty for none."""
        return self._embedder.model if self._embedder is not None and self._embedder.fault is None else ""

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        if self._on_stage is not None:
            self._on_stage(name, (time.perf_counter() - began) * 1_000)

    async def _topics(self, owner: Owner, searched: Searched) -> list[str]:
        """Summaries of the threads that the latest pages belong to, newest first; none that tells of a hidden page."""
        latest = [page.page_id for page in searched.recent[-THREAD_SEEDS:]]
        found = await self._store.threads_of(owner, latest)
        threads = [thread for thread in found if searched.seen.holds(thread.page_ids)]
        threads.sort(key=lambda one: (max(one.page_ids), one.thread_id), reverse=True)
        return [thread.summary for thread in threads[:WINDOW_THREADS] if thread.summary]

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

    def __init__(
        self,
        memory: Memory,
        owner: Owner,
        call_id: str,
        resumed_from: str | None,
        parties: Parties = UNNAMED,
        policy: Policy = POLICY,
    ) -> None:
        self._memory = memory
        self._policy = policy
        self._owner = owner
        self._call_id = call_id
        self._resumed_from = resumed_from
        self._parties = parties
        self._own: deque[Page] = deque(maxlen=OWN_PAGES)

    async def recall(self, query: str, live_items: tuple[str, ...], access: Access = ALL_OF_IT) -> Window:
        """The window for a turn, made of what may be looked at."""
        try:
            return await self._memory.recall(
                self._owner,
                self._call_id,
                query,
                live_items,
                policy=self._policy,
                resumed_from=self._resumed_from,
                parties=self._parties,
                access=access,
            )
        except (StorageUnavailable, StorageFault) as error:
            log.warning("recall_without_store", call_id=self._call_id, error=str(error))
            return self._own_window(live_items, access)

    async def commit(
        self, exchange: Exchange, *, epoch: int | None = None, snapshot: CallSnapshot | None = None
    ) -> int | None:
        """As `Memory.commit`. The exchange is known to this call's recall whether or not it could be stored."""
        self._own.append(_unstored_page(exchange))
        return await self._memory.commit(self._owner, exchange, epoch=epoch, snapshot=snapshot)

    def _own_window(self, live_items: tuple[str, ...], access: Access) -> Window:
        own = [page for page in self._own if is_since(page.exchange_no, access.since_no)]
        latest = set(range(len(own) - self._policy.audio_turns, len(own)))
        candidates = [
            Candidate(page, float(rank), rank in latest and page.user_item_id in live_items)
            for rank, page in enumerate(own)
        ]
        return project(candidates, self._policy.budget_tokens, safe_tokens=SAFE_TOKENS)


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
        trust=exchange.trust,
    )
