"""One simulated call of `ivr bench rate`: the service's own core between a telephone and the sandbox's parts.

Time is simulated. What is real: the recording as the telephone carries it, the sandbox's turn detection, the words
its ear finds, the core with all it does about rate and speed, and the audio of its voice at the speed in force.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from callflows import engine
from callflows.model import Business
from ivr.audio.outbound import Outbound
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup
from ivr.core.speaking import VoiceProfile
from ivr.core.units import FRAME_BYTES, FRAME_MS, ULAW_SILENCE, ulaw_ms
from ivr.sandbox.buffer import InputBuffer
from ivr.sandbox.shapes import Pcmu, ServerVad
from ivr.sandbox.vad import Started
from memory.model import Window

SILENT_FRAME = ULAW_SILENCE * FRAME_BYTES
LEAD_IN_MS = 1_000
REST_MS = 500
NO_REPLY_MS = 5_000
"""So long after the recording a reply must have been asked for; else nothing was heard in it."""

Hear = Callable[[bytes], Awaitable[str]]
"""µ-law 8 kHz → words."""
Speak = Callable[[str, str, float], Awaitable[bytes]]
"""Text, voice, speed → PCM16 24 kHz."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A reply as it left for the line."""

    text: str
    speed: float
    audio_ms: float
    estimate: float | None
    """The caller's rate, as the core knew it when the reply was asked for."""


@dataclass
class _Phone:
    """Plays what it is sent in real time and returns marks when they were reached."""

    ends_ms: float = 0.0
    marks: deque[tuple[float, str]] = field(default_factory=deque)
    sent_bytes: int = 0

    def media(self, ulaw: bytes, now_ms: float) -> None:
        self.sent_bytes += len(ulaw)
        self.ends_ms = max(now_ms, self.ends_ms) + ulaw_ms(ulaw)

    def due(self, now_ms: float) -> str | None:
        return self.marks.popleft()[1] if self.marks and self.marks[0][0] <= now_ms else None


class RateCall:
    """One caller's call. `turn` says a recording and returns what was replied to the whole of it."""

    def __init__(self, business: Business, voice: VoiceProfile | None, hear: Hear, speak: Speak) -> None:
        self._now_ms = 0.0
        self._business = business
        self._hear = hear
        self._speak = speak
        setup = CallSetup("bench", business, engine.start(business), opening="", voice=voice)
        self._core = CallCore(setup, self._now_ms)
        config = self._core.config()
        self._speed = config.speed
        self._buffer = InputBuffer(Pcmu(), _vad(config))
        self._phone = _Phone()
        self._frames = 0
        self._items = 0
        self._asked: do.StartReply | None = None
        self._events: deque[ev.Event] = deque((ev.ModelReady("bench"),))

    async def turn(self, frames: Sequence[bytes], reply: str) -> Spoken | None:
        """Say the frames, then wait in silence; the model answers with `reply` once all was said.

        `None`: the core asked for no reply, because no words were found in it.
        """
        for frame in (*[SILENT_FRAME] * (LEAD_IN_MS // FRAME_MS), *frames):
            await self._pass(frame)
        latest_ms = self._now_ms + NO_REPLY_MS
        while self._asked is None:
            if self._now_ms > latest_ms:
                return None
            await self._pass(SILENT_FRAME)
        spoken = await self._answer(self._asked, reply)
        while self._now_ms < self._phone.ends_ms + REST_MS or self._phone.marks:
            await self._pass(SILENT_FRAME)
        return spoken

    async def _answer(self, asked: do.StartReply, text: str) -> Spoken:
        self._asked = None
        speed, before = self._speed, self._phone.sent_bytes
        state = str(asked.input[-1])
        outbound = Outbound()
        pcm24k = await self._speak(text, self._business.voice, speed)
        ulaw = outbound.feed(pcm24k) + outbound.flush()
        self._events += [
            ev.ReplyText(asked.reply_id, text),
            ev.ReplyAudio(asked.reply_id, ulaw),
            ev.ReplyDone(asked.reply_id, ev.ReplyStatus.COMPLETED),
        ]
        while ulaw_ms(bytes(self._phone.sent_bytes - before)) < ulaw_ms(ulaw):
            await self._pass(SILENT_FRAME)
        return Spoken(text, speed, ulaw_ms(bytes(self._phone.sent_bytes - before)), _estimate(state))

    # -- one frame of time ----------------------------------------------------------------------------------------

    async def _pass(self, frame: bytes) -> None:
        self._now_ms += FRAME_MS
        self._frames += 1
        stream_ms = (self._frames - 1) * FRAME_MS
        self._events.append(ev.LineFrame(self._frames + 1, self._frames, stream_ms, frame))
        while (mark := self._phone.due(self._now_ms)) is not None:
            self._events.append(ev.LineMark(mark))
        self._events.append(ev.Tick())  # the worker's, each 20 ms
        while self._events:
            for command in self._core.receive(self._events.popleft(), self._now_ms):
                await self._carry_out(command)

    async def _carry_out(self, command: do.Command) -> None:
        match command:
            case do.SendMedia(ulaw):
                self._phone.media(ulaw, self._now_ms)
            case do.SendMark(name):
                self._phone.marks.append((max(self._now_ms, self._phone.ends_ms), name))
            case do.Hear(ulaw):
                await self._hear_frame(ulaw)
            case do.Recall(turn_no):
                self._events.append(ev.Recalled(turn_no, Window()))
            case do.UpdateSession(config):
                self._speed = config.speed
                self._buffer.detect(_vad(config))
            case do.StartReply(tools=tools) if tools:  # without them: a prompt of the core's own, left unsaid
                self._asked = command
            case do.CancelReply(reply_id):
                self._asked = None
                self._events.append(ev.ReplyDone(reply_id, ev.ReplyStatus.CANCELLED))

    async def _hear_frame(self, ulaw: bytes) -> None:
        for found in self._buffer.append(ulaw):
            if isinstance(found, Started):
                self._items += 1
                self._events.append(ev.SpeechStarted(self._item, found.audio_start_ms))
            else:
                self._events += [
                    ev.SpeechStopped(self._item, found.stopped.audio_end_ms),
                    ev.TurnCommitted(self._item),
                    ev.TranscriptDone(self._item, await self._hear(found.audio)),
                ]

    @property
    def _item(self) -> str:
        return f"item{self._items}"


def _vad(config: do.SessionConfig) -> ServerVad:
    return ServerVad(
        threshold=config.vad_threshold,
        prefix_padding_ms=config.prefix_padding_ms,
        silence_duration_ms=config.silence_ms,
    )


def _estimate(state: str) -> float | None:
    """The rate that the model was told."""
    said = state.partition("speaking rate: ")[2].split(" ", 1)[0]
    return float(said) if said.replace(".", "").isdigit() else None
