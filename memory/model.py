"""The nouns of voice memory: exchanges, vpages, vthreads and the window projected from them. Pure."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Form(StrEnum):
    """The forms a page can take in a window, best first (paper, section on projection)."""

    AUDIO = "audio"
    TRANSCRIPT = "transcript"
    SUMMARY = "summary"
    OMITTED = "omitted"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose memory: one caller of one business. `caller` is E.164; `None` (withheld) owns no memory at all."""

    business_id: str
    caller: str | None


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


@dataclass(frozen=True, slots=True)
class CallSnapshot:
    """What another worker, or the next call, needs to go on: JSON-compatible, versioned by the core."""

    version: int
    state: dict[str, Any] = field(hash=False)
