"""Jobs on a real queue: summaries, vectors, threads; run twice, killed, retried."""

import asyncio
import gc
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest

from memory.embedded import conninfo_of
from memory.errors import EmbeddingNotReady
from memory.jobqueue import enqueue_thread
from memory.jobs import (
    JobTools,
    make_app,
    process_page,
    refresh_thread,
    requeue_stalled,
    run_pending,
    run_worker,
    upkeep,
)
from memory.model import Exchange, Owner
from memory.store import AudioPaths, Store
from memory.summarise import ExtractiveSummariser
from tests.integration.embed_double import MODEL, EmbedDouble

ANA = Owner("bakery", "+12025550111")
NOBODY = Owner("bakery", None)
TO = "+12025550100"
LEXICAL_MODEL = ""


@pytest.fixture
def lexical(store: Store) -> JobTools:
    """Tools without an embedding model."""
    return JobTools(store, ExtractiveSummariser())


async def commit(
    store: Store, number: int, user: str, *, owner: Owner = ANA, call_id: str = "CA1", reply: str = "Right."
) -> int:
    await store.open_call(call_id, owner.business_id, owner.caller, TO, "hash")
    page_id = await store.commit_page(
        owner, Exchange(call_id, number, user, reply, flow_node=f"node{number}"), AudioPaths()
    )
    assert page_id is not None
    return page_id


def rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def statuses(url: str) -> dict[object, object]:
    """How many jobs of pages and threads there are in each state (upkeep comes by the clock)."""
    ours = "task_name IN ('memory.process_page', 'memory.refresh_thread')"
    counted = rows(url, f"SELECT status::text, count(*) FROM procrastinate_jobs WHERE {ours} GROUP BY 1")
    return {row[0]: row[1] for row in counted}


async def until(url: str, done: int) -> None:
    while statuses(url).get("succeeded", 0) != done:  # noqa: ASYNC110 - seen only through the database
        await asyncio.sleep(0.05)


async def test_a_page_gets_summary_vectors_and_a_thread(
    store: Store, database_url: str, service_url: str
) -> None:
    async with EmbedDouble().serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        first = await commit(store, 1, "two rye loaves for friday morning")
        kin = await commit(store, 2, "make it three rye loaves for friday morning")
        other = await commit(store, 3, "where can my husband park his caravan", reply="Behind the shop.")
        await run_pending(service_url, tools)
        assert statuses(database_url) == {"succeeded": 5}  # three pages, two threads
        threads = await store.threads_of(ANA, [first, kin, other])
        assert sorted(thread.page_ids for thread in threads) == [(first, kin), (other,)]
        together = next(thread for thread in threads if first in thread.page_ids)
        assert together.flow_node == "node2"
        assert "three rye loaves" in together.summary
        stored = await store.load_page(first)
        assert stored is not None and stored.embedded_with == MODEL
        assert stored.page.summary == "Caller: two rye loaves for friday morning Agent: Right."


async def test_every_job_can_be_run_twice(store: Store, database_url: str) -> None:
    async with EmbedDouble().serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        page_id = await commit(store, 1, "two rye loaves")
        for _ in range(2):
            await process_page(tools, page_id)
        threads = await store.threads_of(ANA, [page_id])
        assert [thread.page_ids for thread in threads] == [(page_id,)]
        for _ in range(2):
            await refresh_thread(tools, threads[0].thread_id)
        assert rows(database_url, "SELECT side, chunk FROM page_vectors ORDER BY 1") == [
            (0, 0),
            (1, 0),
            (2, 0),
        ]
        assert (await store.threads_of(ANA, [page_id]))[0].summary != ""
    await process_page(tools, 10_000)
    await refresh_thread(tools, 10_000)


async def test_without_a_model_threads_follow_the_call(
    store: Store, database_url: str, service_url: str, lexical: JobTools
) -> None:
    pages = [await commit(store, number, "Hello") for number in (1, 2)]
    elsewhere = await commit(store, 1, "Hello", call_id="CA2")
    await run_pending(service_url, lexical)
    threads = await store.threads_of(ANA, [*pages, elsewhere])
    assert sorted(thread.page_ids for thread in threads) == [tuple(pages), (elsewhere,)]


async def test_b083_nobodys_pages_get_a_summary_and_no_more(
    store: Store, database_url: str, service_url: str, lexical: JobTools
) -> None:
    page_id = await commit(store, 1, "I am Ana.", owner=NOBODY)
    await run_pending(service_url, lexical)
    stored = await store.load_page(page_id)
    assert stored is not None and stored.page.summary != ""
    for table in ("threads", "thread_pages", "page_vectors"):
        assert rows(database_url, f"SELECT count(*) FROM {table}") == [(0,)]


async def test_b075_a_failed_embedding_is_made_later(
    store: Store, database_url: str, service_url: str
) -> None:
    double = EmbedDouble(failures=1)
    async with double.serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        page_id = await commit(store, 1, "two rye loaves")
        empty = await commit(store, 2, "...", reply="")
        await run_pending(service_url, tools)
        assert statuses(database_url)["todo"] == 1
        rows(database_url, "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")
        await run_pending(service_url, tools)
        assert rows(database_url, "SELECT DISTINCT page_id FROM page_vectors") == [(page_id,)]
        assert "..." not in double.asked
        stored = await store.load_page(empty)
        assert stored is not None and stored.embedded_with == MODEL


async def test_pages_left_behind_are_queued_again(
    store: Store, database_url: str, service_url: str, lexical: JobTools
) -> None:
    """A job that gave up, or a change of model: the page is embedded all the same, and only once more."""
    page_id = await commit(store, 1, "two rye loaves")
    await run_pending(service_url, lexical)
    rows(database_url, "UPDATE pages SET created_at = now() - interval '1 hour'")
    async with EmbedDouble().serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        await upkeep(tools, datetime.now(UTC))
        await run_pending(service_url, tools)
        assert rows(database_url, "SELECT DISTINCT page_id, model FROM page_vectors") == [(page_id, MODEL)]
        assert await store.enqueue_unembedded(MODEL, timedelta(0), 10) == 0


async def test_b076_a_model_that_does_not_fit_is_named_and_costs_no_page(
    store: Store, database_url: str
) -> None:
    async with EmbedDouble(dimension=768).serve() as embedder:
        tools = JobTools(store, ExtractiveSummariser(), embedder)
        page_id = await commit(store, 1, "two rye loaves")
        with pytest.raises(EmbeddingNotReady):
            await process_page(tools, page_id)
        assert "768" in str(embedder.fault) and "384" in str(embedder.fault)
        assert await embedder.ready() is False
        await process_page(tools, page_id)
        scan = await store.scan(ANA, "rye", None, LEXICAL_MODEL)
        assert scan.page_ids.tolist() == [page_id]
        assert np.isin(scan.asked_terms, scan.user_terms.hashes).all()
        assert (await store.pages_by_id(ANA, [page_id]))[0].summary != ""


async def test_what_a_killed_worker_left_is_done_by_another(
    store: Store, database_url: str, service_url: str, lexical: JobTools
) -> None:
    await commit(store, 1, "two rye loaves")
    rows(database_url, "UPDATE procrastinate_jobs SET status = 'doing'")  # its worker is gone without a word
    await run_pending(service_url, lexical)
    assert statuses(database_url) == {"doing": 1}
    app = make_app(service_url)
    async with app.open_async():
        assert await requeue_stalled(app) == 1
    await run_pending(service_url, lexical)
    assert statuses(database_url) == {"succeeded": 2}


async def test_a_thread_waits_in_the_queue_once(store: Store, database_url: str) -> None:
    for _ in range(3):
        async with store.shared_transaction() as connection:
            await enqueue_thread(connection, 7)
    assert rows(database_url, "SELECT lock, queueing_lock FROM procrastinate_jobs") == [("thread:7",) * 2]


async def test_a_job_names_nothing_of_the_caller(store: Store, database_url: str) -> None:
    await commit(store, 1, "two rye loaves")
    text = str(rows(database_url, "SELECT to_jsonb(j)::text FROM procrastinate_jobs j"))
    assert "2025550111" not in text and "rye" not in text and "bakery" not in text


async def test_b107_200_short_calls_leave_no_job_undone_and_no_task_behind(
    store: Store, database_url: str, service_url: str, lexical: JobTools
) -> None:
    tasks_before = len(asyncio.all_tasks())
    stop = asyncio.Event()
    worker = asyncio.create_task(run_worker(service_url, lexical, stop, concurrency=4))
    for number in range(200):
        owner = Owner("bakery", f"+1202555{number:04d}")
        await commit(store, 1, "Hello, is it open?", owner=owner, call_id=f"CA{number}")
        if number % 10 == 0:
            gc.collect()
    await until(database_url, 400)  # a page and a thread each
    stop.set()
    await worker
    gc.collect()
    assert len(asyncio.all_tasks()) == tasks_before
    assert rows(database_url, "SELECT count(*) FROM procrastinate_workers") == [(0,)]
