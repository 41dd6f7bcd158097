"""What a node may know, what it may answer, and what every kind of node declares about itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from callflows.actions import HangUp, Say, SetHours
from callflows.away import Away, Came, Errand, Trip, Whisper
from callflows.orders import NEVER_CALLED_BACK, CalledBack, Kind
from callflows.part import Part
from callflows.texts import filled, text_in

Pattern = tuple[str, ...]
"""A path inside a node: field names, `*` for any one step, `**` for any number of them."""


@dataclass(frozen=True, slots=True)
class Key:
    """The caller pressed a key (`0-9*#`)."""

    digit: str


@dataclass(frozen=True, slots=True)
class KeysDone:
    """No further key came for as long as the node waits between two."""


@dataclass(frozen=True, slots=True)
class Words:
    """The caller said this; empty when it could not be understood."""

    text: str


@dataclass(frozen=True, slots=True)
class Silence:
    """The caller said and pressed nothing for as long as the node waits."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What came of the tool that was used with this key. `body` is JSON as it came; None where it failed."""

    key: str
    body: object
    is_failed: bool = False


Event = Key | KeysDone | Words | Silence
"""What the caller does."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the caller stands within a node that waits. `keys` is never journalled."""

    no_input: int = 0
    no_match: int = 0
    candidate: Any = None
    """A value that was read back and waits for a yes."""
    keys: str = ""


@dataclass(frozen=True, slots=True)
class Here:
    """What a node may know when it is asked."""

    language: str
    now: datetime | None
    """The business's local time."""
    region: str
    """Where numbers without a country code belong: US."""
    slots: Mapping[str, Any]
    caller: str | None
    is_vip: bool
    is_owner: bool
    is_staff: bool
    is_open: Callable[[str], bool]
    spoken: Mapping[str, str]
    """What slots sound like; without the secret ones."""
    progress: Progress = Progress()
    may_order: bool = True
    """The call has not ordered as much as it may."""
    called_back: CalledBack = NEVER_CALLED_BACK
    on_duty: Callable[[str], tuple[str, ...]] = lambda _: ()
    """The targets on duty by a rota."""
    next_open: Callable[[str], datetime | None] = lambda _: None
    """When a schedule opens next; None: not within two weeks, or the time is not known."""

    def text(self, texts: Mapping[str, str]) -> str:
        """The text in the call's language, its slots filled in; empty if there is none."""
        return filled(text_in(texts, self.language), self.spoken)


@dataclass(frozen=True, slots=True)
class Awaited:
    """What a node waits for. Times in seconds; `keys` says whether keys count, `words` whether speech does."""

    words: bool
    keys: bool
    silence_s: float
    key_wait_s: float
    secret: bool = False
    """Nobody but us may hear or keep what is entered now."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Something to be done beside the call, for the caller's own number unless a target is named."""

    kind: Kind
    text: str = ""
    due: str = ""
    """ISO time with a zone; empty: now."""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A node's answer: what is said, then on to `to`, or the end, or staying with `progress`."""

    say: tuple[Say, ...] = ()
    to: str = ""
    end: HangUp | None = None
    leave: Errand | None = None
    """The call leaves our stream."""
    wish: Wish | None = None
    may_return: bool | None = None
    """Whether the caller agrees to be called back should the call break off; None: they were not asked."""
    told: str = ""
    """What the caller is told first of all, by whoever speaks then."""
    progress: Progress | None = None
    slots: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, Any] = field(default_factory=dict)
    language: str = ""
    use: str = ""
    """Use this tool, and stay until it answers."""
    check: str = field(default="", repr=False)
    """Have this PIN checked, and stay until that is done."""
    hours: SetHours | None = None
    """Set hours by hand."""


class NodeBase(Part):
    """What every kind of node declares and does."""

    LINKS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of other nodes stand."""
    TARGETS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of transfer targets stand."""
    SCHEDULES: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of hours stand."""
    ROTAS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of rotas stand."""
    LANGUAGES: ClassVar[tuple[Pattern, ...]] = ()
    """Where languages of the business stand."""
    READS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of slots stand that are looked at."""
    FILLS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of slots stand that are filled."""
    TEXTS: ClassVar[tuple[Pattern, ...]] = ()
    """Where texts by language stand."""
    UNSPOKEN: ClassVar[tuple[Pattern, ...]] = ()
    """Which of these our own voice does not say to the caller."""
    QUEUES: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of nodes of type `queue` stand, which are no ways to go."""
    TOOLS: ClassVar[tuple[Pattern, ...]] = ()
    """Where the names of tools stand."""
    CAN_START: ClassVar[bool] = True
    """Whether a call may begin here."""
    WAITS: ClassVar[bool] = False
    """Whether the call stays here until something happens; other nodes are passed at once."""
    NEEDS_PIN: ClassVar[bool] = False
    """Whether only a `verify` node whose PIN was right may lead here, by whatever way."""
    NEEDS_CALLER: ClassVar[bool] = True
    """Whether only the caller leads on from a node that waits: a circle without such a node has no end."""

    LEAVES: ClassVar[bool] = False
    """Whether a call leaves our stream from here, and may come back."""

    def enter(self, here: Here) -> Outcome:
        """The call has come here."""
        raise NotImplementedError

    def take(self, event: Event, here: Here) -> Outcome:
        """Something happened while the call waits here."""
        return Outcome(progress=here.progress)

    def answered(self, values: Mapping[str, Any] | None, here: Here) -> Outcome:
        """The tool that the node waits for gave these values; None: it failed."""
        return Outcome(progress=here.progress)

    def checked(self, is_right: bool, here: Here) -> Outcome:
        """The PIN that the node had checked is right, or is not."""
        return Outcome(progress=here.progress)

    def awaits(self, here: Here) -> Awaited | None:
        """What is waited for; None for a node that does not wait, or whose talk the model leads."""
        return None

    def away(self, numbers: tuple[str, ...], here: Here) -> Away | None:
        """What a call does that has left our stream from here, these numbers being its targets'."""
        return None

    def whispered(self, here: Here) -> Whisper | None:
        """What who is called from here hears before they are connected, if anything."""
        return None

    def returned(self, came: Came, trip: Trip, here: Here) -> Outcome:
        """A call that had left here is back."""
        return Outcome()


def walk(
    value: Any, pattern: Pattern, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value of nested mappings and lists that a pattern leads to, with its path."""
    if not pattern:
        yield path, value
        return
    step, rest = pattern[0], pattern[1:]
    if step == "**":
        yield from walk(value, rest, path)
        rest = pattern
    inner: Iterator[tuple[str | int, Any]]
    if isinstance(value, Mapping):
        inner = iter(value.items())
    elif isinstance(value, list | tuple):
        inner = iter(enumerate(value))
    else:
        return
    for name, each in inner:
        if step in ("*", "**") or step == name:
            yield from walk(each, rest, (*path, name))
