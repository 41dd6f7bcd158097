"""The speech model of `ivr bench turns`, in simulated time: the sandbox's turn detection and its rule for deferring.

It is no language model. A reply is a tone of fixed length after a fixed delay; the one judgement there is, whether to
answer at all, is the sandbox's documented rule (docs/sandbox.md, `defer_response`) on the words that got through.
Tokens are counted as the sandbox counts them.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from ivr.bench.turns_data import Recording
from ivr.bench.turns_ear import Levels
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.units import FRAME_MS
from ivr.sandbox import usage as tokens
from ivr.sandbox.brain import Line, Question, ToolSpec, Who
from ivr.sandbox.rules import choose
from ivr.sandbox.scene import Scene
from ivr.sandbox.vad import WINDOW_MS, EnergyVad, Started, Stopped, VadSettings
from memory.costs import estimate_usd

PRICED_AS = "gpt-realtime-2.1"


@dataclass(frozen=True, slots=True)
class Timing:
    """How long the parts of an answer take, in ms; together the 786 by which the paper's fixed-500 answers later than
    its threshold.
    """

    transcript_ms: float
    """From a turn's end to its words."""
    recall_ms: float
    first_audio_ms: float
    """From asking for a reply to its first audio."""


OURS = Timing(300.0, 51.0, 435.0)
"""Words and memory come first; 51 ms is the paper's overhead of context (50.9)."""
BY_ITSELF = Timing(0.0, 0.0, 786.0)
"""The model answers at its own boundary, as Realtime's `create_response` does: nothing is waited for."""
REPLY_MS = 4_000
SAID = "It is open from nine to five on all days but Sunday."
CHUNK_MS = 200
CHUNK_EVERY_MS = 20.0
"""Ten times faster than it plays, as the sandbox."""
_TONE = b"\x2a" * (8 * CHUNK_MS)
_DEFER = "defer_response"

# The paper's decision latency: mean 790.2, median 698.8, p95 1286.6 ms. Least + e^(log + spread·gauss) has all three.
_LEAST_MS, _LOG_MS, _SPREAD = 559.3, 4.9380, 1.0039

Later = Callable[[float, ev.ModelEvent], None]
"""Have the core told of an event after so many ms."""


def decision_ms(chance: Random) -> float:
    """One draw of the time until a function call is there."""
    return _LEAST_MS + math.exp(_LOG_MS + _SPREAD * chance.gauss(0, 1))


@dataclass(slots=True)
class Item:
    """A committed piece of the caller's audio: how long it is, and the words that got through."""

    audio_ms: float
    words: str


@dataclass(slots=True)
class AskedReply:
    """A reply that was asked for. `boundary_ms`: the end of the last sound before the boundary it answers."""

    reply_id: str
    asked_ms: float
    boundary_ms: float
    after_items: int
    """How many items had been committed when it was asked for."""
    is_answer: bool
    usage: Callable[[float], ev.Usage]
    """Its tokens if so much of it is spoken, in ms."""
    is_decision: bool = False
    spoken_ms: float = 0.0
    cancelled: bool = False
    done: bool = False
    first_audible_ms: float | None = None

    @property
    def usd(self) -> float:
        """What it cost."""
        return estimate_usd(self.usage(self.spoken_ms), PRICED_AS)


@dataclass(slots=True)
class _Speech:
    """Speech that is going on: where its audio began, and the frames in it."""

    item_id: str
    start_ms: int
    frames: list[int] = field(default_factory=list)


class Model:
    """One session: audio levels and commands in, events out."""

    def __init__(
        self, recording: Recording, config: do.SessionConfig, timing: Timing, chance: Random, later: Later
    ) -> None:
        self._recording = recording
        self._timing = timing
        self._chance = chance
        self._later = later
        settings = VadSettings(config.vad_threshold, config.prefix_padding_ms, config.silence_ms)
        self._vad = EnergyVad(settings)
        self._prefix = _prefix(config.instructions, config.tools)
        self._recent: list[int] = []
        self._speech: _Speech | None = None
        self._voiced_ms = 0.0
        self.boundary_ms = 0.0
        self.items: dict[str, Item] = {}
        self.replies: dict[str, AskedReply] = {}

    @property
    def is_hearing_speech(self) -> bool:
        """Turn detection is in the middle of speech."""
        return self._vad.speaking

    # -- hearing -------------------------------------------------------------------------------------------------

    def hear(self, number: int, levels: Levels, *, is_lost: bool = False) -> None:
        """The caller's frame `number`, after the concealment before it: a level for each 20 ms.

        `is_lost`: the frame itself is made up, and there is no word in it.
        """
        if not is_lost:
            self._remember(number)
        end_ms = (number + 1) * FRAME_MS
        for left, level in zip(range(len(levels) - 1, -1, -1), levels, strict=True):
            found = self._vad.feed_level(level)
            if level > -50.0:
                self._voiced_ms = end_ms - left * WINDOW_MS
            if found is not None:
                self._tell(found)

    def _remember(self, number: int) -> None:
        if self._speech is not None:
            self._speech.frames.append(number)
        else:
            self._recent.append(number)
            del self._recent[: -self._vad.settings.prefix_ms // FRAME_MS - 5]

    def _tell(self, found: Started | Stopped) -> None:
        if isinstance(found, Started):
            item_id = f"item{len(self.items) + 1}"
            self._speech = _Speech(item_id, found.audio_start_ms, self._recent)
            self._recent = []
            self._later(0, ev.SpeechStarted(item_id, found.audio_start_ms))
            return
        speech, self._speech = self._speech, None
        assert speech is not None, "speech ends only after it began"
        self.boundary_ms = self._voiced_ms
        words = self._words(speech.frames)
        self.items[speech.item_id] = Item(found.audio_end_ms - speech.start_ms, words)
        self._later(0, ev.SpeechStopped(speech.item_id, found.audio_end_ms))
        self._later(0, ev.TurnCommitted(speech.item_id))
        self._later(self._timing.transcript_ms, ev.TranscriptDone(speech.item_id, words))

    def _words(self, frames: Sequence[int]) -> str:
        """The words of which at least half got through."""
        through: dict[int, int] = {}
        word_of = self._recording.word_of_frame
        for number in frames:
            word = word_of[number] if number < len(word_of) else -1
            through[word] = through.get(word, 0) + 1
        words = self._recording.words
        return " ".join(
            word.text
            for no, word in enumerate(words)
            if 2 * through.get(no, 0) * FRAME_MS >= word.end_ms - word.start_ms and no in through
        )

    # -- answering -----------------------------------------------------------------------------------------------

    def update(self, config: do.SessionConfig) -> None:
        """New settings; speech that is going on goes on under them."""
        self._vad.settings = VadSettings(config.vad_threshold, config.prefix_padding_ms, config.silence_ms)

    def start(self, order: do.StartReply, now_ms: float) -> None:
        """A reply is asked for: it calls `defer_response` or it speaks."""
        question = self._question(order)
        answer = choose(Scene.of(question)) if question.tools else None
        is_answer = any(isinstance(item, do.ItemRef) for item in order.input)
        count = self._counter(order, answer.calls[0].arguments if answer else "")
        reply = AskedReply(order.reply_id, now_ms, self.boundary_ms, len(self.items), is_answer, count)
        self.replies[order.reply_id] = reply
        if answer is None:
            self._speak(reply)
            return
        reply.is_decision = True
        decided_ms, call = decision_ms(self._chance), answer.calls[0]
        self._later(
            decided_ms, ev.ReplyCall(reply.reply_id, f"c-{reply.reply_id}", call.name, call.arguments)
        )
        self._finish(reply, decided_ms)

    def cancel(self, reply_id: str) -> None:
        """Stop a reply."""
        reply = self.replies[reply_id]
        if not (reply.cancelled or reply.done):
            reply.cancelled = True
            usage = reply.usage(reply.spoken_ms)
            self._later(0, ev.ReplyDone(reply_id, ev.ReplyStatus.CANCELLED, usage=usage))

    def wants(self, event: ev.Event) -> bool:
        """Whether an event is still to happen: of a cancelled reply only its end. Called when its time has come."""
        if not isinstance(event, ev.ReplyAudio | ev.ReplyText | ev.ReplyCall | ev.ReplyDone):
            return True
        reply = self.replies[event.reply_id]
        if isinstance(event, ev.ReplyDone):
            reply.done = reply.done or not reply.cancelled
            return (event.status is ev.ReplyStatus.CANCELLED) == reply.cancelled
        if isinstance(event, ev.ReplyAudio) and not reply.cancelled:
            reply.spoken_ms += CHUNK_MS
        return not reply.cancelled

    def _speak(self, reply: AskedReply) -> None:
        at_ms = self._timing.first_audio_ms
        self._later(at_ms, ev.ReplyText(reply.reply_id, SAID))
        for _ in range(REPLY_MS // CHUNK_MS):
            self._later(at_ms, ev.ReplyAudio(reply.reply_id, _TONE))
            at_ms += CHUNK_EVERY_MS
        self._finish(reply, at_ms)

    def _finish(self, reply: AskedReply, after_ms: float) -> None:
        usage = reply.usage(0.0 if reply.is_decision else REPLY_MS)
        self._later(after_ms, ev.ReplyDone(reply.reply_id, ev.ReplyStatus.COMPLETED, usage=usage))

    def _question(self, order: do.StartReply) -> Question:
        """What the rule sees. Of the functions only the one it is about: what the recording says is no matter."""
        lines = tuple(line for item in order.input for line in self._lines(item))
        tools = tuple(ToolSpec(t.name, t.description, t.parameters) for t in order.tools if t.name == _DEFER)
        return Question(order.instructions, lines, tools)

    def _lines(self, item: do.InputItem) -> list[Line]:
        match item:
            case do.ItemRef(item_id):
                return [Line(Who.USER, self.items[item_id].words, item_id=item_id)]
            case do.UserText(text):
                return [Line(Who.USER, text)]
            case do.AssistantText(text):
                return [Line(Who.ASSISTANT, text)]
            case do.SystemText(text):
                return [Line(Who.SYSTEM, text)]
            case do.CallOutput(call_id, name, arguments, output):
                return [Line(Who.CALL, arguments, name, call_id), Line(Who.OUTPUT, output, name, call_id)]

    def _counter(self, order: do.StartReply, called: str) -> Callable[[float], ev.Usage]:
        """Tokens of a reply by how much of it is spoken. The session is warm: what it began with is cached."""
        prefix = _prefix(order.instructions, order.tools)
        cached = tokens.common_prefix_length(prefix, self._prefix)
        audio_ms = sum(self.items[i.item_id].audio_ms for i in order.input if isinstance(i, do.ItemRef))
        lines = [
            line for item in order.input if not isinstance(item, do.ItemRef) for line in self._lines(item)
        ]
        characters = sum(len(line.text) for line in lines)

        def count(spoken_ms: float) -> ev.Usage:
            said = called or SAID[: round(len(SAID) * spoken_ms / REPLY_MS)]
            found = tokens.usage(
                prefix=prefix,
                cached_characters=cached,
                input_characters=characters,
                input_audio_ms=audio_ms,
                said=said,
                spoken_ms=spoken_ms,
            )
            into, out = found.input_token_details, found.output_token_details
            return ev.Usage(
                input_text_tokens=into.text_tokens,
                input_audio_tokens=into.audio_tokens,
                cached_text_tokens=into.cached_tokens_details.text_tokens,
                output_text_tokens=out.text_tokens,
                output_audio_tokens=out.audio_tokens,
            )

        return count


def _prefix(instructions: str, tools: Sequence[do.FunctionTool]) -> str:
    """The part of what a reply is given that is the same from turn to turn."""
    return instructions + "".join(json.dumps([t.name, t.description, t.parameters]) for t in tools)
