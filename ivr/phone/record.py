"""What happened in one simulated call, and what both sides sounded like, on one timeline from dialling on."""

import array
import audioop
import wave
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from ivr.phone.line import RATE_HZ, silence_ulaw


class EventKind(StrEnum):
    """What a CallEvent tells; in brackets what its `text` holds."""

    WEBHOOK = "webhook"  # a request to the service was answered [path], status
    VERB = "verb"  # a TwiML verb begins [its name and, for Dial, the targets]
    ANSWERED = "answered"
    STREAM_STARTED = "stream-started"  # [stream sid]
    STREAM_ENDED = "stream-ended"  # [why]; unheard audio in ms is `value`
    SAID = "said"  # the caller spoke [words], until_ms
    HEARD = "heard"  # the far side was audible, until_ms
    DTMF = "dtmf"  # one key was sent [the key]
    MARK = "mark"  # a mark was echoed because it was reached [name]
    MARK_CLEARED = "mark-cleared"  # a mark was echoed because of a clear [name]
    CLEAR = "clear"  # the service cleared the queue; audio thrown away in ms is `value`
    PROMPT = "prompt"  # a Say's words, as played by the network [words]
    WHISPERED = "whispered"  # who was called was told this before they were connected [words]
    REST = "rest"  # the service changed the call by REST [status, url or twiml]
    VIOLATION = "violation"  # [what the service did wrong]
    ENDED = "ended"  # [EndReason]


@dataclass(frozen=True)
class CallEvent:
    """One thing that happened, in ms since dialling. `until_ms` where it lasted."""

    at_ms: int
    kind: EventKind
    text: str = ""
    until_ms: int | None = None
    status: int | None = None
    value: float | None = None


class EndReason(StrEnum):
    CALLER_HUNG_UP = "caller-hung-up"
    SERVICE_HUNG_UP = "service-hung-up"  # <Hangup/>
    TWIML_ENDED = "twiml-ended"  # the document ran out
    REST_COMPLETED = "rest-completed"
    REJECTED = "rejected"
    LINE_DROPPED = "line-dropped"
    FAILED = "failed"  # no usable TwiML: Twilio says an application error has occurred


@dataclass(frozen=True)
class CallRecord:
    """The whole call. `said_ulaw` and `heard_ulaw` are as long as each other, 8 kHz µ-law."""

    call_sid: str
    end: EndReason
    events: tuple[CallEvent, ...]
    violations: tuple[str, ...]
    said_ulaw: bytes = field(repr=False)
    heard_ulaw: bytes = field(repr=False)
    max_queued_ms: float = 0.0

    @property
    def duration_ms(self) -> float:
        """From dialling to the end."""
        return len(self.heard_ulaw) * 1_000 / RATE_HZ

    def of(self, kind: EventKind) -> tuple[CallEvent, ...]:
        """The events of one kind, in order."""
        return tuple(event for event in self.events if event.kind is kind)

    def reply_delays_ms(self) -> list[int | None]:
        """For each utterance of the caller: from its last voiced frame to the next onset of the far side
        before the caller's next utterance, or None."""
        said = self.of(EventKind.SAID)
        onsets = [event.at_ms for event in self.of(EventKind.HEARD)]
        delays: list[int | None] = []
        for at, event in enumerate(said):
            ended_ms = event.at_ms if event.until_ms is None else event.until_ms
            next_ms = said[at + 1].at_ms if at + 1 < len(said) else None
            after = [onset for onset in onsets if onset >= ended_ms and (next_ms is None or onset < next_ms)]
            delays.append(min(after) - ended_ms if after else None)
        return delays

    def heard_between(self, from_ms: float, until_ms: float) -> bytes:
        """What the caller heard in that stretch, µ-law."""
        return self.heard_ulaw[int(from_ms * RATE_HZ // 1_000) : int(until_ms * RATE_HZ // 1_000)]

    def write_wav(self, path: Path) -> None:
        """Write both sides as a 16-bit stereo WAV at 8 kHz: left the caller, right what the caller heard."""
        path.parent.mkdir(parents=True, exist_ok=True)
        left, right = (audioop.ulaw2lin(side, 2) for side in (self.said_ulaw, self.heard_ulaw))
        frames = array.array("h", bytes(len(left) * 2))
        frames[0::2] = array.array("h", left)
        frames[1::2] = array.array("h", right)
        with wave.open(str(path), "wb") as file:
            file.setnchannels(2)
            file.setsampwidth(2)
            file.setframerate(RATE_HZ)
            file.writeframes(frames.tobytes())


class Tape:
    """Both sides as they go by, one frame of each at a time."""

    def __init__(self) -> None:
        self.said = bytearray()
        self.heard = bytearray()

    def add(self, said: bytes, heard: bytes) -> None:
        self.said += said
        self.heard += heard

    def pad_to(self, duration_ms: float) -> None:
        """Fill both sides up with silence."""
        for side in (self.said, self.heard):
            side += silence_ulaw(duration_ms)[len(side) :]
