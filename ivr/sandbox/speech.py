"""Ear and voice together, started and stopped as one. They never wait for each other."""

import asyncio
from types import TracebackType
from typing import Self

from ivr.sandbox.ear import Ear
from ivr.sandbox.voice import Voice


class SpeechWorker:
    """`async with SpeechWorker() as speech:` — both processes are warm inside."""

    def __init__(self) -> None:
        self._ear = Ear()
        self._voice = Voice()

    async def __aenter__(self) -> Self:
        try:
            await asyncio.gather(self._ear.start(), self._voice.start())
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End both processes. Idempotent."""
        await asyncio.gather(self._ear.close(), self._voice.close())

    async def speak(self, text: str, voice: str = "heart", speed: float = 1.0) -> bytes:
        """The text as PCM16 24 kHz. Raises: `WorkerFailed`."""
        return await self._voice.speak(text, voice, speed)

    async def hear(self, pcm: bytes, rate_hz: int = 24_000) -> str:
        """The words in PCM16 audio at `rate_hz`. Raises: `WorkerFailed`."""
        return await self._ear.hear(pcm, rate_hz)


class NoSpeech:
    """In place of `SpeechWorker` where a script answers: nothing is loaded, no words are found in audio."""

    async def speak(self, text: str, voice: str = "heart", speed: float = 1.0) -> bytes:
        """Nothing: scripts bring tones."""
        return b""

    async def hear(self, pcm: bytes, rate_hz: int = 24_000) -> str:
        """No words."""
        return ""
