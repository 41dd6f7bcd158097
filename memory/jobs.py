"""Background work on procrastinate: a page's summary, embedding and threads; a thread's refresh; upkeep.

Every job can be run twice with the same result, and takes surrogate ids only.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any

import psycopg
import structlog
from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.exceptions import ConnectorException
from psycopg_pool import PoolTimeout

from memory.audio_store import AudioStore, business_of, call_of
from memory.embed import Embedder, chunks
from memory.embedded import conninfo_of
from memory.errors import EmbeddingNotReady
from memory.jobqueue import EMBED_FACTS, PROCESS_PAGE, QUEUE, REFRESH_THREAD, SEND_NOTICE
from memory.notices import TOLD_FOR, Notifier, send_notice, sweep_notices
from memory.store import PageVectors, Store, StoredPage
from memory.store_erasure import Erasure
from memory.summarise import Summariser, Summary
from memory.threads import place, profile_for

log = structlog.get_logger()

CONCURRENCY = 2
RETRY = RetryStrategy(max_attempts=8, exponential_wait=3)
"""3, 9, 27 … s: two hours in all; what is still undone then is found by `upkeep`."""
EMBED_WAIT_S = 30.0
EMBED_BATCH = 8
LEFT_BEHIND = timedelta(minutes=5)
UPKEEP_PAGES = 200
DOOMED_BATCH = 100
SWEEP_AFTER = timedelta(hours=24)
KEEP_FINISHED_JOBS_H = 24
STOP_WAIT_S = 20
RECONNECT_WAIT_S = 2.0
_NO_OTHERS: Mapping[str, Callable[..., Awaitable[None]]] = {}
POOL_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class JobTools:
    """What the jobs work with. Without an embedder pages are found by words, and threads follow the calls."""

    store: Store
    summariser: Summariser
    embedder: Embedder | None = None
    audio: AudioStore | None = None
    """Where files of erased pages are deleted."""
    retention: Mapping[str, timedelta] = field(default_factory=dict)
    """How long calls are kept, by business; without an entry for ever."""
    notifier: Notifier | None = None
    """Tells businesses' systems; None: nobody is told."""
    on_forgotten: Callable[[Erasure], None] = field(default=lambda _: None)
    """Told of each caller who was erased because they had asked for it: the ledger notes it. May raise `OSError`."""
    others: Mapping[str, Callable[..., Awaitable[None]]] = field(default_factory=dict)
    """Work that is not memory's, by the name of its job; called with the job's arguments, and again if it raises."""

    @property
    def model(self) -> str:
        """The name of the model whose vectors are made now; empty for none."""
        return self.embedder.model if self.embedder is not None and self.embedder.fault is None else ""


async def process_page(tools: JobTools, page_id: int) -> None:
    """Summary, vectors, threads. Raises: `EmbeddingNotReady`, `StorageUnavailable`: tried again then."""
    stored = await tools.store.load_page(page_id)
    if stored is None:
        return
    if not stored.page.summary:
        summary = await tools.summariser.page(stored.page.user_text, stored.page.reply_text)
        await _pay(tools, stored.owner.business_id, stored.page.call_id, summary)
        await tools.store.save_summary(page_id, summary.text)
    if not stored.owner.caller:
        return
    await embed_page(tools, stored)
    model = tools.model
    await tools.store.join_threads(stored, model or None, partial(place, profile=profile_for(model)))


async def refresh_thread(tools: JobTools, thread_id: int) -> None:
    """A thread's summary and its embedding, from its pages as they are now."""
    business_id, pages = await tools.store.thread_content(thread_id)
    if not pages:
        return
    summary = await tools.summariser.thread(pages)
    await _pay(tools, business_id, pages[-1].call_id, summary)
    vectors = None
    if tools.embedder is not None and (parts := chunks(summary.text)):
        vectors = await tools.embedder.embed(parts[:1], urgent=False, wait_s=EMBED_WAIT_S)
    await tools.store.save_thread(
        thread_id, summary.text, tools.model or None, vectors[0] if vectors else None
    )


async def _pay(tools: JobTools, business_id: str, call_id: str, summary: Summary) -> None:
    """Before it is saved: made again after a crash, it is paid for again."""
    if summary.charge is not None:
        await tools.store.add_charge(business_id, call_id, summary.charge)


async def embed_facts(tools: JobTools) -> int:
    """Vectors of all businesses' passages that have none of the model that there is now. Returns how many.

    Raises: `EmbeddingNotReady`, `StorageUnavailable`: what is left is done then.
    """
    if tools.embedder is None or not tools.model:
        return 0
    count = 0
    for business_id in await tools.store.businesses():
        while left := await tools.store.unembedded_facts(business_id, tools.model, EMBED_BATCH):
            vectors = await _embed_all(tools, [chunks(str(fact.passage))[0] for fact in left])
            made = {fact.fact_id: vector for fact, vector in zip(left, vectors, strict=True)}
            await tools.store.save_fact_vectors(business_id, tools.model, made)
            count += len(left)
    return count


async def upkeep(tools: JobTools, now: datetime) -> None:
    """Queue what no job has finished, and drop what nobody needs."""
    waiting = await tools.store.enqueue_unembedded(tools.model, LEFT_BEHIND, UPKEEP_PAGES)
    tokens = await tools.store.forget_spent_tokens(now)
    flows = await tools.store.forget_flows(now)
    log.info("memory_upkeep", pages_queued=waiting, tokens_forgotten=tokens, flows_forgotten=flows)
    for business_id, kept in tools.retention.items():
        expired = await tools.store.expire(business_id, now - kept)
        if expired.calls:
            log.info("calls_expired", business=business_id, calls=expired.calls, pages=expired.pages)
    await forget_due(tools, now)
    if tools.audio is not None:
        await delete_doomed(tools.store, tools.audio)
    await embed_facts(tools)


async def forget_due(tools: JobTools, now: datetime) -> None:
    """Erase the callers who asked for it by voice, once the time has passed in which that can be undone."""
    for owner in await tools.store.due_to_forget(now):
        erased, entry = await tools.store.forget(owner)
        log.info("caller_forgotten", business=owner.business_id, calls=erased.calls, pages=erased.pages)
        try:
            tools.on_forgotten(entry)
        except OSError as error:
            log.error("erasure_not_in_ledger", business=owner.business_id, error=error.strerror)  # noqa: TRY400


async def delete_doomed(store: Store, audio: AudioStore) -> int:
    """Delete the files of erased pages. Returns how many. Raises: `StorageUnavailable`: the rest is tried again."""
    count = 0
    while doomed := await store.doomed(DOOMED_BATCH):
        for file in doomed:
            await audio.delete(file.path)
            await store.undoom([file.file_id])
        count += len(doomed)
    return count


async def sweep_audio(store: Store, audio: AudioStore, now: datetime) -> int:
    """Delete files of a day ago that no page names: of an exchange that was never committed. Returns how many.

    A spooled exchange has its audio with it and writes it again. Raises: `StorageUnavailable`.
    """
    old = await audio.untouched_since(now - SWEEP_AFTER)
    old.sort()
    swept = 0
    for business_id, ours in groupby(old, business_of):
        for batch in batches(list(ours), DOOMED_BATCH):
            named = await store.audio_of_calls(business_id, sorted({call_of(path) for path in batch}))
            for path in batch:
                if path not in named:
                    await audio.delete(path)
                    swept += 1
    return swept


def batches(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The items, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


async def requeue_stalled(app: App) -> int:
    """Queue again what killed workers left behind: until then its lock blocks the thread for good."""
    stalled = list(await app.job_manager.get_stalled_jobs())
    for job in stalled:
        await app.job_manager.retry_job(job)
    return len(stalled)


def make_app(
    url: str, *, periodic: bool = True, others: Mapping[str, Callable[..., Awaitable[None]]] = _NO_OTHERS
) -> App:
    """A procrastinate app on this database, with all jobs (upkeep too, if `periodic`); not open yet."""
    connector = PsycopgConnector(conninfo=conninfo_of(url), min_size=1, max_size=4, timeout=POOL_WAIT_S)
    app = App(connector=connector)
    add = partial(app.task, queue=QUEUE, pass_context=True)
    add(name=PROCESS_PAGE, retry=RETRY)(_process_page)
    add(name=REFRESH_THREAD, retry=RETRY)(_refresh_thread)
    add(name=EMBED_FACTS, retry=RETRY)(_embed_facts)
    add(name=SEND_NOTICE, retry=RETRY)(_send_notice)
    for name, work in others.items():
        app.task(name=name, queue=QUEUE, retry=RETRY)(work)
    if periodic:
        _add_upkeep(app)
    return app


def _add_upkeep(app: App) -> None:
    minutely = app.task(
        name="memory.requeue_stalled", queue=QUEUE, pass_context=True, queueing_lock="requeue_stalled"
    )
    app.periodic(cron="* * * * *")(minutely(_requeue_stalled))
    telling = app.task(name="memory.sweep_notices", queue=QUEUE, pass_context=True, queueing_lock="notices")
    app.periodic(cron="* * * * *")(telling(_sweep_notices))
    regularly = app.task(name="memory.upkeep", queue=QUEUE, pass_context=True, queueing_lock="upkeep")
    app.periodic(cron="*/5 * * * *")(regularly(_upkeep))
    daily = app.task(name="memory.sweep_audio", queue=QUEUE, pass_context=True, queueing_lock="sweep_audio")
    app.periodic(cron="23 3 * * *")(daily(_sweep_audio))


async def run_worker(
    url: str, tools: JobTools, stop: asyncio.Event, *, concurrency: int = CONCURRENCY
) -> None:
    """Work until `stop` is set, then finish what runs (at most 20 s). Outlives outages of the database."""
    while not stop.is_set():
        try:
            await _work(url, tools, stop, concurrency)
        except (ConnectorException, PoolTimeout, psycopg.OperationalError) as error:
            log.warning("job_worker_without_database", error=type(error).__name__)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), RECONNECT_WAIT_S)


async def run_pending(url: str, tools: JobTools) -> None:
    """Run what is queued now and come back."""
    app = make_app(url, periodic=False, others=tools.others)
    async with app.open_async():
        # One at a time: a second slot would find the queue empty and leave while the first still adds to it.
        await app.run_worker_async(**_options(tools, concurrency=1), wait=False, listen_notify=False)


async def _work(url: str, tools: JobTools, stop: asyncio.Event, concurrency: int) -> None:
    app = make_app(url, others=tools.others)
    async with app.open_async():
        worker = asyncio.create_task(app.run_worker_async(**_options(tools, concurrency)))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([worker, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            # The worker first, then (leaving the block) the connections it works with.
            stopped.cancel()
            worker.cancel()
            await asyncio.wait([worker, stopped])
        if not worker.cancelled():
            worker.result()


def _options(tools: JobTools, concurrency: int) -> dict[str, Any]:
    return {
        "queues": [QUEUE],
        "concurrency": concurrency,
        "install_signal_handlers": False,
        "shutdown_graceful_timeout": STOP_WAIT_S,
        "additional_context": {"tools": tools},
    }


async def embed_page(tools: JobTools, stored: StoredPage) -> None:
    """Vectors of the model that there is now, unless the page has them. Raises: `EmbeddingNotReady`."""
    if stored.embedded_with == tools.model:
        return
    page, model = stored.page, tools.model
    sides = [chunks(f"{page.user_text}\n{page.reply_text}"), chunks(page.user_text), chunks(page.reply_text)]
    if tools.embedder is None or not model:
        sides = [[], [], []]
    made = iter(await _embed_all(tools, [part for parts in sides for part in parts]))
    whole, user, reply = ([next(made) for _ in parts] for parts in sides)
    await tools.store.save_vectors(stored.owner, page.page_id, model, PageVectors(whole, user, reply))


async def _embed_all(tools: JobTools, texts: Sequence[str]) -> list[list[float]]:
    """In small batches: a caller's query waits for the batch before it."""
    vectors: list[list[float]] = []
    for start in range(0, len(texts), EMBED_BATCH):
        batch = texts[start : start + EMBED_BATCH]
        made = (
            await tools.embedder.embed(batch, urgent=False, wait_s=EMBED_WAIT_S) if tools.embedder else None
        )
        if made is None:
            raise EmbeddingNotReady(tools.model)
        vectors += made
    return vectors


def _tools(context: JobContext) -> JobTools:
    tools = context.additional_context["tools"]
    if not isinstance(tools, JobTools):
        raise TypeError("the worker was started without tools")
    return tools


async def _process_page(context: JobContext, page_id: int) -> None:
    await process_page(_tools(context), page_id)


async def _refresh_thread(context: JobContext, thread_id: int) -> None:
    await refresh_thread(_tools(context), thread_id)


async def _embed_facts(context: JobContext) -> None:
    await embed_facts(_tools(context))


async def _send_notice(context: JobContext, notice_id: int) -> None:
    tools = _tools(context)
    if tools.notifier is not None:
        await send_notice(tools.store, tools.notifier, notice_id)


async def _sweep_notices(context: JobContext, timestamp: int) -> None:
    tools = _tools(context)
    if tools.notifier is not None:
        now = datetime.fromtimestamp(timestamp, UTC)
        await tools.store.requeue_voicemails(now - TOLD_FOR)
        waiting = await sweep_notices(tools.store, tools.notifier, now)
        if waiting:
            log.info("notices_wait", count=waiting)


async def _requeue_stalled(context: JobContext, timestamp: int) -> None:
    requeued = await requeue_stalled(context.app)
    if requeued:
        log.warning("stalled_jobs_requeued", count=requeued)


async def _upkeep(context: JobContext, timestamp: int) -> None:
    await upkeep(_tools(context), datetime.fromtimestamp(timestamp, UTC))
    await context.app.job_manager.delete_old_jobs(nb_hours=KEEP_FINISHED_JOBS_H)


async def _sweep_audio(context: JobContext, timestamp: int) -> None:
    tools = _tools(context)
    if tools.audio is not None:
        swept = await sweep_audio(tools.store, tools.audio, datetime.fromtimestamp(timestamp, UTC))
        log.info("audio_swept", files=swept)
