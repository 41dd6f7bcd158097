"""The work on a message that a caller left: its recording comes to us and leaves Twilio, the business is told once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo

import structlog

from callflows.engine import FlowState, language
from callflows.model import Business
from ivr.core.setup import restore
from ivr.mail import Mail
from ivr.transcribing import NeverWritten, NotWritten, Transcriber
from memory.audio_store import AudioStore
from memory.costs import transcription_usd
from memory.model import Charge, ChargeKind
from memory.notices import VOICEMAIL_LEFT
from memory.store import Store, Voicemail

TEXT_WAIT = timedelta(minutes=10)
"""So long a transcript that cannot be had now is tried again."""
NO_TRANSCRIPT = "There is no transcript: please listen to the recording."

log = structlog.get_logger()


class Recordings(Protocol):
    """Recordings in the telephone network's account. Raises: `TelephonyError`."""

    async def fetch(self, recording_sid: str, account_sid: str = "") -> bytes | None: ...

    async def delete(self, recording_sid: str, account_sid: str | None = "") -> None: ...


class Sender(Protocol):
    """Sends e-mail. Raises: `MailNotSent`."""

    async def send(self, mail: Mail) -> None: ...


@dataclass(frozen=True, slots=True)
class Messages:
    """The job `voicemail.deliver`. Done twice it does no harm: each part is done if it is not done yet."""

    store: Store
    audio: AudioStore
    recordings: Recordings
    businesses: Callable[[], Mapping[str, Business]]
    mailer: Sender | None = None
    transcriber: Transcriber | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def deliver(self, call_sid: str, recording_sid: str) -> None:
        """Raises: `TelephonyError`, `StorageUnavailable`, `MailNotSent`, `NotWritten`: tried again then."""
        message = await self.store.voicemail(call_sid, recording_sid)
        if message is None:  # its caller was erased: nothing of it stays anywhere
            await self.recordings.delete(recording_sid, None)
            return
        wav = await self._kept(message)
        if message.told_at is None:
            await self._tell(await self._written(message, wav), wav)

    async def _kept(self, message: Voicemail) -> bytes:
        """The recording, in our own store and no longer at Twilio."""
        if message.audio_path:
            await self.recordings.delete(message.recording_sid, message.account_sid)
            return await self.audio.get(message.audio_path) or b""
        wav = await self.recordings.fetch(message.recording_sid, message.account_sid)
        if wav is None:
            log.warning("recording_gone", recording_sid=message.recording_sid)
            return b""
        path = audio_path(message)
        await self.audio.put(path, wav)
        if not await self.store.save_voicemail_audio(message, path):
            await self.audio.delete(path)
        await self.recordings.delete(message.recording_sid, message.account_sid)
        return wav

    async def _written(self, message: Voicemail, wav: bytes) -> Voicemail:
        """The message with what was said, if that is wanted and can be had."""
        if not (message.wants_text and wav and self.transcriber) or message.transcript:
            return message
        try:
            text = await self.transcriber.text(wav, await self._language(message))
        except NotWritten:
            if self.now() - message.created_at <= TEXT_WAIT:
                raise
            log.warning("message_not_transcribed", business=message.business_id, reason="too_late")
            return message
        except NeverWritten as error:
            log.warning("message_not_transcribed", business=message.business_id, reason=str(error))
            return message
        await self._pay(message, self.transcriber.model)
        await self.store.save_voicemail_text(message, text)
        return replace(message, transcript=text)

    async def _language(self, message: Voicemail) -> str:
        """The language its call was in."""
        business = self.businesses().get(message.business_id)
        row = await self.store.get_call(message.call_sid)
        if business is None or row is None:
            return "en-US"
        return language(business, FlowState.from_json(restore(row.snapshot).flow_json, business))

    async def _pay(self, message: Voicemail, model: str) -> None:
        """Before it is saved: made again after a crash, it is paid for again, but counted once."""
        if model:
            usd = transcription_usd(message.duration_s * 1_000, model)
            charge_id = f"message-{message.recording_sid}"
            charge = Charge(charge_id, ChargeKind.TRANSCRIPTION, model, usd, self.now())
            await self.store.add_charge(message.business_id, message.call_sid, charge)

    async def _tell(self, message: Voicemail, wav: bytes) -> None:
        body: dict[str, dict[str, Any]] = {
            "recording": {"id": message.recording_sid, "duration_s": message.duration_s}
        }
        if message.wants_text:
            body["recording"]["transcript"] = message.transcript or None
        sid = message.recording_sid
        await self.store.add_notice(message.business_id, message.call_sid, VOICEMAIL_LEFT, sid, body)
        business = self.businesses().get(message.business_id)
        to = business.notices.email if business is not None else ()
        if business is not None and to and self.mailer is not None:
            await self.mailer.send(notice(business, message, wav))
        elif to:
            log.warning(
                "no_mail_server", business=message.business_id, hint="set IVR_SMTP_URL and IVR_MAIL_FROM"
            )
        await self.store.voicemail_told(message)
        log.info("voicemail_kept", business=message.business_id, is_told=bool(to and self.mailer))


def audio_path(message: Voicemail) -> str:
    """Where a message lies in the audio store: beside the pages of its call."""
    folder = "/".join(
        quote(part, safe="").replace(".", "%2E") for part in (message.business_id, message.call_sid)
    )
    return f"{folder}/message-{quote(message.recording_sid, safe='')}.wav"


def notice(business: Business, message: Voicemail, wav: bytes) -> Mail:
    """What the business is written."""
    when = message.created_at.astimezone(ZoneInfo(business.timezone)).strftime("%Y-%m-%d %H:%M")
    caller = message.caller or "a withheld number"
    said = f"\n\nWhat was said, as a machine understood it:\n{message.transcript}"
    if not message.transcript:
        said = f"\n\n{NO_TRANSCRIPT}" if message.wants_text else ""
    text = f"{caller} left a message of {message.duration_s} s at {when}.{said}\n"
    subject = f"{business.name}: a message of {message.duration_s} s"
    return Mail(business.notices.email, subject, text, message.recording_sid, wav)
