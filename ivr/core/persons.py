"""Functions about the person on the line: who they are, and what may be kept of them.

What they do only ever takes memory away.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from ivr.core.commands import FunctionTool

_NO_ARGUMENTS = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


class Personal(Enum):
    """What was asked for: each is an effect by itself."""

    ANOTHER_PERSON = "another_person"
    REFUSE_RECORDING = "refuse_recording"
    FORGET_ME = "forget_me"
    CONFIRM_FORGET_ME = "confirm_forget_me"


@dataclass(frozen=True, slots=True)
class Rights:
    """What is open to this caller now, beside saying that they are somebody else."""

    may_refuse: bool = False
    """Calls are recorded, and they have not refused yet."""
    may_be_forgotten: bool = False
    may_confirm: bool = False
    """They asked to be forgotten in an earlier exchange."""


TOOLS = {
    Personal.ANOTHER_PERSON: FunctionTool(
        "another_person",
        "Somebody else is on the line than the person you remember or spoke with before: they say another name, that "
        "they are somebody else, or that they were handed the telephone. Call it before you answer.",
        _NO_ARGUMENTS,
    ),
    Personal.REFUSE_RECORDING: FunctionTool(
        "refuse_recording", "The caller does not want this call to be recorded or kept.", _NO_ARGUMENTS
    ),
    Personal.FORGET_ME: FunctionTool(
        "forget_me",
        "The caller wants everything that is remembered about them to be erased. Then ask them to confirm it.",
        _NO_ARGUMENTS,
    ),
    Personal.CONFIRM_FORGET_ME: FunctionTool(
        "confirm_forget_me",
        "The caller has just confirmed that everything remembered about them is to be erased.",
        _NO_ARGUMENTS,
    ),
}
OUTPUTS = {
    Personal.ANOTHER_PERSON: "What was said before was another person's: you know nothing of it. Answer without it.",
    Personal.REFUSE_RECORDING: "Noted: no recording of this call is kept. Tell the caller.",
    Personal.FORGET_ME: "Nothing is erased yet: ask whether really everything is to be erased.",
    Personal.CONFIRM_FORGET_ME: "Everything will be erased after 24 hours; until then the business can undo it. Tell "
    "the caller.",
}


def offered(rights: Rights) -> Iterator[Personal]:
    """What is on offer, always in this order."""
    yield Personal.ANOTHER_PERSON
    if rights.may_refuse:
        yield Personal.REFUSE_RECORDING
    if rights.may_be_forgotten:
        yield Personal.FORGET_ME
    if rights.may_confirm:
        yield Personal.CONFIRM_FORGET_ME
