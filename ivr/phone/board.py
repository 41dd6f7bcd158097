"""What the parts of one simulated call share: the handset, the diary, and the I/O still to be carried out.

Pure: parts leave effects here, the driver (`ivr.phone.call`) carries them out, in order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ivr.phone.mouth import Mouth
from ivr.phone.playback import Ear, Playback
from ivr.phone.record import CallEvent, EventKind, Tape
from ivr.phone.twiml import Verb

Form = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FetchDocument:
    """Ask the service what to do. `serial` comes back with the answer: an answer to an older one is stale."""

    serial: int
    url: str
    method: str
    form: Form


@dataclass(frozen=True)
class FetchAudio:
    """Get a `<Play>`'s audio."""

    serial: int
    url: str


@dataclass(frozen=True)
class FetchCalled:
    """Ask the service what to do with who was called, before they are connected."""

    serial: int
    url: str
    form: Form


@dataclass(frozen=True)
class Notify:
    """A status callback: its answer changes nothing."""

    url: str
    form: Form


@dataclass(frozen=True)
class OpenStream:
    """Open the media socket at `url`, without a query; `serial` names this stream from now on."""

    serial: int
    url: str


@dataclass(frozen=True)
class SendText:
    serial: int
    text: str


@dataclass(frozen=True)
class CloseStream:
    """Close the socket after what was sent, or reset it at once."""

    serial: int
    reset: bool = False


Effect = FetchDocument | FetchAudio | FetchCalled | Notify | OpenStream | SendText | CloseStream


@dataclass(frozen=True)
class Next:
    """This verb is done; go on with the one after it."""


@dataclass(frozen=True)
class Goto:
    """Ask the service at `url` ("" is the present document's own) for a new document."""

    url: str
    method: str = "POST"
    form: Form = ()


Outcome = Next | Goto


@dataclass(frozen=True)
class DialOutcome:
    """How every `<Dial>` ends: after `ring_ms`, and if `completed` after `talk_ms` more.

    `key`: what who answers presses when they are asked whether they take the call. `by_number`: who behaves otherwise.
    """

    status: str = "completed"  # or busy, no-answer, failed, canceled
    ring_ms: int = 1_000
    talk_ms: int = 1_000
    key: str = ""
    by_number: Mapping[str, "DialOutcome"] = field(default_factory=dict)

    def of(self, number: str) -> "DialOutcome":
        """How a call to this number ends."""
        return self.by_number.get(number, self)


@dataclass(frozen=True)
class LineOutcome:
    """How every `<Enqueue>` goes: the place in the line, and when somebody takes the call; None: nobody does."""

    position: int = 1
    taken_after_ms: int | None = None
    talk_ms: int = 1_000


@dataclass
class Board:
    """One call's common ground. `now_ms` counts from dialling, in steps of one frame."""

    call_sid: str
    account_sid: str
    now_ms: int = 0
    playback: Playback = field(default_factory=Playback)
    mouth: Mouth = field(default_factory=Mouth)
    ear: Ear = field(default_factory=Ear)
    tape: Tape = field(default_factory=Tape)
    events: list[CallEvent] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def emit(self, effect: Effect) -> None:
        self.effects.append(effect)

    def take_effects(self) -> list[Effect]:
        """Everything left since the last time, in order."""
        effects, self.effects = self.effects, []
        return effects

    def note(self, event: CallEvent) -> None:
        self.events.append(event)

    def tell(
        self, kind: EventKind, text: str = "", *, status: int | None = None, value: float | None = None
    ) -> None:
        """Note an event of this moment."""
        self.note(CallEvent(self.now_ms, kind, text, status=status, value=value))

    def violation(self, text: str) -> None:
        """The service broke the protocol."""
        self.violations.append(text)
        self.tell(EventKind.VIOLATION, text)

    def tell_verb(self, verb: Verb, detail: str = "") -> None:
        name = type(verb).__name__.removesuffix("Verb")
        self.tell(EventKind.VERB, f"{name} {detail}".strip())
