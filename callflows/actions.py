"""What a flow wants done, in the order given. Carrying an action out twice must do no harm."""

from dataclasses import dataclass


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
class HangUp:
    """Say `say` (if any), then end the call."""

    say: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The call is at `node` now: its instructions and functions hold from here on."""

    node: str


Action = Say | Begin | Transfer | HangUp | Moved
