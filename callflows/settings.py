"""What a flow file says of a business beside its nodes: a model for each part. Frozen."""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from callflows.fields import (
    Email,
    Line,
    ModelName,
    Name,
    PhoneNumber,
    Prose,
    Voice,
    fault,
)
from callflows.part import Part
from callflows.stock import MONEY_IS_SPENT, phrase
from callflows.texts import FixedTexts, Texts, text_in
from callflows.tools import PlainUrl, Secret


class Orchestration(StrEnum):
    """Who decides that a caller has not finished, where the line was bad (docs/design.md, turn-taking)."""

    OFF = "off"
    """Nobody: a pause ends a turn, whatever the network did."""
    LOCAL = "local"
    """We: a boundary whose silence the network made is provisional."""
    MODEL = "model"
    """The speech model, at every boundary, by its directives."""
    JOINT = "joint"
    """We first; the speech model where only the words can tell."""


class Target(Part):
    """Somebody a call may be transferred to. Only numbers written here can ever be dialled."""

    number: PhoneNumber
    description: Line = Field(description="Who answers there and for what; the speech model chooses by it.")
    say: Texts = Field({}, description="What the caller is told before being connected.")


class Models(Part):
    """Models of this business's calls in place of the service's. The offline sandbox has none to choose from."""

    realtime: ModelName | None = Field(None, description="The speech model: gpt-realtime-2.1-mini.")
    transcribe: ModelName | None = Field(None, description="What writes down the caller's words.")


class Limits(Part):
    """Bounds of one call."""

    max_call_minutes: int = Field(60, ge=1, le=240)
    silence_s: float = Field(8, ge=2, le=60, allow_inf_nan=False, description="Silence before a reminder.")
    reprompts: int = Field(2, ge=0, le=5, description="Reminders before the call is ended.")


Extent = Literal["nothing", "resumed", "all"]
EXTENTS: tuple[Extent, ...] = ("nothing", "resumed", "all")
"""The less comes first."""


class Hears(Part):
    """What of a caller's past the model is shown, by how sure it is who calls: never more than a surer caller hears.

    nothing: each call begins anew; resumed: the call that broke off and is taken up, and no other; all: earlier calls
    too.
    """

    number: Extent = Field("resumed", description="Who calls from the number, whoever sent it.")
    attested: Extent = Field("all", description="Whose network vouches for the number (STIR/SHAKEN level A).")
    verified: Extent = Field("all", description="Who has given their PIN in this call.")

    @model_validator(mode="after")
    def _rises(self) -> Self:
        levels = [EXTENTS.index(extent) for extent in (self.number, self.attested, self.verified)]
        if levels != sorted(levels):
            raise fault("a surer caller would hear less", "number: resumed, attested: all, verified: all")
        return self


class MemoryUse(Part):
    """How what callers said before is brought back."""

    strategy: Literal["vthreads", "page-rag", "hybrid-rag", "compaction", "hierarchical", "full"] = Field(
        "vthreads",
        description="vthreads finds what the question needs; the others are for comparison (docs/memory.md).",
    )
    budget_tokens: int = Field(
        1_500, ge=300, le=30_000, description="Tokens of history shown to the model in a turn."
    )
    audio_turns: int = Field(
        2,
        ge=0,
        le=2,
        description="So many latest turns are shown as audio, which costs 8 times what text does.",
    )
    hears: Hears = Field(Hears(), description="What callers hear of their past, by how sure it is who calls.")
    silent_days: int = Field(
        45,
        ge=1,
        le=3_650,
        description="A number not heard of for so long may be somebody else's by now: only a PIN brings it back.",
    )


class Consent(Part):
    """What follows when a caller does not want to be recorded. They are asked by `announcement`."""

    refusal: Literal["no_audio", "no_memory"] = Field(
        "no_audio",
        description="no_audio: only what was said is kept, as text; no_memory: nothing of the call is.",
    )


class Spending(Part):
    """Ceilings in US dollars, by the estimate of memory/prices.toml; none where left out."""

    per_call_usd: float | None = Field(None, gt=0, allow_inf_nan=False, description="What one call may cost.")
    per_month_usd: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="What all calls of a calendar month may cost (the zone's).",
    )
    say: FixedTexts = Field(
        {},
        description="What the caller is told when a ceiling is reached, before being connected or hung up on; left "
        "out, that we have to end the call.",
    )
    transfer: Name | None = Field(None, description="The target to connect the caller to then.")

    def say_in(self, language: str) -> str:
        """What is said at a ceiling, in the language that the call is in."""
        return text_in(self.say, language) or phrase(MONEY_IS_SPENT, language)


class BusinessDocument(Part):
    """A longer text about the business: what a caller asks about is looked up in it."""

    title: Line
    text: Annotated[Prose, StringConstraints(min_length=1)]


class FurtherLanguage(Part):
    """A further language of the business."""

    voice: Voice | None = Field(None, description="Its voice; the business's own when left out.")


class Callers(Part):
    """Callers that are treated in a way of their own, by number."""

    blocked: tuple[PhoneNumber, ...] = Field((), max_length=1_000, description="Hear `say` and no more.")
    owners: tuple[PhoneNumber, ...] = Field(
        (), max_length=20, description="May set hours by telephone, with their PIN."
    )
    staff: tuple[PhoneNumber, ...] = Field(
        (), max_length=100, description="May take callers out of a line, with their PIN."
    )
    vip: tuple[PhoneNumber, ...] = Field((), max_length=1_000, description="For `caller: vip` in a branch.")
    say: FixedTexts = Field({}, description="What a blocked caller hears; nothing when left out.")


class Notices(Part):
    """Where the business itself is told what it should know."""

    email: tuple[Email, ...] = Field(
        (), max_length=10, description="Addresses; messages of callers go there."
    )


class Commands(Part):
    """Words that work wherever the caller is listened to; left out, they are the usual ones of the language."""

    operator: tuple[Line, ...] | None = Field(None, max_length=30, description="To reach `operator`.")
    repeat: tuple[Line, ...] | None = Field(None, max_length=30)
    start_over: tuple[Line, ...] | None = Field(None, max_length=30)
    goodbye: tuple[Line, ...] | None = Field(None, max_length=30)


class Emergency(Part):
    """Words upon which a text is said at once, wherever the caller is."""

    words: tuple[Line, ...] = Field(min_length=1, max_length=50)
    say: Texts = Field(min_length=1)
    transfer: Name | None = Field(None, description="The target to connect the caller to afterwards.")


class Webhook(Part):
    """A system of the business that is told what happens."""

    url: PlainUrl = Field(description="https, its host among allow_hosts.")
    secret: Secret = Field(description="${NAME} of the key that signs what is sent (HMAC-SHA256).")
    events: tuple[Literal["call_ended", "voicemail"], ...] = Field(
        ("call_ended", "voicemail"), min_length=1, max_length=2, description="What it is told of."
    )
