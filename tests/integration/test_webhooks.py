"""Webhooks of a business: signed, told once by a job that does not give up, over a real socket and database."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
import pytest_asyncio
from aiohttp import web
from pydantic import SecretStr
from structlog.testing import capture_logs

from ivr.adapters.outgoing_http import OutgoingHttp
from ivr.shelf import FlowShelf
from ivr.toolbox import FlowSecrets
from ivr.webhooks import WebhookSender
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.jobs import JobTools, run_pending
from memory.model import CallSnapshot, Charge, ChargeKind, Exchange, Owner
from memory.notices import MESSAGE_TAKES, VOICEMAIL_LEFT, NotSent, send_notice, sweep_notices
from memory.store import AudioPaths, Store
from memory.store_notices import CALL_ENDED
from memory.summarise import ExtractiveSummariser

ANA = Owner("bakery", "+12025550111")
TO = "+16175550101"
FLOW = """\
id: bakery
name: Bakery
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello.
allow_hosts: [127.0.0.1]
webhooks:
  - {url: "URL/calls", secret: "${HOOK_SECRET}"}
start: main
nodes:
  main: {type: talk, instructions: Help.}
"""


@dataclass
class Receiver:
    """A business's system. `statuses`: what it answers, then 200."""

    url: str = ""
    got: list[tuple[web.Request, bytes]] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    async def handle(self, request: web.Request) -> web.Response:
        self.got.append((request, await request.read()))
        return web.Response(status=self.statuses.pop(0) if self.statuses else 200)

    def messages(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]


@pytest_asyncio.fixture
async def receiver() -> AsyncIterator[Receiver]:
    made = Receiver()
    app = web.Application()
    app.router.add_post("/calls", made.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


@pytest_asyncio.fixture
async def sender(receiver: Receiver, tmp_path: Path) -> AsyncIterator[WebhookSender]:
    async with OutgoingHttp(["127.0.0.1"]) as http:
        yield made(receiver, tmp_path, http)


def made(receiver: Receiver, folder: Path, http: OutgoingHttp, flow: str = FLOW) -> WebhookSender:
    (folder / "bakery.yaml").write_text(flow.replace("URL", receiver.url))
    secrets = FlowSecrets({"HOOK_SECRET": SecretStr("hush-hush")})
    return WebhookSender(FlowShelf(folder), http, secrets, now_s=lambda: 1_700_000_000)


async def ended_call(store: Store, call_sid: str = "CA1", status: CallStatus = CallStatus.FINISHED) -> int:
    await store.open_call(call_sid, ANA.business_id, ANA.caller, TO, "hash")
    epoch = await store.claim_stream(call_sid, "MZ1")
    exchange = Exchange(call_sid, 1, "Two rye loaves for Friday.", "Certainly.")
    await store.commit_page(ANA, exchange, AudioPaths())
    charge = Charge(f"{call_sid}/1", ChargeKind.SPEECH, "m", 0.0123, datetime.now(UTC))
    await store.add_charge(ANA.business_id, call_sid, charge)
    state = {"flow": {"node": "main", "slots": {"party": 4}, "target": ""}}
    await store.save_snapshot(call_sid, epoch, CallSnapshot(1, state))
    await store.end_call(call_sid, status, epoch)
    return epoch


def tools(store: Store, sender: WebhookSender) -> JobTools:
    return JobTools(store, ExtractiveSummariser(), notifier=sender)


async def rows(url: str, query: LiteralString) -> list[tuple[Any, ...]]:
    def read() -> list[tuple[Any, ...]]:
        with psycopg.connect(conninfo_of(url), autocommit=True) as connection:
            return connection.execute(query).fetchall()

    return await asyncio.to_thread(read)


async def notice_ids(url: str) -> list[int]:
    return [row[0] for row in await rows(url, "SELECT notice_id FROM notices ORDER BY 1")]


async def test_the_end_of_a_call_is_told_once_signed_and_complete(
    store: Store, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await ended_call(store)
    assert await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    assert not await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    await run_pending(service_url, tools(store, sender))
    await run_pending(service_url, tools(store, sender))
    ((request, body),) = receiver.got
    key = request.headers["Idempotency-Key"]
    signed = f"1700000000.{key}.POST.{receiver.url}/calls.".encode() + body
    mac = hmac.new(b"hush-hush", signed, hashlib.sha256).hexdigest()
    assert request.headers["Callthread-Signature"] == f"t=1700000000,v1={mac}"
    (message,) = receiver.messages()
    assert (message["id"], message["event"], message["business"]) == (key, "call_ended", "bakery")
    call = message["call"]
    assert (call["id"], call["caller"], call["number"], call["reason"]) == ("CA1", ANA.caller, TO, "finished")
    assert (call["turns"], call["cost_usd"], call["slots"]) == (1, 0.0123, {"party": 4})
    assert "Two rye loaves for Friday." in call["summary"]
    assert call["duration_s"] >= 0


async def test_what_was_not_taken_is_told_again_with_the_same_id(
    store: Store, database_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await ended_call(store)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    (notice_id,) = await notice_ids(database_url)
    receiver.statuses = [500, 404]
    for _ in range(2):
        with pytest.raises(NotSent):
            await send_notice(store, sender, notice_id)
    await send_notice(store, sender, notice_id)
    await send_notice(store, sender, notice_id)
    assert len({message["id"] for message in receiver.messages()}) == 1
    assert len(receiver.got) == 3


async def test_a_job_that_failed_waits_longer_each_time(
    store: Store, database_url: str, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await ended_call(store)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    receiver.statuses = [500]
    with capture_logs():
        await run_pending(service_url, tools(store, sender))
    jobs = await rows(
        database_url,
        "SELECT status::text, attempts, scheduled_at > now() FROM procrastinate_jobs"
        " WHERE task_name = 'memory.send_notice'",
    )
    assert jobs == [("todo", 1, True)]


async def test_a_call_whose_worker_died_is_told_of_too(
    store: Store, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    await ended_call(store, "CA1", CallStatus.DROPPED)
    await store.open_call("CA2", "bakery", ANA.caller, TO, "hash")  # under way
    now = datetime.now(UTC)
    assert await sweep_notices(store, sender, now) == 1
    assert await sweep_notices(store, sender, now) == 1  # still waiting, and queued once
    await run_pending(service_url, tools(store, sender))
    assert [message["call"]["reason"] for message in receiver.messages()] == ["dropped"]
    assert await sweep_notices(store, sender, now) == 0
    assert await sweep_notices(store, sender, now + timedelta(days=2)) == 0


async def test_a_call_that_came_back_from_a_transfer_is_told_of_at_its_end(
    store: Store, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await ended_call(store, status=CallStatus.TRANSFERRED)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    row = await store.get_call("CA1")
    assert row is not None
    assert await store.return_call("CA1", row.snapshot, CallSnapshot(1, {}), CallStatus.ACTIVE)
    await run_pending(service_url, tools(store, sender))
    assert receiver.got == []
    epoch = await store.claim_stream("CA1", "MZ2")
    await store.end_call("CA1", CallStatus.FINISHED, epoch)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    await run_pending(service_url, tools(store, sender))
    assert [message["call"]["reason"] for message in receiver.messages()] == ["finished"]


async def test_b070_one_recording_is_one_notice(
    store: Store, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    await ended_call(store)
    body = {"recording": {"id": "RE1", "duration_s": 12}}
    added = [await store.add_notice("bakery", "CA1", "voicemail", "RE1", body) for _ in range(3)]
    assert added == [True, False, False]
    await run_pending(service_url, tools(store, sender))
    (message,) = receiver.messages()
    assert (message["event"], message["recording"]) == ("voicemail", body["recording"])


async def test_a_caller_who_is_erased_is_told_of_no_more(
    store: Store, database_url: str, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await ended_call(store)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    await store.forget(ANA)
    await run_pending(service_url, tools(store, sender))
    assert receiver.got == []
    assert await notice_ids(database_url) == []


async def test_private_addresses_are_for_development_only(
    store: Store, database_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    epoch = await ended_call(store)
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    async with OutgoingHttp() as http:
        with pytest.raises(NotSent, match="private address"):
            await send_notice(store, made(receiver, tmp_path, http), (await notice_ids(database_url))[0])
    assert receiver.got == []


async def test_a_call_that_leaves_a_message_is_told_of_once_when_that_is_done(
    store: Store, database_url: str, service_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    """Not while the message is being spoken; with the end it came to; also if its worker died in between."""
    epoch = await leaves_message(store, "CA1")
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    await leaves_message(store, "CA2")  # its worker died before it could note the end
    now = datetime.now(UTC)
    for _ in range(2):
        await sweep_notices(store, sender, now)
        await run_pending(service_url, tools(store, sender))
    assert receiver.got == []
    for call_sid in ("CA1", "CA2"):
        row = await store.get_call(call_sid)
        assert row is not None
        done = CallSnapshot(1, {"flow": {"node": "thanks", "slots": {}, "ended": "hung_up"}})
        assert await store.return_call(call_sid, row.snapshot, done, CallStatus.FINISHED)
    for _ in range(2):
        await sweep_notices(store, sender, now)
        await run_pending(service_url, tools(store, sender))
    told = {message["call"]["id"]: message["call"]["reason"] for message in receiver.messages()}
    assert told == {"CA1": "finished", "CA2": "finished"}
    assert len(receiver.got) == 2


async def test_a_message_whose_end_nobody_tells_is_not_waited_for_for_ever(
    store: Store, database_url: str, receiver: Receiver, sender: WebhookSender
) -> None:
    epoch = await leaves_message(store, "CA1")
    await store.add_notice("bakery", "CA1", CALL_ENDED, str(epoch))
    (notice_id,) = await notice_ids(database_url)
    late = datetime.now(UTC) + MESSAGE_TAKES
    await send_notice(store, sender, notice_id, late - timedelta(minutes=1))
    assert receiver.got == []
    await send_notice(store, sender, notice_id, late + timedelta(minutes=1))
    told = [(message["call"]["id"], message["call"]["reason"]) for message in receiver.messages()]
    assert told == [("CA1", "finished")]  # nobody was connected with anybody
    row = await store.get_call("CA1")
    assert row is not None and (row.ending, row.brief_ending) == ("left a message", "message")


async def test_a_business_that_wants_messages_only_is_told_of_those_nobody_told(
    store: Store, service_url: str, receiver: Receiver, tmp_path: Path
) -> None:
    await ended_call(store)
    async with OutgoingHttp(["127.0.0.1"]) as http:
        only = FLOW.replace('SECRET}"}', 'SECRET}", events: [voicemail]}')
        sender = made(receiver, tmp_path, http, only)
        await store.add_notice("bakery", "CA1", VOICEMAIL_LEFT, "RE1", {"recording": {"id": "RE1"}})
        await run_pending(service_url, JobTools(store, ExtractiveSummariser()))  # its job came to nothing
        assert await sweep_notices(store, sender, datetime.now(UTC)) == 1
        await run_pending(service_url, tools(store, sender))
        assert [message["event"] for message in receiver.messages()] == ["voicemail"]
        assert await sweep_notices(store, sender, datetime.now(UTC)) == 0


async def leaves_message(store: Store, call_sid: str) -> int:
    """A call that has left its stream for a message. Returns its epoch."""
    await store.open_call(call_sid, ANA.business_id, ANA.caller, TO, "hash")
    epoch = await store.claim_stream(call_sid, "MZ1")
    state = {"flow": {"node": "message", "slots": {}, "ended": "voicemail"}}
    await store.save_snapshot(call_sid, epoch, CallSnapshot(1, state))
    await store.end_call(call_sid, CallStatus.TRANSFERRED, epoch)
    return epoch
