"""A text-to-speech endpoint: `POST /v1/audio/speech` of OpenAI or a compatible server, PCM16 24 kHz as it is made."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Self

import aiohttp

from ivr.errors import InternalError, SpeechUnavailable

OPENAI_HTTP = "https://api.openai.com/v1"
CHUNK_S = 2.5
"""How long the first sound, and each further one, is awaited: a caller listens."""
_NOT_PCM = ("text/", "application/json", "audio/mpeg", "audio/wav", "audio/x-wav", "audio/ogg", "audio/flac")
_OF_THIS_TEXT = frozenset({400, 413, 422})
_CONTAINERS = (b"RIFF", b"ID3", b"OggS", b"fLaC")
"""Played as PCM each of these would be noise in a caller's ear."""


class SpeechEndpoint:
    """One model of one server. `api_key` may be None for a server that asks for none.

    Use it as a context manager, in the event loop that it works in.
    """

    def __init__(
        self, api_key: str | None, base_url: str | None, model: str, *, chunk_s: float = CHUNK_S
    ) -> None:
        self.address = (base_url or OPENAI_HTTP).rstrip("/")
        self.model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._chunk_s = chunk_s
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def speak(self, text: str, voice: str) -> AsyncGenerator[bytes]:
        """The text's sound, cut at any byte. Raises: `SpeechUnavailable`, also in the midst of it.

        Its text is a word or two for logs: nothing of the request or of the answer, which may repeat it.
        """
        if self._session is None:
            raise InternalError("speak() outside the context")
        asked = {"model": self.model, "voice": voice, "input": text, "response_format": "pcm"}
        try:
            async with asyncio.timeout(self._chunk_s):
                answer = await self._session.post(
                    f"{self.address}/audio/speech", json=asked, headers=self._headers, allow_redirects=False
                )
            async with answer:
                _check(answer)
                async for chunk in self._sound(answer.content):
                    yield chunk
        except TimeoutError as error:
            raise SpeechUnavailable(f"nothing came for {self._chunk_s:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise SpeechUnavailable(type(error).__name__) from error

    async def _sound(self, content: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
        is_first = True
        while True:
            async with asyncio.timeout(self._chunk_s):
                chunk = await content.readany()
            if not chunk and content.at_eof():
                break
            if is_first and chunk.startswith(_CONTAINERS):
                raise SpeechUnavailable("the answer is not raw PCM")
            is_first = False
            yield chunk
        if is_first:
            raise SpeechUnavailable("an empty answer")


def _check(answer: aiohttp.ClientResponse) -> None:
    if answer.status != 200:
        raise SpeechUnavailable(f"status {answer.status}", is_refusal=answer.status in _OF_THIS_TEXT)
    if answer.headers.get("Content-Type", "").lower().startswith(_NOT_PCM):
        raise SpeechUnavailable("the answer is not raw PCM")
