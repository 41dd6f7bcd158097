"""A mail server that keeps what it is given: as much of SMTP as `smtplib` speaks without STARTTLS."""

import asyncio
from email import message_from_bytes, policy
from email.message import EmailMessage
from types import TracebackType
from typing import Self


class MailServer:
    """`async with MailServer() as server`: listens on a loopback port until the block ends."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.refuses = False
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """As `IVR_SMTP_URL` wants it."""
        if self._server is None:
            raise RuntimeError("not serving: enter the block first")
        return f"smtp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 double\r\n")
        while line := await reader.readline():
            verb = line.split()[0].upper() if line.split() else b""
            if verb == b"DATA":
                writer.write(b"354 go on\r\n")
                body = await reader.readuntil(b"\r\n.\r\n")
                parsed = message_from_bytes(body[:-3], policy=policy.default)
                if isinstance(parsed, EmailMessage):
                    self.mails.append(parsed)
            writer.write(self._answer(verb))
            if verb == b"QUIT":
                break
        writer.close()

    def _answer(self, verb: bytes) -> bytes:
        if self.refuses and verb == b"MAIL":
            return b"451 later\r\n"
        return b"221 bye\r\n" if verb == b"QUIT" else b"250 fine\r\n"
