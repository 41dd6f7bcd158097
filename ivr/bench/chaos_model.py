"""The speech model of `ivr bench chaos`: the sandbox's protocol, an ear for numbers, and trouble on demand.

It is no language model. It hears which number a caller says, and answers with the same number in its own sound.
"""

import asyncio
import contextlib
import logging
import random
import re
from collections.abc import AsyncIterator
from weakref import WeakSet

import numpy as np
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websocket

from ivr.bench.chaos_code import CALLER_HZ, MODEL_HZ, decode, encode, tone
from ivr.sandbox.brain import Answer, HearPlan, Manners, Question, Who
from ivr.sandbox.pcm import MODEL_RATE_HZ
from ivr.sandbox.server import Sandbox

WORDS_MS = 500
"""How long words of the service's own sound."""
FAILURES = 2
"""In a row: with a third the service takes the model for down, and says so to the caller."""
_NUMBER = re.compile(r"\b\d{5}\b")
_MANNERS = Manners()


class Troubles:
    """What the next connections and responses meet."""

    def __init__(self) -> None:
        self.refusals = 0
        self._echoes: WeakSet[Echo] = WeakSet()

    def next_connection(self) -> str:
        """See `ivr.sandbox.server.Cast`."""
        if not self.refusals:
            return "accept"
        self.refusals -= 1
        return "refuse"

    def brain(self) -> "Echo":
        """See `ivr.sandbox.server.Cast`."""
        echo = Echo()
        self._echoes.add(echo)
        return echo

    def fail_replies(self, chance: random.Random) -> None:
        """Let the next replies fail in one session; troubles of several do not add up in one call."""
        calm = sorted((echo for echo in self._echoes if not echo.failed_in_a_row), key=id)
        if calm:
            chance.choice(calm).failures = FAILURES


class Echo:
    """Answers a number with itself."""

    manners = _MANNERS

    def __init__(self) -> None:
        self.failures = 0
        """How many of the next replies fail."""
        self.failed_in_a_row = 0

    def hear(self, item_id: str) -> HearPlan:
        """By ear."""
        return HearPlan(listen=True)

    def answer(self, question: Question) -> Answer:
        """The caller's last number, or words that are no number."""
        if question.text_only:
            return Answer(say="ok")
        if "Say exactly: " in question.instructions:
            return Answer(say=question.instructions.rpartition("Say exactly: ")[2])
        if self.failures:
            self.failures -= 1
            self.failed_in_a_row += 1
            return Answer(failure="rate_limit_exceeded")
        self.failed_in_a_row = 0
        said = [line.text for line in question.lines if line.who is Who.USER]
        numbers = _NUMBER.findall(said[-1]) if said else []
        return Answer(say=f"You said {numbers[-1]}" if numbers else "Say a number")


class NumberSpeech:
    """Ear and voice (`ivr.sandbox.server.Speech`)."""

    async def hear(self, pcm: bytes, rate_hz: int = MODEL_RATE_HZ) -> str:
        """The numbers in the audio; empty where none is whole."""
        samples = np.frombuffer(pcm, dtype="<i2")
        return " ".join(f"{number:05}" for number in decode(samples, CALLER_HZ, rate_hz))

    async def speak(self, text: str, voice: str = "", speed: float = 1.0) -> bytes:
        """A number's sound and a second of hum; only hum for other words."""
        numbers = _NUMBER.findall(text)
        parts = [encode(int(number), MODEL_HZ, MODEL_RATE_HZ) for number in numbers]
        return np.concatenate([*parts, tone(300, WORDS_MS, MODEL_RATE_HZ)]).astype("<i2").tobytes()


class TroubledModel(Sandbox):
    """The server, whose sessions can be hit."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        super().__init__(NumberSpeech(), self.troubles)
        self.sessions: set[ServerConnection] = set()

    async def handle(self, socket: ServerConnection) -> None:
        """See `Sandbox`."""
        self.sessions.add(socket)
        try:
            await super().handle(socket)
        finally:
            self.sessions.discard(socket)

    def one_of(self, chance: random.Random) -> ServerConnection | None:
        """A session that is open now."""
        return chance.choice(sorted(self.sessions, key=id)) if self.sessions else None

    async def stall(self, socket: ServerConnection, seconds: float) -> None:
        """Neither read nor answer pings for a while; whoever waits that long finds a session that works."""
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            socket.transport.pause_reading()
            await asyncio.sleep(seconds)
            socket.transport.resume_reading()


@contextlib.asynccontextmanager
async def troubled_model() -> AsyncIterator[tuple[TroubledModel, str]]:
    """The model on a port of its own, and its Realtime address."""
    model, quiet = TroubledModel(), logging.getLogger("ivr.bench.chaos.model")
    quiet.disabled = True  # connections that break are what this is about
    server = serve_websocket(
        model.handle, "127.0.0.1", 0, process_request=model.admit, compression=None, logger=quiet
    )
    async with server as listening:
        port = next(iter(listening.sockets)).getsockname()[1]
        yield model, f"ws://127.0.0.1:{port}/v1"
