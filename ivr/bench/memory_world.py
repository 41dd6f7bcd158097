"""A real store with its real embedding process in a temporary folder, and dialogues put into it as calls."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ivr.bench.cost import WORDS_PER_MIN
from ivr.bench.kept_vectors import KeptVectors, VectorFile
from ivr.bench.locomo import Dialogue
from ivr.errors import CallthreadError
from ivr.places import migrations
from ivr.settings import Settings
from memory import errors as faults
from memory import migrate
from memory.audio_store import AudioStore
from memory.embed import Embedder, EmbedProcess, find_model
from memory.embedded import SERVICE_ROLE, EmbeddedPostgres
from memory.fusion import FusionWeights
from memory.jobs import JobTools, process_page
from memory.model import Exchange, Owner
from memory.service import Memory
from memory.store import Store
from memory.store_pages import ULAW_BYTES_PER_MS
from memory.summarise import ExtractiveSummariser

BUSINESS = "bench"
AGENT_NUMBER = "+16175550140"
READY_S = 600.0
ANSWER_S = 30.0
POLL_S = 0.2
# The bench's data need not survive the machine.
UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

Step = Callable[[], None]


@dataclass(frozen=True, slots=True)
class MemoryWorld:
    """What a bench works with. `url` is the database's owner's."""

    url: str
    store: Store
    audio: AudioStore
    embedder: Embedder | None

    def memory(self, weights: FusionWeights | None = None) -> Memory:
        """The memory on this store; with other weights than the shipped ones if given."""
        return Memory(self.store, self.audio, self.embedder, weights=weights)


@contextlib.asynccontextmanager
async def memory_world(
    folder: Path | None = None, model: str | None = None, *, vectors_kept: bool = False
) -> AsyncIterator[MemoryWorld]:
    """An empty world while the block runs. `folder` (else the service's data folder) keeps the exported model, and
    with `vectors_kept` what the model said of each text, for the next one.

    Raises: `CallthreadError`.
    """
    folder = folder or Settings.load().data_dir
    with tempfile.TemporaryDirectory(prefix="callthread-bench-") as made:
        root = Path(made)
        async with _database(root) as (url, service_url), _embedder(folder, model, vectors_kept) as embedder:
            store = Store(service_url)
            try:
                yield MemoryWorld(url, store, AudioStore(f"file://{root}/audio"), embedder)
            finally:
                await store.close()


@contextlib.asynccontextmanager
async def _database(root: Path) -> AsyncIterator[tuple[str, str]]:
    """The URLs of the owner and of the service's role. Whatever ends the block, the server is stopped."""
    cluster = EmbeddedPostgres(UNSAFE)
    starting = asyncio.ensure_future(asyncio.to_thread(_start, cluster, root))
    try:
        # A thread cannot be cancelled: it is waited for, so that there is no server after the stop.
        url = await asyncio.shield(starting)
        yield url, cluster.service_url
    except (faults.ClusterFault, faults.StorageUnavailable) as error:
        raise CallthreadError(f"the bench's database: {error}") from error
    finally:
        await asyncio.wait([starting])
        await asyncio.to_thread(cluster.stop)


def _start(cluster: EmbeddedPostgres, root: Path) -> str:
    url = cluster.start(root)
    migrate.upgrade(url, migrations(), SERVICE_ROLE)
    return url


@contextlib.asynccontextmanager
async def _embedder(folder: Path, model: str | None, vectors_kept: bool) -> AsyncIterator[Embedder | None]:
    found = find_model(model)
    if found is None:
        yield None
        return
    process = EmbedProcess(found, folder / "embedding")
    await process.start()
    try:
        embedder = Embedder(process.socket_path, found.name, wait_s=ANSWER_S)
        async with asyncio.timeout(READY_S):
            while not await embedder.ready():  # noqa: ASYNC110 - another process
                await asyncio.sleep(POLL_S)
        if not vectors_kept:
            yield embedder
            return
        with contextlib.closing(VectorFile(folder / "bench" / "vectors.sqlite")) as kept:
            yield KeptVectors(process.socket_path, found.name, kept, wait_s=ANSWER_S)
    except TimeoutError as error:
        raise CallthreadError(f"the embedding process gave no vector within {READY_S:g} s") from error
    finally:
        await process.stop()


def call_of(dialogue: Dialogue, session: int) -> str:
    """The CallSid that stands for a session."""
    return f"{dialogue.name}-{session}"


def item_of(dialogue: Dialogue, index: int) -> str:
    """The item of a model's session that a page's audio would be, by the page's index."""
    return f"{dialogue.name}-item-{index}"


def silence(text: str) -> bytes:
    """µ-law of no sound, as long as the text takes to say."""
    return b"\xff" * round(len(text.split()) / WORDS_PER_MIN * 60_000 * ULAW_BYTES_PER_MS)


async def remember(
    world: MemoryWorld, dialogue: Dialogue, owner: Owner, step: Step, *, spoken: bool = False
) -> dict[int, int]:
    """Commit the dialogue as calls and do each page's jobs; the page's index in the dialogue by its id.

    `spoken`: with audio of the caller's side, of the right length and without a sound.
    """
    memory = world.memory()
    tools = JobTools(world.store, ExtractiveSummariser(), world.embedder)
    index_of: dict[int, int] = {}
    numbers: dict[str, int] = {}
    for index, page in enumerate(dialogue.pages):
        call_id = call_of(dialogue, page.session)
        if call_id not in numbers:
            await world.store.open_call(call_id, owner.business_id, owner.caller, AGENT_NUMBER, "bench")
        numbers[call_id] = numbers.get(call_id, 0) + 1
        exchange = Exchange(call_id, numbers[call_id], page.said(0), page.said(1))
        if spoken and exchange.user_text:
            audio = silence(exchange.user_text)
            exchange = replace(exchange, user_ulaw=audio, user_item_id=item_of(dialogue, index))
        page_id = await memory.commit(owner, exchange)
        if page_id is None:
            raise CallthreadError(f"{call_id}: two exchanges with number {numbers[call_id]}")
        await process_page(tools, page_id)
        index_of[page_id] = index
        step()
    return index_of
