"""`ivr worker`: the background jobs in a process of their own."""

import asyncio
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

from callflows.parse import load_folder
from ivr.accounts import accounts_of
from ivr.adapters.outgoing_http import OutgoingHttp
from ivr.adapters.twilio_outward import TwilioOutward
from ivr.adapters.twilio_recordings import TwilioRecordings
from ivr.callers import ledger_path
from ivr.foundations import audio_store, database, embedding_model, embedding_process, flow_folder
from ivr.mail import Mailer
from ivr.orders import Orders
from ivr.returns import Returns
from ivr.settings import Settings
from ivr.shelf import FlowShelf
from ivr.toolbox import FlowSecrets
from ivr.transcribing import transcriber_of
from ivr.voicemail import Messages
from ivr.webhooks import WebhookSender
from memory.audio_store import AudioStore
from memory.embed import Embedder
from memory.jobqueue import ORDER, VOICEMAIL
from memory.jobs import JobTools, run_worker
from memory.ledger import Ledger
from memory.store import Store
from memory.summarise import ChatModel, ChatSummariser, ExtractiveSummariser, Summariser


async def run_jobs(settings: Settings, embedding_socket: Path | None) -> None:
    """Work until SIGTERM or SIGINT. With a socket, embed by the process that listens there; else start one."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(database(settings))
        embedder = await _embedder(stack, settings, embedding_socket)
        store = Store(url)
        stack.push_async_callback(store.close)
        http = await stack.enter_async_context(OutgoingHttp(settings.private_hosts))
        shelf = FlowShelf(flow_folder(settings))
        sender = WebhookSender(shelf, http, FlowSecrets(settings.flow_environment))
        ledger = Ledger(ledger_path(settings))
        audio = audio_store(settings)
        others = {
            VOICEMAIL: messages(settings, store, audio).deliver,
            ORDER: orders(settings, store).carry_out,
        }
        tools = JobTools(
            store,
            summariser(settings),
            embedder,
            audio,
            retention(settings),
            sender,
            ledger.add,
            others,
        )
        await run_worker(url, tools, stop)


async def _embedder(stack: AsyncExitStack, settings: Settings, socket: Path | None) -> Embedder | None:
    if socket is None:
        process = await stack.enter_async_context(embedding_process(settings))
        return process.client() if process else None
    model = embedding_model(settings)
    return Embedder(socket, model.name) if model else None


def messages(settings: Settings, store: Store, audio: AudioStore) -> Messages:
    """The work on callers' messages."""
    smtp, recordings = settings.smtp_url, TwilioRecordings(accounts_of(settings))
    mailer = Mailer(smtp.get_secret_value(), settings.mail_from) if smtp is not None else None
    folder, transcriber = flow_folder(settings), transcriber_of(settings)
    return Messages(store, audio, recordings, lambda: load_folder(folder).businesses, mailer, transcriber)


def orders(settings: Settings, store: Store) -> Orders:
    """The work on what was ordered beside calls."""
    outward = TwilioOutward(accounts_of(settings))
    returns = Returns(store, lambda: load_folder(flow_folder(settings)).businesses)
    return Orders(store, outward, settings.public_url or "", returns)


def retention(settings: Settings) -> dict[str, timedelta]:
    """How long each business keeps its calls, for those that say so. Raises: `FlowErrors`."""
    businesses = load_folder(flow_folder(settings)).businesses.values()
    return {b.id: timedelta(days=b.retention_days) for b in businesses if b.retention_days is not None}


def summariser(settings: Settings) -> Summariser:
    """A chat model where there is a key, or a server that needs none; extractive without either."""
    key, base_url = settings.openai_api_key, settings.openai_base_url
    if key is None and base_url is None:
        return ExtractiveSummariser()
    secret = key.get_secret_value() if key is not None else "none"
    return ChatSummariser(ChatModel(settings.summary_model, secret, base_url))
