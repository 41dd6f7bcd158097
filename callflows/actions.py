"""What a flow wants done, in the order given. Carrying an action out twice must do no harm."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from callflows.hours import Override
from callflows.orders import Order


@dataclass(frozen=True, slots=True)
class Say:
    """Say a text exactly, or play `audio` (a file beside the flow file, with `text` as its words)."""

    text: str
    audio: str = ""
    interruptible: bool = True


@dataclass(frozen=True, slots=True)
class Begin:
    """The call came to a talking node without a word of the caller to answer: the model speaks first."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """Say `say` (if any), then connect the caller to `number` (E.164, from the flow file)."""

    target: str
    number: str
    say: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Say `say`, then leave the call to the telephone network: `callflows.engine.away` says for what."""

    say: str


@dataclass(frozen=True, slots=True)
class HangUp:
    """Say `say` (if any), then end the call."""

    say: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The call is at `node` now: its instructions and functions hold from here on."""

    node: str


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request without its secrets: `${NAME}` in headers, and `secret`, are names of the environment.

    `body` is JSON text; None: none. `secret` names the key that signs it; empty: it is not signed.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: str | None
    secret: str
    timeout_s: float
    retries: int


@dataclass(frozen=True, slots=True)
class UseTool:
    """Send a tool's request, once for each `key`, and answer with `ToolAnswer`. None: it cannot be sent."""

    key: str
    tool: str
    request: Request | None = field(repr=False)
    """May hold what the caller said, secrets too."""


@dataclass(frozen=True, slots=True)
class CheckPin:
    """Check the PIN that the caller entered, once for each key, and answer with `ToolAnswer`: its body is a bool."""

    key: str
    pin: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SetHours:
    """A schedule is open, or closed, until then, by hand; None: the file's hours hold again."""

    schedule: str
    is_open: bool | None
    until: datetime

    def after(self, overrides: Mapping[str, Override]) -> dict[str, Override]:
        """What is set by hand once this is done."""
        others = {name: each for name, each in overrides.items() if name != self.schedule}
        return (
            others if self.is_open is None else {**others, self.schedule: Override(self.is_open, self.until)}
        )


@dataclass(frozen=True, slots=True)
class Told:
    """The model is to go on with what came of a function that it called. `output` is JSON: data."""

    name: str
    arguments: str
    output: str


Action = Say | Begin | Transfer | Leave | HangUp | Moved | UseTool | CheckPin | SetHours | Told | Order
