"""A small world in simulated time around one `CallCore`: a telephone, a speech model, a memory.

The telephone plays what it is sent in real time and returns marks as Twilio does: when all before them was
played, and all at once after a clear. The model answers as scripted, faster than speech; its VAD reports what
`World.says` has the caller say.
"""

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

from callflows import engine
from callflows.model import Business
from callflows.parse import parse_text
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from ivr.core.setup import CallSetup, Tuning
from ivr.core.speaking import SpeedState, VoiceProfile
from ivr.core.standing import Standing
from ivr.core.units import ULAW_SILENCE
from memory.model import Exchange, Page, Trust, Window

CLINIC = """\
id: clinic
name: The Clinic
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello, this is the clinic. How can I help?
facts:
  - We open at nine.
transfers:
  desk: {number: "+16175550102", description: reception, say: Connecting you to the desk.}
  nurse: {number: "+16175550103", description: the nurse on call}
limits: {max_call_minutes: 5, silence_s: 8, reprompts: 2}
start: main
nodes:
  main:
    type: talk
    instructions: Answer questions.
    exits:
      booking: {to: booking, when: the caller wants an appointment}
      done: {to: bye, when: the caller is done}
  booking:
    type: talk
    topic: booking an appointment
    instructions: Ask which day suits.
  bye: {type: hangup, say: Thank you and goodbye.}
"""
START_MS = 50_000.0
"""The world's clock does not begin at zero: a time taken for a duration must show."""
SPEECH = 0x21
"""The µ-law byte that stands for the caller's voice."""
VAD_MS = 60
"""How long after the first sound the model's VAD is sure."""

_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)

C = TypeVar("C")


@cache
def clinic(old: str = "", new: str = "") -> Business:
    """The clinic, with `old` in its flow file replaced by `new`."""
    if old not in CLINIC:
        raise ValueError(f"the flow holds no {old!r}")
    return parse_text(CLINIC.replace(old, new, 1) if old else CLINIC, "clinic.yaml")


def numbered_audio(reply_no: int, duration_ms: int) -> bytes:
    """µ-law whose every 20 ms frame says which reply and which frame it is."""
    frames = (reply_no.to_bytes(2) + frame_no.to_bytes(2) for frame_no in range(duration_ms // 20))
    return b"".join(frame * 40 for frame in frames)


@dataclass(frozen=True)
class Answer:
    """One scripted reply: `delta_ms` pieces of audio from `first_ms` on, all sent by `done_ms`."""

    text: str = ""
    audio_ms: int = 0
    calls: tuple[tuple[str, str], ...] = ()
    first_ms: int = 200
    done_ms: int | None = 400
    """`None`: the provider never says that it is complete."""
    status: ev.ReplyStatus = ev.ReplyStatus.COMPLETED
    delta_ms: int = 200


def speech(text: str, audio_ms: int = 2_000) -> Answer:
    """A reply that only speaks."""
    return Answer(text, audio_ms)


def calling(*calls: tuple[str, str], text: str = "", audio_ms: int = 0) -> Answer:
    """A reply that calls functions, after saying `text`, if any."""
    return Answer(text, audio_ms, calls)


FAILED = Answer(status=ev.ReplyStatus.FAILED)


@dataclass(order=True)
class _Due:
    at_ms: float
    order: int
    event: ev.Event = field(compare=False)
    source: str = field(compare=False)


@dataclass
class Phone:
    """What the caller hears."""

    ends_ms: float = 0.0
    played: list[tuple[float, bytes]] = field(default_factory=list)
    marks: list[tuple[float, str]] = field(default_factory=list)

    def media(self, ulaw: bytes, now_ms: float) -> None:
        begins_ms = max(now_ms, self.ends_ms)
        self.played.append((begins_ms, ulaw))
        self.ends_ms = begins_ms + len(ulaw) / 8

    def clear(self, now_ms: float) -> None:
        kept = ((at, ulaw[: max(0, int((now_ms - at) * 8))]) for at, ulaw in self.played)
        self.played = [(at, ulaw) for at, ulaw in kept if ulaw]
        self.ends_ms = now_ms

    def sound(self) -> bytes:
        """All that was, or will be, heard."""
        return b"".join(ulaw for _, ulaw in self.played)


class World:
    """Run it by `run`; look at `sent`."""

    def __init__(
        self,
        *answers: Answer,
        business: Business | None = None,
        opening: str | None = None,
        resumed: bool = False,
        tuning: Tuning | None = None,
        voice: VoiceProfile | None = None,
        speed: SpeedState | None = None,
        silence_ms: int | None = None,
        model_after_ms: float = 300,
        call_id: str = "CA1",
        flow: engine.FlowState | None = None,
        standing: Standing | None = None,
    ) -> None:
        self.now_ms = START_MS
        self.business = business or clinic()
        first = engine.begin(self.business, engine.Moment())
        self.setup = CallSetup(
            call_id=call_id,
            business=self.business,
            flow=flow or first.state,
            first=first.actions if flow is None else (),
            opening=self.business.greeting if opening is None else opening,
            resumed=resumed,
            standing=standing or Standing(Trust.ATTESTED),
            speed=speed or SpeedState(),
            silence_ms=silence_ms,
            voice=voice,
            tuning=tuning or Tuning(),
        )
        self.core = CallCore(self.setup, self.now_ms)
        self.answers = deque(answers)
        self.own_words_ms = 2_000
        self.latency_ms = 15.0
        self.recall_ms: float | None = 50
        self.window = Window()
        self.tool_ms: float | None = 1_000
        self.tool_body: object = None
        """What tools answer; None: they fail."""
        self.files: set[str] = set()
        self.refused_opens = 0
        self.phone = Phone()
        self.sent: list[tuple[float, do.Command]] = []
        self._due: list[_Due] = []
        self._order = 0
        self._items = 0
        self._replies: dict[str, int] = {}
        self._committed: set[str] = set()
        self._frames = 0
        self._talks_until_ms = 0.0
        self._heard_by_model_ms = 0.0
        self._is_line_up = True
        self._at(self.now_ms + 20, ev.Tick(), "frame")
        if model_after_ms >= 0:
            self._at(self.now_ms + model_after_ms, ev.ModelReady("s1"), "open")

    # -- the test's hands ---------------------------------------------------------------------------------------

    def run(self, duration_ms: float) -> None:
        """Let time pass."""
        end_ms = self.now_ms + duration_ms
        idle = 0
        while True:
            tick_ms = self.core.next_deadline(self.now_ms)
            at_ms = min(self._due[0].at_ms if self._due else end_ms + 1, end_ms + 1)
            if tick_ms is not None and tick_ms < at_ms:
                idle = idle + 1 if tick_ms <= self.now_ms else 0
                if idle > 20:
                    raise AssertionError(f"the core asks for ticks without end at {self.now_ms}")
                self.happen(ev.Tick(), max(tick_ms, self.now_ms))
            elif at_ms <= end_ms:
                idle = 0
                due = heapq.heappop(self._due)
                idle = idle if due.at_ms <= self.now_ms else 0
                self.now_ms = due.at_ms
                self._happen_due(due)
            else:
                self.now_ms = end_ms
                return

    def happen(self, event: ev.Event, at_ms: float | None = None) -> list[do.Command]:
        """Let something happen now."""
        self.now_ms = self.now_ms if at_ms is None else at_ms
        if isinstance(event, ev.TurnCommitted):
            self._committed.add(event.item_id)
        commands = self.core.receive(event, self.now_ms)
        for command in commands:
            self.sent.append((self.now_ms, command))
            self._carry_out(command)
        return commands

    def says(
        self,
        words: str | None,
        lasting_ms: float = 1_000,
        words_after_ms: float | None = 300,
        partial: str = "",
    ) -> str:
        """The caller begins to speak. `words` None: transcription fails; `words_after_ms` None: it never ends."""
        self._items += 1
        item, silence_ms = f"u{self._items}", self.setup.tuning.silence_ms
        ends_ms = self.now_ms + lasting_ms
        closed_ms = ends_ms + silence_ms + 20  # the frame that completes the silence has to arrive
        self._talks_until_ms = ends_ms
        start_ms = max(0, int(self._heard_by_model_ms) - self.setup.tuning.prefix_ms)
        end_ms = int(self._heard_by_model_ms + lasting_ms + silence_ms)
        self._at(self.now_ms + VAD_MS, ev.SpeechStarted(item, start_ms), "vad")
        if partial:
            self._at(self.now_ms + lasting_ms / 2, ev.TranscriptDelta(item, partial), "vad")
        self._at(closed_ms, ev.SpeechStopped(item, end_ms), "vad")
        self._at(closed_ms, ev.TurnCommitted(item), "vad")
        if words_after_ms is not None:
            done = ev.TranscriptFailed(item, "x") if words is None else ev.TranscriptDone(item, words)
            self._at(closed_ms + words_after_ms, done, "vad")
        return item

    def press(self, *digits: str, each_ms: float = 100) -> None:
        """The caller presses keys."""
        for digit in digits:
            self.happen(ev.LineDigit(digit))
            self.run(each_ms)

    def lose_model(self, *, permanent: bool = False) -> None:
        """The model session ends now; nothing of it comes any more."""
        self._forget(lambda due: due.source == "vad" or due.source.startswith("reply:"))
        self.happen(ev.ModelLost("gone", permanent))

    def hang_up(self) -> None:
        """The caller leaves."""
        self._line_down()
        self.happen(ev.LineStopped())

    def break_line(self) -> None:
        """The media socket dies."""
        self._line_down()
        self.happen(ev.LineClosed(1006))

    def greet(self) -> None:
        """Run until the greeting was heard."""
        self.run(300 + 200 + self.own_words_ms + 200)

    # -- what came of it ----------------------------------------------------------------------------------------

    def of(self, kind: type[C]) -> list[C]:
        """All commands of a kind."""
        return [command for _, command in self.sent if isinstance(command, kind)]

    def times(self, kind: type[C]) -> list[float]:
        """When they were given, ms since the start of the call."""
        return [at - START_MS for at, command in self.sent if isinstance(command, kind)]

    def exchanges(self) -> list[Exchange]:
        """What was committed."""
        return [c.exchange for c in self.of(do.CommitExchange)]

    def said(self) -> list[str]:
        """The texts that the model was to say word for word."""
        texts = (str(r.instructions) for r in self.of(do.StartReply) if "Say exactly: " in r.instructions)
        return [text.rpartition("Say exactly: ")[2] for text in texts]

    def asked(self) -> list[do.StartReply]:
        """Replies asked for to a turn of the caller."""
        return [r for r in self.of(do.StartReply) if "Say exactly: " not in r.instructions]

    def audio_of(self, reply: do.StartReply, duration_ms: int) -> bytes:
        """The audio that the model gave for a reply."""
        return numbered_audio(self._replies[reply.reply_id], duration_ms)

    # -- within -------------------------------------------------------------------------------------------------

    def _at(self, at_ms: float, event: ev.Event, source: str) -> None:
        self._order += 1
        heapq.heappush(self._due, _Due(at_ms, self._order, event, source))

    def _forget(self, which: Callable[[_Due], bool]) -> None:
        self._due = [due for due in self._due if not which(due)]
        heapq.heapify(self._due)

    def _happen_due(self, due: _Due) -> None:
        if due.source == "frame":
            self._frame()
        elif due.source == "open" and self.refused_opens > 0:
            self.refused_opens -= 1
            self.happen(ev.ModelLost("refused"))
        else:
            if due.source == "open":
                self._heard_by_model_ms = 0.0
            self.happen(due.event)

    def _frame(self) -> None:
        if not self._is_line_up:
            return
        self._frames += 1
        byte = bytes([SPEECH]) if self.now_ms <= self._talks_until_ms else ULAW_SILENCE
        self.happen(ev.LineFrame(self._frames + 1, self._frames, (self._frames - 1) * 20, byte * 160))
        self._at(self.now_ms + 20, ev.Tick(), "frame")

    def _line_down(self) -> None:
        """No more audio: the VAD decides nothing more, but what is committed is still transcribed."""
        self._is_line_up = False
        self._forget(lambda due: due.source in ("frame", "mark"))
        self._forget(
            lambda due: due.source == "vad" and getattr(due.event, "item_id", "") not in self._committed
        )

    def _carry_out(self, command: do.Command) -> None:
        match command:
            case do.SendMedia(ulaw):
                self.phone.media(ulaw, self.now_ms + self.latency_ms)
            case do.SendMark(name):
                at_ms = max(self.now_ms + self.latency_ms, self.phone.ends_ms)
                self._at(at_ms + self.latency_ms, ev.LineMark(name), "mark")
            case do.SendClear():
                self._clear()
            case do.Hear():
                self._heard_by_model_ms += len(command.ulaw) / 8 + command.missing_ms
            case do.StartReply():
                self._reply(command)
            case do.PlayFile(reply_id, path):
                self._play_file(reply_id, path)
            case do.CancelReply(reply_id):
                self._forget(lambda due: due.source == f"reply:{reply_id}")
                done = ev.ReplyDone(reply_id, ev.ReplyStatus.CANCELLED)
                self._at(self.now_ms + 30, done, f"reply:{reply_id}")
            case do.Recall(turn_no, query) if self.recall_ms is not None:
                self._at(self.now_ms + self.recall_ms, ev.Recalled(turn_no, self.window, query), "own")
            case do.UseTool(key, _) if self.tool_ms is not None:
                answer = ev.ToolAnswered(key, self.tool_body, is_failed=self.tool_body is None)
                self._at(self.now_ms + self.tool_ms, answer, "own")
            case do.ReopenModel(delay_ms):
                self._at(self.now_ms + delay_ms + 100, ev.ModelReady("s"), "open")

    def _clear(self) -> None:
        arrives_ms = self.now_ms + self.latency_ms
        self.phone.clear(arrives_ms)
        out = [due for due in self._due if due.source == "mark"]
        self._forget(lambda due: due.source == "mark")
        for due in sorted(out):
            self._at(min(due.at_ms, arrives_ms + self.latency_ms), due.event, "mark")

    def _reply(self, command: do.StartReply) -> None:
        self._replies[command.reply_id] = len(self._replies) + 1
        text = command.instructions.rpartition("Say exactly: ")
        answer = speech(text[2], self.own_words_ms) if text[1] else self._next_answer()
        self._play_script(command.reply_id, answer)

    def _play_file(self, reply_id: str, path: str) -> None:
        self._replies[reply_id] = len(self._replies) + 1
        self._play_script(reply_id, Answer(audio_ms=1_000) if path in self.files else FAILED)

    def _next_answer(self) -> Answer:
        return self.answers.popleft() if self.answers else speech("Fine.")

    def _play_script(self, reply_id: str, answer: Answer) -> None:
        source, first_ms = f"reply:{reply_id}", self.now_ms + answer.first_ms
        last_ms = self.now_ms + (answer.done_ms if answer.done_ms is not None else answer.first_ms + 200)
        ulaw, step = numbered_audio(self._replies[reply_id], answer.audio_ms), answer.delta_ms * 8
        pieces = [ulaw[at : at + step] for at in range(0, len(ulaw), step)]
        if answer.text:
            self._at(first_ms, ev.ReplyText(reply_id, answer.text), source)
        for no, piece in enumerate(pieces):
            at_ms = first_ms + (last_ms - first_ms) * no / len(pieces)
            self._at(at_ms, ev.ReplyAudio(reply_id, piece), source)
        for no, (name, arguments) in enumerate(answer.calls):
            call = ev.ReplyCall(reply_id, f"{reply_id}-c{no}", name, arguments)
            self._at(last_ms, call, source)
        if answer.done_ms is not None:
            usage = ev.Usage(input_text_tokens=100, output_audio_tokens=10)
            self._at(last_ms, ev.ReplyDone(reply_id, answer.status, usage=usage), source)


def remembered(call_id: str, exchange_no: int, user_text: str, reply_text: str, item_id: str = "") -> Page:
    """A page as memory gives it."""
    from_page = (exchange_no, call_id, exchange_no, user_text, reply_text, "", "", "", 1_000, 1_000)
    return Page(*from_page, False, item_id, _LONG_AGO)
