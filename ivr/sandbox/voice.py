"""The sandbox's voice: hibari-tts in a process of its own."""

from types import TracebackType
from typing import Self

import msgspec

from ivr.sandbox.worker import Worker, WorkerFailed

MODEL_RATE_HZ = 24_000


class SpeakJob(msgspec.Struct):
    """Text to say at `speed` (1 is the voice's own), `pitch` times as high."""

    text: str
    speed: float
    pitch: float


class SpeakResult(msgspec.Struct):
    """PCM16 24 kHz, and the error that kept it from being made, if any."""

    pcm24k: bytes
    fault: str = ""


# The wheel holds one voice, "heart". The others are that voice, pitched: enough to tell two people apart.
_PITCHES = {
    "heart": 1.0,
    "caller": 0.82,
    "alloy": 1.0,
    "marin": 1.03,
    "coral": 1.05,
    "shimmer": 1.08,
    "sage": 0.97,
    "verse": 0.9,
    "ballad": 0.88,
    "cedar": 0.86,
    "echo": 0.84,
    "ash": 0.8,
}


def voice_names() -> tuple[str, ...]:
    """Voices that sound different. Any other name is taken too, and sounds like "heart"."""
    return tuple(_PITCHES)


class Voice:
    """`async with Voice() as voice: pcm = await voice.speak("Good morning.", voice="caller")`."""

    def __init__(self) -> None:
        self._worker: Worker[SpeakJob, SpeakResult] = Worker(
            "ivr.sandbox.voice_process", SpeakResult, ("hibari", "soxr")
        )

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Load and warm the voice. Raises: `SandboxMissing`, `WorkerFailed`."""
        await self._worker.start()

    async def close(self) -> None:
        """End the process. Idempotent."""
        await self._worker.close()

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self._worker.pid

    async def speak(self, text: str, voice: str = "heart", speed: float = 1.0) -> bytes:
        """The text as PCM16 24 kHz; empty if there is nothing to say. Raises: `WorkerFailed`."""
        if not text.strip():
            return b""
        result = await self._worker.do(SpeakJob(text, speed, _PITCHES.get(voice, 1.0)))
        if result.fault:
            raise WorkerFailed(f"the voice failed: {result.fault}")
        return result.pcm24k
