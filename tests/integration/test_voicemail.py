"""Messages that callers left: noted once, fetched, told of once, erased with their caller. On a real database."""

import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from callflows.parse import parse_text
from ivr.adapters.twilio_accounts import TwilioAccounts
from ivr.adapters.twilio_recordings import TwilioRecordings
from ivr.errors import CallthreadError, TelephonyError
from ivr.mail import Mailer, MailNotSent
from ivr.messages_cli import show_message
from ivr.phone.rest import FakeTwilioRest
from ivr.settings import Settings
from ivr.transcribing import NotWritten, ServerTranscriber
from ivr.voicemail import NO_TRANSCRIPT, TEXT_WAIT, Messages
from ivr.web.deps import Ended, GoOn, RecordingReport
from memory.audio_store import AudioStore
from memory.calls import CallStatus
from memory.embedded import conninfo_of
from memory.jobqueue import VOICEMAIL
from memory.jobs import JobTools, run_pending
from memory.model import Owner
from memory.store import Store
from memory.summarise import ExtractiveSummariser
from tests.integration.scribe_double import Scribe
from tests.integration.smtp_double import MailServer
from tests.integration.test_transfers import left, registry
from tests.unit.callflows.test_voicemail import SHOP

BUSINESS = parse_text(SHOP.replace("id: shop", "id: help"), "help.yaml")
CALLER = "+12025550144"
WAV = b"RIFF a message"


def messages(store: Store, folder: Path, rest: FakeTwilioRest, mail: MailServer | None) -> Messages:
    """The work, with doubles of Twilio and of a mail server."""
    return Messages(
        store,
        AudioStore(f"file://{folder}"),
        TwilioRecordings(TwilioAccounts(rest.account_sid, "token", rest.base_url)),
        lambda: {"help": BUSINESS},
        Mailer(mail.url, "calls@example.com") if mail is not None else None,
    )


async def test_b070_one_message_and_one_notice_however_often_it_is_told_of(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    await left(store, "CA1", "3")
    worker = registry(store)
    words = RecordingReport("CA1", "RE1", transcript="Please call me back.", wants_text=True)
    there = RecordingReport("CA1", "RE1", 7, wants_text=True)
    async with FakeTwilioRest(auth_token="token") as rest, MailServer() as mail:
        rest.recordings["RE1"] = WAV
        work = messages(store, tmp_path, rest, mail)
        tools = JobTools(store, ExtractiveSummariser(), others={VOICEMAIL: work.deliver})
        for report in (words, there, there, there, words):
            await worker.recording(report)
        await run_pending(database_url, tools)
        await worker.recording(there)
        await worker.recording(words)
        await run_pending(database_url, tools)
        await work.deliver("CA1", "RE1")
        assert rest.recordings == {}
        (told,) = mail.mails
    assert (told["To"], told["Message-ID"]) == ("shop@example.com", "<RE1@callthread>")
    body = told.get_body()
    assert body is not None
    assert CALLER in body.get_content()
    assert "Please call me back." in body.get_content()
    assert [part.get_content() for part in told.iter_attachments()] == [WAV]
    assert not await store.add_notice("help", "CA1", "voicemail", "RE1")  # webhooks have been told
    (message,) = await store.list_voicemails("help")
    assert (message.duration_s, message.caller, message.transcript) == (7, CALLER, "Please call me back.")
    assert message.told_at is not None
    assert (tmp_path / message.audio_path).read_bytes() == WAV


def after_the_wait() -> datetime:
    """When nobody waits any more."""
    return datetime.now(UTC) + TEXT_WAIT + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("status", "mails_at_once"),
    [(200, 1), (503, 0), (429, 0), (401, 1), (404, 1)],
    ids=["written", "down", "busy", "refused", "no such endpoint"],
)
async def test_what_was_said_is_written_down_by_our_own_model(
    store: Store, tmp_path: Path, status: int, mails_at_once: int
) -> None:
    """OpenAI's API reference: multipart with `file`, `model` and `language`; the answer's `text`. Tried again, but not
    for ever, where that may help; without it the notice says so.
    """
    await left(store, "CA1", "3")
    await registry(store).recording(RecordingReport("CA1", "RE1", 60, wants_text=True))
    async with FakeTwilioRest(auth_token="token") as rest, MailServer() as mail, Scribe(status) as scribe:
        rest.recordings["RE1"] = WAV
        own = ServerTranscriber("gpt-transcribe", "a key", scribe.url)
        work = replace(messages(store, tmp_path, rest, mail), transcriber=own)
        with contextlib.nullcontext() if mails_at_once else pytest.raises(NotWritten):
            await work.deliver("CA1", "RE1")
        assert (len(mail.mails), rest.recordings) == (mails_at_once, {})
        await replace(work, now=after_the_wait).deliver("CA1", "RE1")
        (told,) = mail.mails
    body = told.get_body()
    assert body is not None
    assert scribe.asked[0] == {
        "model": "gpt-transcribe",
        "language": "en",
        "file": WAV,
        "key": "Bearer a key",
    }
    (message,) = await store.list_voicemails("help")
    spent = await store.spent_in_call("help", "CA1")
    if status == 200:
        assert "Please call me back." in body.get_content()
        assert (message.transcript, round(spent, 4)) == (
            "Please call me back.",
            0.006,
        )  # a minute, by the table
    else:
        assert NO_TRANSCRIPT in body.get_content()
        assert (message.transcript, spent) == ("", 0)


async def test_without_a_model_the_notice_says_that_there_is_no_transcript(
    store: Store, tmp_path: Path
) -> None:
    await left(store, "CA1", "3")
    await registry(store).recording(RecordingReport("CA1", "RE1", 7, wants_text=True))
    async with FakeTwilioRest(auth_token="token") as rest, MailServer() as mail:
        rest.recordings["RE1"] = WAV
        await messages(store, tmp_path, rest, mail).deliver("CA1", "RE1")
        body = mail.mails[0].get_body()
    assert body is not None
    assert NO_TRANSCRIPT in body.get_content()


async def test_the_job_that_was_given_up_is_found_again(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    await left(store, "CA1", "3")
    await registry(store).recording(RecordingReport("CA1", "RE1", 7))
    async with FakeTwilioRest(auth_token="token") as rest:
        rest.recordings["RE1"] = WAV
        work = messages(store, tmp_path, rest, None)
        await run_pending(database_url, JobTools(store, ExtractiveSummariser(), others={VOICEMAIL: lost}))
        assert await store.requeue_voicemails(datetime.now(UTC) - TEXT_WAIT) == 1
        assert (
            await store.requeue_voicemails(datetime.now(UTC) - TEXT_WAIT) == 1
        )  # it waits, and is queued once
        tools = JobTools(store, ExtractiveSummariser(), others={VOICEMAIL: work.deliver})
        await run_pending(database_url, tools)
        assert await store.requeue_voicemails(datetime.now(UTC) - TEXT_WAIT) == 0
    (message,) = await store.list_voicemails("help")
    assert message.told_at is not None


async def lost(**_: str) -> None:
    """A job that ended without having done its work."""


async def test_the_command_shows_a_message_and_what_was_said(
    store: Store, service_url: str, tmp_path: Path
) -> None:
    (tmp_path / "help.yaml").write_text(SHOP.replace("id: shop", "id: help"))
    settings = Settings.load({"IVR_CALLFLOWS": str(tmp_path), "IVR_DATABASE_URL": conninfo_of(service_url)})
    await left(store, "CA1", "3")
    worker = registry(store)
    await worker.recording(RecordingReport("CA1", "RE1", 7, transcript="Call [me].", wants_text=True))
    await worker.recording(RecordingReport("CA1", "RE2", 7, wants_text=True))
    await worker.recording(RecordingReport("CA1", "RE3", 7))

    async def shown(recording: str) -> str:
        out = StringIO()
        await show_message(settings, Console(file=out, width=200), "help", recording)
        return out.getvalue()

    assert "Call [me]." in await shown("RE1")
    assert "not written down yet" in await shown("RE2")
    assert "transcribe: true" in await shown("RE3")
    assert CALLER not in await shown("RE1")
    with pytest.raises(CallthreadError, match="has no message 'RE9'"):
        await shown("RE9")


async def test_what_fails_is_tried_again(store: Store, tmp_path: Path) -> None:
    await left(store, "CA1", "3")
    await registry(store).recording(RecordingReport("CA1", "RE1", 7))
    async with FakeTwilioRest(auth_token="token") as rest, MailServer() as mail:
        rest.recordings["RE1"] = WAV
        work = messages(store, tmp_path, rest, mail)
        mail.refuses = True
        with pytest.raises(MailNotSent):
            await work.deliver("CA1", "RE1")
        mail.refuses = False
        await work.deliver("CA1", "RE1")
        assert len(mail.mails) == 1
        refused = TwilioRecordings(TwilioAccounts(rest.account_sid, "another token", rest.base_url))
        with pytest.raises(TelephonyError, match="HTTP 401"):
            await refused.fetch("RE2")
        with pytest.raises(TelephonyError, match="HTTP 401"):
            await refused.delete("RE2")
    with pytest.raises(TelephonyError, match="set TWILIO_ACCOUNT_SID"):
        await TwilioRecordings(TwilioAccounts(None, None)).fetch("RE1")
    with pytest.raises(TelephonyError, match="cannot be reached"):
        await TwilioRecordings(TwilioAccounts("AC1", "token", "http://127.0.0.1:9")).fetch("RE1")


async def test_a_caller_who_is_erased_leaves_no_message_anywhere(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    for no in (1, 2):
        await left(store, f"CA{no}", "3")
        await registry(store).recording(RecordingReport(f"CA{no}", f"RE{no}", 7))
    async with FakeTwilioRest(auth_token="token") as rest:
        rest.recordings |= {"RE1": WAV, "RE2": WAV}
        work = messages(store, tmp_path, rest, None)
        await work.deliver("CA1", "RE1")
        erased, _ = await store.forget(Owner("help", CALLER))
        assert (erased.calls, erased.files) == (2, 1)
        tools = JobTools(store, ExtractiveSummariser(), others={VOICEMAIL: work.deliver})
        await run_pending(database_url, tools)
        assert rest.recordings == {}
    assert await store.list_voicemails("help") == []
    assert [file.path for file in await store.doomed(10)] == ["help/CA1/message-RE1.wav"]
    await registry(store).recording(RecordingReport("CA1", "RE1", 7))
    assert await store.list_voicemails("help") == []


async def test_a_call_is_back_after_the_tone_or_over(store: Store) -> None:
    shop = SHOP.replace("id: shop", "id: help")
    await store.save_flow("shop", shop)
    worker = registry(store)
    for call_sid in ("CA1", "CA2", "CA3"):
        await left(store, call_sid, "1", "shop", shop)
    said = Ended("Thank you. Goodbye.")
    assert await worker.message_left("CA1", 1, is_empty=False, call_over=False) == said
    assert await worker.message_left("CA1", 1, is_empty=False, call_over=False) == Ended()
    assert await worker.message_left("CA2", 1, is_empty=False, call_over=True) == Ended()
    assert await worker.message_left("CA3", 1, is_empty=True, call_over=False) == GoOn()
    rows = [await store.get_call(call_sid) for call_sid in ("CA1", "CA2", "CA3")]
    statuses = [CallStatus.FINISHED, CallStatus.FINISHED, CallStatus.ACTIVE]
    assert [row.status for row in rows if row is not None] == statuses
