"""The composition root: settings in, a running service out. Everything is made here, and nowhere else."""

import asyncio
import gc
import secrets
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import structlog

from ivr.accounts import account_in, accounts_of
from ivr.adapters.openai_realtime import RealtimeServer
from ivr.adapters.outgoing_http import OutgoingHttp
from ivr.adapters.twilio_rest import TwilioTelephony
from ivr.audio.prompts import PromptCache
from ivr.callers import ledger_path
from ivr.core.commands import ExactWords
from ivr.core.setup import Tuning
from ivr.errors import CallthreadError
from ivr.foundations import (
    audio_store,
    database,
    embedding_process,
    flow_folder,
    speech_endpoint,
    speech_model,
)
from ivr.models import ModelChoice
from ivr.observe import Metrics
from ivr.pacing import MonotonicClock, Pacer
from ivr.pins import Pins
from ivr.preloading import Preloading
from ivr.processes import background, keep_running
from ivr.reception import Parts, Reception
from ivr.reembed import check_vectors
from ivr.registry import Businesses, Registry
from ivr.remembering import Prices
from ivr.server import make_server
from ivr.settings import SANDBOX, ModelSource, Settings
from ivr.shelf import FlowShelf
from ivr.spool import SpoolFolder
from ivr.spooling import Spool
from ivr.toolbox import FlowSecrets, Toolbox
from ivr.voicebook import voices_of
from ivr.voicing import Prepared, Voicing, words_of
from ivr.web.deps import Readiness, WebDeps
from ivr.web.routes import create_app
from ivr.web.slots import CallSlots
from ivr.wire.signature import SignatureChecker
from ivr.wire.tokens import StreamTokens
from memory import errors as faults
from memory.embedded import conninfo_of
from memory.facts import Document, passages
from memory.ledger import Ledger
from memory.migrate import isolation_fault
from memory.service import Memory
from memory.store import WORKER_PREFIX, Store

SANDBOX_TRANSCRIPT_WAIT_MS = 2_500
"""The sandbox answers only once its own transcript is there, so waiting for it costs nothing."""

LEAVE_BEFORE_END_S = 10.0
"""Calls that are still there are handed over so long before IVR_DRAIN_S is over, to leave at a quiet moment."""
LINGER_S = 2.0
"""After the last stream is closed Twilio asks the continue URL, and is to find somebody there."""
DRAIN_PAUSE_S = 2
RESTART_PAUSE_S = 15
"""A caller whose worker was alone waits so long for the next one: starting takes some seconds."""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What `ivr serve` was told beside the environment."""

    host: str = "127.0.0.1"
    port: int = 8080
    with_worker: bool = True


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
    shelf = FlowShelf(flow_folder(settings))
    audio = audio_store(settings)
    async with AsyncExitStack() as stack:
        # First of all, so that a service started twice says so at once.
        listening = stack.enter_context(bind(options.host, options.port))
        url = await stack.enter_async_context(database(settings))
        model = await stack.enter_async_context(speech_model(settings))
        voicing = await stack.enter_async_context(speech_endpoint(settings))
        store = Store(url, name=worker_name())
        stack.push_async_callback(store.close)
        embedding = await stack.enter_async_context(embedding_process(settings))
        memory = Memory(store, audio, embedding.client() if embedding else None)
        if options.with_worker:
            # It shares our embedding process: a second one would cost another 500 MB.
            embed_socket = ["--embedding-socket", str(embedding.socket_path)] if embedding else []
            env = {"IVR_DATABASE_URL": conninfo_of(url)}
            if settings.model_source is ModelSource.SANDBOX:
                env["IVR_REALTIME_URL"] = SANDBOX  # also where `--sandbox` said so
            await background(stack, keep_running(["ivr", "worker", *embed_socket], env, "worker"))
        service = Service(settings, options, shelf, store, memory, model, voicing)
        if await asyncio.to_thread(isolation_fault, url) is not None:
            service.warn("businesses_not_isolated")
        if embedding is not None:
            await background(stack, check_vectors(store, embedding.client(), service.warn))
        await service.run(stack, listening, on_ready)


def worker_name() -> str:
    """This worker's name at the database, by which others see that it is there."""
    return f"{WORKER_PREFIX}{secrets.token_hex(6)}"


def prompts_beside(flows: Path) -> Callable[[str], bytes]:
    """Reads the businesses' sound files, whose paths are relative to the flow files' folder."""
    cache, folder = PromptCache(), flows if flows.is_dir() else flows.parent
    return lambda path: cache.ulaw(folder / path)


class Service:
    """One worker: its calls, its web part, its drain."""

    def __init__(
        self,
        settings: Settings,
        options: ServeOptions,
        book: FlowShelf,
        store: Store,
        memory: Memory,
        model: RealtimeServer,
        voicing: Voicing | None = None,
    ) -> None:
        self._settings = settings
        self._options = options
        self.book = book
        """The flows in use."""
        self._store = store
        self._warnings: tuple[str, ...] = ()
        self._draining = False
        self._is_alone = False
        self._handing_over: asyncio.Task[None] | None = None
        self._clock = MonotonicClock()
        self._pacer = Pacer(self._clock)
        self._http = OutgoingHttp(settings.private_hosts)
        self._secrets = FlowSecrets(settings.flow_environment)
        self._slots = CallSlots(settings.max_calls)
        self._metrics = Metrics()
        has_rest = settings.twilio_account_sid is not None and settings.twilio_auth_token is not None
        public_url = settings.public_url if has_rest else None
        self._preloading = Preloading(memory)
        self._registry = Registry(
            store,
            book,
            TwilioTelephony(accounts_of(settings), account_in(store)),
            public_url,
            expect=self._preloading.expect,
            sound=prompts_beside(flow_folder(settings)),
            check_pin=Pins(store, settings.pin_pepper).check,
        )
        self._voicing = voicing
        self._prepared = Prepared(voicing, self._fixed_words) if voicing else None
        prices = Prices(model.profile.model, settings.transcribe_model, settings.speech_model)
        self._spool = Spool(SpoolFolder(settings.data_dir / "spool"), memory, store, prices)
        self._reception = Reception(self._parts(memory, model, prices))
        self.server = make_server(
            create_app(self._deps()),
            options.host,
            options.port,
            on_drain=self._drain,
            drained=self._drained,
            drain_s=settings.drain_s,
        )
        """`server.begin_drain()` stops it as a SIGTERM does."""

    def _parts(self, memory: Memory, model: RealtimeServer, prices: Prices) -> Parts:
        """What its calls work with."""
        settings = self._settings
        is_sandbox = settings.model_source is ModelSource.SANDBOX
        choice = ModelChoice(model, prices, is_only=is_sandbox)
        return Parts(
            book=self.book,
            store=self._store,
            memory=memory,
            registry=self._registry,
            preloading=self._preloading,
            metrics=self._metrics,
            clock=self._clock,
            pacer=self._pacer,
            new_model=choice.link,
            prices=choice.prices_of,
            spool=self._spool,
            tuning=Tuning(transcript_wait_ms=SANDBOX_TRANSCRIPT_WAIT_MS) if is_sandbox else Tuning(),
            voices=voices_of(settings.model_source, settings.voice_profile),
            prompt=prompts_beside(flow_folder(settings)),
            speech=self._voicing,
            tools=Toolbox(self._http, self._secrets),
            pepper=settings.pin_pepper,
        )

    def warn(self, name: str) -> None:
        """Show at `/readyz` that something works which should not be left as it is."""
        self._warnings = (*self._warnings, name)

    async def run(
        self, stack: AsyncExitStack, listening: socket.socket, on_ready: Callable[[str], None]
    ) -> None:
        """Keep the flows, listen on a bound socket, serve until drained."""
        await self._keep_flows()
        stack.push_async_callback(self._registry.liveness.close)
        stack.push_async_callback(self._preloading.close)
        stack.push_async_callback(self._registry.rescue.close)
        await self._erase_again()
        await stack.enter_async_context(self._http)
        await background(stack, self._registry.liveness.run())
        await background(stack, self._reception.hours.run())
        await background(stack, self.book.watch(self._keep_flows))
        await background(stack, self._spool.run())
        await background(stack, self._pacer.run())
        if self._prepared is not None:
            await background(stack, self._prepared.run())
            await self._prepared.first()
        # What is loaded by now stays: scanning it again would stop all calls for 166 ms at a time.
        gc.collect()
        gc.freeze()
        announcing = asyncio.ensure_future(self._announce(on_ready))
        try:
            await self.server.serve([listening])
        finally:
            announcing.cancel()
            if self._handing_over is not None:
                self._handing_over.cancel()

    async def _keep_flows(self) -> None:
        """A call goes on with the flow that it began with, whatever becomes of the file. Documents are the newest."""
        for business_id, business in self.book.businesses.items():
            await self._store.save_flow(self.book.hash_of(business_id), self.book.text_of(business_id))
            pieces = passages(Document(each.title, each.text) for each in business.documents)
            await self._store.replace_facts(business_id, pieces, business.language)
        if self._prepared is not None:
            self._prepared.look_again()

    def _fixed_words(self) -> list[ExactWords]:
        return words_of(self.book.businesses.values())

    async def _erase_again(self) -> None:
        """A restored backup may hold callers who were erased since it was made."""
        entries = Ledger(ledger_path(self._settings)).entries()
        try:
            erased = await self._store.erase_again(entries)
        except faults.StorageUnavailable:
            log.warning("erasures_not_checked")
            return
        if erased.calls:
            log.warning("erased_again", calls=erased.calls, pages=erased.pages)

    async def _announce(self, on_ready: Callable[[str], None]) -> None:
        await self.server.ready.wait()
        on_ready(f"http://{self._options.host}:{self.server.port}")

    def _drain(self) -> None:
        self._draining = True
        self._handing_over = asyncio.create_task(self._hand_over(), name="hand-over")

    async def _hand_over(self) -> None:
        """At once to another worker. With none, calls may go on for as long as there is time."""
        self._is_alone = not await self._has_successor()
        if self._is_alone:
            log.info("draining_alone", hint="no other worker uses this database: live calls may go on")
            drain_s = self._settings.drain_s
            await asyncio.sleep(drain_s - min(LEAVE_BEFORE_END_S, drain_s / 4))
        self._reception.hand_over()

    async def _has_successor(self) -> bool:
        try:
            async with asyncio.timeout(1.0):
                return await self._store.other_workers() > 0
        except (faults.MemoryFault, TimeoutError):
            return False

    async def _drained(self) -> None:
        had_calls = self._slots.streams > 0
        await self._slots.empty()
        if had_calls:
            await asyncio.sleep(LINGER_S)

    def _pause_s(self) -> int:
        return RESTART_PAUSE_S if self._is_alone else DRAIN_PAUSE_S

    def _deps(self) -> WebDeps:
        tokens = (self._settings.twilio_auth_token, self._settings.twilio_secondary_token)
        secret, other = (token.get_secret_value() if token is not None else "" for token in tokens)
        return WebDeps(
            checker=SignatureChecker(
                secret,
                self._settings.public_url,
                self._options.host,
                also=[other],
                subaccounts=self._settings.subaccounts,
            ),
            tokens=StreamTokens(secret, also=[other]),
            metrics=self._metrics,
            slots=self._slots,
            flows=Businesses(self.book),
            calls=self._registry,
            run_call=self._reception.run_call,
            ready=self._ready,
            draining=lambda: self._draining,
            pause_s=self._pause_s,
        )

    async def _ready(self) -> Readiness:
        try:
            async with asyncio.timeout(1.0):
                await self._store.active_calls()
            database_answers = True
        except (faults.MemoryFault, TimeoutError):
            database_answers = False
        flows = bool(self.book.businesses)
        checks = {"database": database_answers, "flows": flows, "accepting": not self._draining}
        changed: tuple[str, ...] = ("flow_files_refused",) if self.book.fault else ()
        names = [name for business in self.book.businesses.values() for name in business.env()]
        changed += ("flow_secrets_missing",) if self._secrets.missing(names) else ()
        changed += ("speech_endpoint_failed",) if self._voicing is not None and self._voicing.rests else ()
        return Readiness(checks, (*self._warnings, *changed))
