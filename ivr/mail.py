"""E-mail to a business, by the operator's SMTP server."""

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from urllib.parse import SplitResult, unquote, urlsplit

from ivr.errors import PeerError

TIMEOUT_S = 20.0


class MailNotSent(PeerError):
    """The mail server cannot be reached, or refused: trying again may help."""


@dataclass(frozen=True, slots=True)
class Mail:
    """One message. `message_id` is the same when it is sent again, so that a mailbox may show it once."""

    to: tuple[str, ...]
    subject: str
    text: str
    message_id: str
    wav: bytes = b""


class Mailer:
    """`url` is `smtp://user:password@host:587` (STARTTLS where the server has it) or `smtps://…`."""

    def __init__(self, url: str, sender: str) -> None:
        self._server = urlsplit(url)
        self._sender = sender

    async def send(self, mail: Mail) -> None:
        """Send it. Raises: `MailNotSent`."""
        try:
            await asyncio.to_thread(self._send, self._composed(mail), mail.to)
        except (OSError, smtplib.SMTPException) as error:
            raise MailNotSent(f"e-mail: {type(error).__name__}") from error

    def _composed(self, mail: Mail) -> EmailMessage:
        message = EmailMessage()
        message["From"], message["To"] = self._sender, ", ".join(mail.to)
        message["Subject"], message["Message-ID"] = mail.subject, f"<{mail.message_id}@callthread>"
        message.set_content(mail.text)
        if mail.wav:
            message.add_attachment(mail.wav, maintype="audio", subtype="wav", filename="message.wav")
        return message

    def _send(self, message: EmailMessage, to: Sequence[str]) -> None:
        with _connected(self._server) as server:
            if self._server.username:
                server.login(unquote(self._server.username), unquote(self._server.password or ""))
            server.send_message(message, self._sender, list(to))


def _connected(url: SplitResult) -> smtplib.SMTP:
    host, context = url.hostname or "", ssl.create_default_context()
    if url.scheme == "smtps":
        return smtplib.SMTP_SSL(host, url.port or 465, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(host, url.port or 587, timeout=TIMEOUT_S)
    server.ehlo()
    if server.has_extn("starttls"):
        server.starttls(context=context)
    return server
