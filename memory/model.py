"""The nouns of voice memory: exchanges, vpages, vthreads, the window projected from them, what is paid. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

LATE_NO = 100_000
"""Added to the number of an exchange whose call went on elsewhere meanwhile, with numbers of its own."""


class Form(StrEnum):
    """The forms a page can take in a window, best first (paper, section on projection)."""

    AUDIO = "audio"
    TRANSCRIPT = "transcript"
    SUMMARY = "summary"
    OMITTED = "omitted"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory: one caller of one business. `caller` is E.164 or an address; `None` (withheld) owns no memory."""

    business_id: str
    caller: str | None


class Trust(IntEnum):
    """How sure it is that the caller is who the number says: the higher, the surer."""

    NONE = 0
    """No number: nobody."""
    NUMBER = 1
    """A number that anybody could have sent."""
    ATTESTED = 2
    """The caller's network vouches for the number."""
    VERIFIED = 3
    """They have shown who they are, in this call."""


class EndedBy(StrEnum):
    """Whose doing the end of a call was, as far as we can tell."""

    US = "us"
    """It came to its end, or we gave up waiting for a word."""
    CALLER = "caller"
    """They hung up."""
    NETWORK = "network"
    """The caller's line was bad, and then gone."""
    WORKER = "worker"
    """Whoever carried the call died, and it was gone before it could be brought back."""
    MODEL = "model"
    """No speech model was to be had."""
    TWILIO = "twilio"
    """Its stream broke, or would not hold, without a word about why."""


@dataclass(frozen=True, slots=True)
class Access:
    """What of the pages of a caller a turn may be made of. What it may not is not looked at at all.

    `resumed`: those of the call that this one goes on with; `older`: those of all other calls; both only if they were
    spoken at no more than `trust`, but what was verified only by who is verified. `only_verified`: no others.
    `since_no`: the call's own count from this exchange on. `after_s`: those of other calls from this Unix time on.
    """

    resumed: bool = True
    older: bool = True
    trust: Trust = Trust.VERIFIED
    only_verified: bool = False
    since_no: int = 1
    after_s: float = 0.0

    def is_all(self) -> bool:
        """Nothing is held back."""
        return self == ALL_OF_IT


ALL_OF_IT = Access()


def is_since(exchange_no: int, since_no: int) -> bool:
    """Whether an exchange of the call counts from that number on; a late one was before it, whenever it was."""
    return since_no <= 1 or since_no <= exchange_no < LATE_NO


@dataclass(frozen=True, slots=True)
class Exchange:
    """One finished exchange, as it was heard: the caller's turn and the part of the reply that was played.

    Audio is µ-law 8 kHz. `usage` holds token counts and the cost estimate; `states` the snapshots of the turn.
    """

    call_id: str
    exchange_no: int
    user_text: str
    reply_text: str
    user_ulaw: bytes = field(repr=False, default=b"")
    reply_ulaw: bytes = field(repr=False, default=b"")
    interrupted: bool = False
    user_item_id: str = ""
    flow_node: str = ""
    usage: dict[str, Any] = field(default_factory=dict, hash=False)
    states: dict[str, Any] = field(default_factory=dict, hash=False)
    language: str = "en"
    """The tag of the language that was spoken."""
    trust: Trust = Trust.NUMBER
    """At which it was spoken."""
    is_late: bool = False
    """It comes from the disk, long after it was spoken."""
    spoken_at: datetime | None = None
    """When it was finished, if it is late and this is known."""


@dataclass(frozen=True, slots=True)
class Page:
    """A vpage as retrieval sees it. Audio is named, not carried: fsspec paths, empty where there is none."""

    page_id: int
    call_id: str
    exchange_no: int
    user_text: str
    reply_text: str
    summary: str
    user_audio_path: str
    reply_audio_path: str
    user_audio_ms: int
    reply_audio_ms: int
    interrupted: bool
    user_item_id: str
    created_at: datetime
    trust: Trust = Trust.NUMBER


@dataclass(frozen=True, slots=True)
class WindowEntry:
    """One page in the window, in the form it was given. `tokens` is the estimate the projector charged.

    `text`, where not empty, stands in the window for the page, with its speaker's label: one side word for word
    (`form` is then transcript), or the sentence of it that the query asked for (summary).
    """

    page: Page
    form: Form
    tokens: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Window:
    """The projected history, in conversational order, with what it cost of its budget.

    `threads` are summaries of matched vthreads, or of what a strategy compacted; `covers`, where known, the ids of the
    pages that each is of. `omitted` counts candidates that did not fit. `facts` are passages of the business's
    documents.
    """

    entries: tuple[WindowEntry, ...] = ()
    threads: tuple[str, ...] = ()
    tokens: int = 0
    budget_tokens: int = 0
    omitted: int = 0
    covers: tuple[tuple[int, ...], ...] = ()
    facts: tuple[str, ...] = ()


MAY_RETURN = "may_return"


@dataclass(frozen=True, slots=True)
class CallSnapshot:
    """What another worker, or the next call, needs to go on: JSON-compatible, versioned by the core.

    `state["resumed"]` says whether the call went on with the one it was offered, `state[MAY_RETURN]` whether its caller
    may be called back should it break off: the store reads them.
    """

    version: int
    state: dict[str, Any] = field(hash=False)


class ChargeKind(StrEnum):
    """What was paid for."""

    SPEECH = "speech"
    """A response of the speech model, whatever came of it: answers, prompts, decisions, what was cancelled."""
    TRANSCRIPTION = "transcription"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class Charge:
    """Something that was paid for, by the price table. `charge_id` makes writing it twice the same as once.

    `is_estimate`: the tokens too are an estimate, because the provider did not tell them.
    """

    charge_id: str
    kind: ChargeKind
    model: str
    usd: float
    at: datetime
    is_estimate: bool = False
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
