"""A business and its call flow: what a flow file says. Frozen; a `Business` that exists can be run."""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from callflows.fields import (
    Duration,
    Fact,
    Language,
    Line,
    Name,
    PhoneNumber,
    Prose,
    ResumeText,
    Slug,
    Spoken,
    SpokenNow,
    TimeZone,
    Topic,
    Voice,
)

REFERENCE_ERROR = "flow_reference"
"""Type of the error a `Business` raises for names that lead nowhere; the parser tells those by place."""

_TWO_HOURS = timedelta(hours=2)


class Part(BaseModel):
    """What all parts of a flow file share: frozen, and nothing unknown is let through."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)


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
    say: Spoken = Field("", description="What the caller is told before being connected.")


class ResumePolicy(Part):
    """What happens when a caller who was cut off calls again."""

    within: Duration = Field(
        _TWO_HOURS, description="How long a call that broke off can be taken up: 2h, 30m."
    )
    greeting: Literal["offer", "straight", "never"] = Field(
        "offer", description="offer: ask whether to go on; straight: go on; never: greet as a new call."
    )
    say: ResumeText = Field("", description="The offer in your own words or language; {topic} is filled in.")


class Limits(Part):
    """Bounds of one call."""

    max_call_minutes: int = Field(60, ge=1, le=240)
    silence_s: float = Field(8, ge=2, le=60, allow_inf_nan=False, description="Silence before a reminder.")
    reprompts: int = Field(2, ge=0, le=5, description="Reminders before the call is ended.")


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


class ModelDown(Part):
    """What a caller hears, by the telephone network's own voice, when there is no speech model."""

    say: SpokenNow = (
        "We are sorry, our assistant cannot take your call right now. Please call again in a few minutes."
    )
    transfer: Name | None = Field(None, description="The target to connect the caller to afterwards.")


class Exit(Part):
    """A way out of a talking node."""

    to: Name = Field(description="The node to go to.")
    when: Line = Field(description="When the speech model is to take this exit.")


class Talk(Part):
    """The speech model talks with the caller until an exit, a transfer or the end of the call."""

    type: Literal["talk"]
    instructions: Prose = Field(min_length=1, description="What to do in this part of the call.")
    topic: Topic = Field("", description="What this part is about, as said in 'we were talking about …'.")
    transfers: tuple[Name, ...] | None = Field(None, description="Targets allowed here; all when left out.")
    exits: dict[Name, Exit] = Field({}, max_length=12)


class TransferNode(Part):
    """Connects the caller to a target; the flow is over."""

    type: Literal["transfer"]
    target: Name
    say: Spoken = ""


class HangUpNode(Part):
    """Ends the call; the flow is over."""

    type: Literal["hangup"]
    say: Spoken = ""


Node = Annotated[Talk | TransferNode | HangUpNode, Field(discriminator="type")]


class Business(Part):
    """One business: its numbers, what it wants said, and its flow. All names in it lead somewhere."""

    version: int = Field(1, ge=1, le=1, description="Version of this file's form.")
    id: Slug
    name: Line
    numbers: tuple[PhoneNumber, ...] = Field(min_length=1, max_length=100)
    timezone: TimeZone
    language: Language = "en-US"
    voice: Voice = "marin"
    orchestration: Orchestration = Field(
        Orchestration.JOINT,
        description="Who tells an unfinished turn on a bad line from a finished one: off (nobody), local (our own "
        "measurements), model (the speech model) or joint (measurements first, then the model).",
    )
    greeting: SpokenNow
    instructions: Prose = ""
    facts: tuple[Fact, ...] = Field((), description="Full sentences, the most important first.")
    transfers: dict[Name, Target] = Field({}, max_length=20)
    resume: ResumePolicy = ResumePolicy()
    limits: Limits = Limits()
    memory: MemoryUse = MemoryUse()
    retention_days: int | None = Field(
        None,
        ge=1,
        le=3_650,
        description="How many days after a call what was said is kept. Left out: until `ivr callers forget`.",
    )
    on_model_down: ModelDown = ModelDown()
    start: Name
    nodes: dict[Name, Node] = Field(min_length=1, max_length=200)

    def allowed_transfers(self, node: Talk) -> tuple[str, ...]:
        """Names of the targets `node` may transfer to, in the file's order."""
        return tuple(self.transfers) if node.transfers is None else node.transfers

    @model_validator(mode="after")
    def _names_lead_somewhere(self) -> Self:
        targets, links = referred(self.nodes)
        if self.on_model_down.transfer is not None:
            targets |= {self.on_model_down.transfer}
        lost = sorted((targets - self.transfers.keys()) | (links - self.nodes.keys()))
        if lost or not isinstance(self.nodes.get(self.start), Talk):
            names = ", ".join(lost) or self.start
            raise PydanticCustomError(REFERENCE_ERROR, "names that lead nowhere: {names}", {"names": names})
        return self


def referred(nodes: dict[str, Node]) -> tuple[set[str], set[str]]:
    """The names of all targets and of all nodes that `nodes` refer to."""
    targets: set[str] = set()
    links: set[str] = set()
    for node in nodes.values():
        match node:
            case Talk():
                targets.update(node.transfers or ())
                links.update(way.to for way in node.exits.values())
            case TransferNode():
                targets.add(node.target)
            case HangUpNode():
                pass
    return targets, links
