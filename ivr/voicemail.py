"""The work on a message that a caller left: its recording comes to us and leaves Twilio, the business is told once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo

import structlog

from callflows.model import Business
from ivr.errors import CallthreadError
from ivr.mail import Mail
from memory.audio_store import AudioStore
from memory.store import Store, Voicemail

VOICEMAIL_LEFT = "voicemail"
"""The event that a business's webhooks are told of."""
TEXT_WAIT = timedelta(minutes=10)
"""So long a transcript is waited for; Twilio's takes a minute or two."""

log = structlog.get_logger()


class Recordings(Protocol):
    """Recordings in the telephone network's account. Raises: `TelephonyError`."""

    async def fetch(self, recording_sid: str) -> bytes | None: ...

    async def delete(self, recording_sid: str) -> None: ...


class Sender(Protocol):
    """Sends e-mail. Raises: `MailNotSent`."""

    async def send(self, mail: Mail) -> None: ...


class TranscriptAwaited(CallthreadError):
    """What was said is not written down yet: the job tries again."""


@dataclass(frozen=True, slots=True)
class Messages:
    """The job `voicemail.deliver`. Done twice it does no harm: each part is done if it is not done yet."""

    store: Store
    audio: AudioStore
    recordings: Recordings
    businesses: Callable[[], Mapping[str, Business]]
    mailer: Sender | None = None
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def deliver(self, call_sid: str, recording_sid: str) -> None:
        """Raises: `TelephonyError`, `StorageUnavailable`, `MailNotSent`, `TranscriptAwaited`: tried again then."""
        message = await self.store.voicemail(call_sid, recording_sid)
        if message is None:  # its caller was erased: nothing of it stays anywhere
            await self.recordings.delete(recording_sid)
            return
        wav = await self._kept(message)
        if message.told_at is None:
            await self._tell(message, wav)

    async def _kept(self, message: Voicemail) -> bytes:
        """The recording, in our own store and no longer at Twilio."""
        if message.audio_path:
            await self.recordings.delete(message.recording_sid)
            return await self.audio.get(message.audio_path) or b""
        wav = await self.recordings.fetch(message.recording_sid)
        if wav is None:
            log.warning("recording_gone", recording_sid=message.recording_sid)
            return b""
        path = audio_path(message)
        await self.audio.put(path, wav)
        if not await self.store.save_voicemail_audio(message, path):
            await self.audio.delete(path)
        # Twilio transcribes what it has: until then it stays there too.
        if not self._waits_for_text(message):
            await self.recordings.delete(message.recording_sid)
        return wav

    def _waits_for_text(self, message: Voicemail) -> bool:
        is_late = self.now() - message.created_at > TEXT_WAIT
        return message.wants_text and not message.transcript and not is_late

    async def _tell(self, message: Voicemail, wav: bytes) -> None:
        if self._waits_for_text(message):
            raise TranscriptAwaited(message.recording_sid)
        body: dict[str, dict[str, Any]] = {
            "recording": {"id": message.recording_sid, "duration_s": message.duration_s}
        }
        if message.transcript:
            body["recording"]["transcript"] = message.transcript
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
    said = (
        f"\n\nWhat was said, as a machine understood it:\n{message.transcript}" if message.transcript else ""
    )
    text = f"{caller} left a message of {message.duration_s} s at {when}.{said}\n"
    subject = f"{business.name}: a message of {message.duration_s} s"
    return Mail(business.notices.email, subject, text, message.recording_sid, wav)
