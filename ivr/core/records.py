"""What the core keeps of a turn, of a reply, and of exchanges whose words have not all come yet."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from callflows.engine import FlowState
from ivr.core.begun import Begun
from ivr.core.commands import CallOutput, EndReason
from ivr.core.events import ReplyCall, Usage
from ivr.core.heard import Heard
from ivr.core.latency import Latency, latency_of
from memory.model import Trust, Window

UNHEARD_WORDS = "(not understood)"
"""Stands for a turn whose transcription failed, so that the order of the conversation is kept (B045)."""


class ReplyKind(StrEnum):
    """Why we speak."""

    OPENING = "opening"
    ANSWER = "answer"
    PROMPT = "prompt"
    """Our own words: a reprompt, a request to say it again, a goodbye."""
    FILLER = "filler"
    """So that nobody waits in silence for an answer that has failed and is asked for again."""
    STEP = "step"
    """The flow's own words: nobody's turn makes them out of date, only the flow's next step."""


@dataclass(slots=True)
class Turn:
    """The caller's turn: one or more committed items that are answered together.

    `no` grows with each turn, and when a turn goes on after it was taken for finished.
    """

    no: int
    items: list[str] = field(default_factory=list)
    words: dict[str, str | None] = field(default_factory=dict)
    """Final transcript by item; `None` when transcription failed; missing while it is awaited."""
    partial: dict[str, str] = field(default_factory=dict)
    ulaw: bytearray = field(default_factory=bytearray)
    audio_bytes: dict[str, int] = field(default_factory=dict)
    """How much of `ulaw` is whose, by item."""
    closed: bool = False
    closed_at_ms: float = 0.0
    speech_ended_at_ms: float | None = None
    """When the caller's last word ended on our clock: the boundary less D_VAD."""
    words_at_ms: float | None = None
    """When its recall was asked for, with the words there were."""
    window_at_ms: float | None = None
    asked_at_ms: float | None = None
    """When its last reply was asked for."""
    window: Window | None = None
    outputs: list[CallOutput] = field(default_factory=list)
    rounds: int = 0
    """Replies asked for so far; bounded, so that a model that only calls functions is made to speak."""
    is_noise: bool = False
    """Its words ask for nothing: a sign of listening while we spoke, or our own echo."""
    may_defer: bool = True
    """The model may hold it: neither has it waited as long as anybody may, nor is it known to be over."""
    usage: Usage = field(default_factory=Usage)
    state: str = ""
    """The state snapshot the model was last shown for this turn."""
    settled: bool = False
    """The flow has acted upon it: speech that follows is a turn of its own."""
    is_filled: bool = False
    """A filler was said: the answer is asked for again after it."""
    begun: Begun | None = None
    """What was heard of its answer before a session was lost: the rest is asked for."""
    told: "OwnWords | None" = None
    """Nobody's words: the model is to go on with what came of a function."""

    def has_all_words(self) -> bool:
        """Every item's transcription has ended, one way or the other."""
        return all(item in self.words for item in self.items)

    def is_empty(self) -> bool:
        """All transcripts are there and hold no word that asks for anything: noise, not a turn (B051)."""
        says_nothing = self.is_noise or all(self.words[i] == "" for i in self.items if i in self.words)
        return self.has_all_words() and says_nothing and not self.settled

    def text(self) -> str:
        """The best text there is: final words, else partials."""
        best = (self.words.get(i) or self.partial.get(i, "") for i in self.items)
        return " ".join(t.strip() for t in best if t.strip())

    def text_or_placeholder(self) -> str:
        """As `text`, but never empty for a turn that was spoken."""
        return self.text() or (UNHEARD_WORDS if self.items and not self.is_empty() else "")

    def latency(self, audio_at_ms: float | None) -> Latency:
        """The turn's budget, up to the first audio of its reply."""
        return latency_of(
            self.speech_ended_at_ms,
            self.closed_at_ms or None,
            self.words_at_ms,
            self.window_at_ms,
            self.asked_at_ms,
            audio_at_ms,
        )

    def add_audio(self, item: str, ulaw: bytes) -> None:
        """More of what the caller said."""
        self.ulaw += ulaw
        self.audio_bytes[item] = self.audio_bytes.get(item, 0) + len(ulaw)

    def drop_from(self, first: int) -> list[str]:
        """Its items from the `first` on are not its own any more, nor is their audio. Returns them."""
        gone = self.items[first:]
        del self.items[first:]
        surplus = sum(self.audio_bytes.pop(item, 0) for item in gone)
        del self.ulaw[max(0, len(self.ulaw) - surplus) :]
        for item in gone:
            self.words.pop(item, None)
            self.partial.pop(item, None)
        return gone

    def release(self) -> None:
        """It is kept as a page: here only its words are still wanted, by transcripts that come twice and by context."""
        self.ulaw.clear()
        self.outputs.clear()
        self.window = None

    def absorb(self, later: "Turn") -> None:
        """Speech went on: the later items belong to this turn; what was gathered for it is out of date."""
        self.items += later.items
        self.words.update(later.words)
        self.partial.update(later.partial)
        self.ulaw += later.ulaw
        self.audio_bytes.update(later.audio_bytes)
        self.no = later.no
        self.closed = later.closed
        self.closed_at_ms = max(self.closed_at_ms, later.closed_at_ms)
        self.words_at_ms = self.window_at_ms = self.asked_at_ms = None
        self.window = None
        self.is_noise = False
        self.outputs.clear()
        self.rounds = 0
        self.may_defer = True


@dataclass(frozen=True, slots=True)
class Ending:
    """How the call is to end once the last words were heard. `target` names a transfer; `flow` is adopted then."""

    reason: EndReason
    target: str = ""
    number: str = ""
    say: str = ""
    flow: FlowState | None = None


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Something we say ourselves, word for word."""

    kind: ReplyKind
    text: str
    ending: Ending | None = None
    audio: str = ""
    """A file to be played instead, by its path in the flow file."""
    interruptible: bool = True
    parts: tuple[str, ...] = ()
    """The texts that were joined to this one, each of which may have been spoken before; empty: it is one."""
    begins: bool = False
    """No text: the model itself begins to speak, in the part of the flow it has come to."""
    told: CallOutput | None = None
    """No text: the model goes on with what came of a function of its own, later than it called it."""
    said: str = ""
    """What was heard of it before a session was lost, where the words are the model's."""
    breaks: int = 0
    """How many sessions were lost while it was said."""

    def spoken(self) -> "OwnWords":
        """The same words by voice, without a file."""
        return replace(self, audio="")


@dataclass(slots=True)
class SpokenReply:
    """One reply of ours, from asking for it to the last word heard."""

    reply_id: str
    kind: ReplyKind
    exact_text: str = ""
    speed: float = 1.0
    """The voice's setting when it was asked for."""
    may_call: bool = False
    """Functions were on offer; calls of any others are not looked at."""
    text: str = ""
    calls: list[ReplyCall] = field(default_factory=list)
    segments: list[str] = field(default_factory=list)
    """Playback items: more than one after a false interruption was taken back."""
    edges: dict[str, int] = field(default_factory=dict)
    """Of a segment that was cut: the byte from which the next one says it again."""
    held: bytearray = field(default_factory=bytearray)
    """Unheard audio while we are held: what `clear` threw away, then `held_late_bytes` that came since."""
    held_late_bytes: int = 0
    audio_ms: float = 0.0
    """All of its audio that has come, heard or not."""
    first_audio_at_ms: float | None = None
    is_complete: bool = False
    is_broken: bool = False
    """Its session was lost in the middle: once this much is heard, it goes on."""
    ending: Ending | None = None
    words: OwnWords | None = None
    """What it says, if it is words of ours."""

    is_spoken: bool = False
    """By the text-to-speech endpoint."""

    def is_recorded(self) -> bool:
        """Not the model's voice: a sound file of the business, or the text-to-speech endpoint's."""
        return self.is_spoken or (self.words is not None and bool(self.words.audio))

    def note(self, call: ReplyCall) -> None:
        """Keep a call until the reply is complete. One told twice is one call; one not on offer is none."""
        if self.may_call and all(c.call_id != call.call_id for c in self.calls):
            self.calls.append(call)


@dataclass(slots=True)
class FinishedExchange:
    """An exchange that was spoken and heard, waiting for the last transcript before it becomes a page."""

    exchange_no: int
    turn: Turn
    heard: Heard
    """Of the reply. Not whole: interrupted, its text estimated."""
    flow_node: str
    language: str
    latency: Latency
    trust: Trust = Trust.NUMBER

    def release(self) -> None:
        """It is kept as a page: here only its words are still wanted."""
        self.turn.release()
        self.heard = replace(self.heard, ulaw=b"")


def add_usage(a: Usage, b: Usage | None) -> Usage:
    """Tokens of two responses that made one reply; None: not known of the second. One estimate makes it one."""
    if b is None:
        return a
    counts = (name for name in Usage.__slots__ if name != "is_estimate")
    added = {name: getattr(a, name) + getattr(b, name) for name in counts}
    return Usage(**added, is_estimate=a.is_estimate or b.is_estimate)
