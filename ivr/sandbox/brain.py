"""What decides what a session hears and answers: the thinking sandbox or a script, behind one protocol."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from ivr.sandbox.pcm import Tone


class Who(StrEnum):
    """Whose line it is in what a response is given."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    OUTPUT = "output"
    DOCUMENT = "document"
    """A passage of the business's own papers, among what a response is given."""


@dataclass(frozen=True)
class Line:
    """One thing said or done. For CALL and OUTPUT, `name` is the function's and `text` its JSON."""

    who: Who
    text: str
    name: str = ""
    item_id: str = ""
    recorded: bool = False
    """Told by a record of earlier talk, not part of this one."""


@dataclass(frozen=True)
class ToolSpec:
    """A function that may be called; `parameters` is its JSON Schema."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Question:
    """All a response may be made of: nothing else is known to a brain."""

    instructions: str
    lines: tuple[Line, ...]
    tools: tuple[ToolSpec, ...] = ()
    text_only: bool = False
    """Words are asked for, no audio."""


@dataclass(frozen=True)
class Call:
    """A function to call; `arguments` is text, JSON unless a script says otherwise."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What a response is to be."""

    say: str = ""
    calls: tuple[Call, ...] = ()
    tone: Tone | None = None
    """Sounds instead of the voice."""
    delay_ms: float = 0
    pace_ms: float = 20
    """Time between chunks of 200 ms: 20 is ten times real time, as a provider is faster than speech."""
    failure: str = ""
    """Error code the response fails with."""
    close_code: int = 0
    abort: bool = False
    break_after_ms: float = 0
    """How much audio is sent before failure, close or abort."""
    raw: tuple[str, ...] = ()
    """JSON texts sent, as they are, before the answer."""


class Outcome(StrEnum):
    """How a transcription ends."""

    COMPLETED = "completed"
    FAILED = "failed"
    NEVER = "never"


@dataclass(frozen=True)
class HearPlan:
    """How to transcribe a turn: by ear (`listen`), or `text` after `delay_ms`."""

    listen: bool
    text: str = ""
    outcome: Outcome = Outcome.COMPLETED
    delay_ms: float = 0
    times: int = 1
    """How often the transcript is sent."""


@dataclass(frozen=True)
class Manners:
    """How the server behaves towards a whole session."""

    before_ready_ms: float = 0
    partials_ms: float = 0
    """Words are told while the user speaks, each so many ms of speech; 0: only in the end."""
    refuse_update: bool = False
    refuse_out_of_band: bool = False
    created_delay_ms: float = 0
    lifetime_ms: float = 60 * 60 * 1_000


class Brain(Protocol):
    """Decides; does nothing itself."""

    @property
    def manners(self) -> Manners:
        """Behaviour towards the session."""
        ...

    def hear(self, item_id: str) -> HearPlan:
        """A turn was committed."""
        ...

    def answer(self, question: Question) -> Answer:
        """A response was asked for and everything it refers to was heard."""
        ...
