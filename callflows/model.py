"""A business and its call flow: what a flow file says. Frozen; a `Business` that exists can be run."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from callflows.down import ModelDown
from callflows.fields import (
    Email,
    Fact,
    Language,
    Line,
    Name,
    PhoneNumber,
    Prose,
    Slug,
    Spoken,
    SpokenNow,
    TimeZone,
    Voice,
    fault,
)
from callflows.hours import Hours
from callflows.nodes.base import NodeBase, Pattern, walk
from callflows.nodes.ends import HangUpNode
from callflows.nodes.queue import QueueNode
from callflows.nodes.registry import Node
from callflows.nodes.rings import TransferNode
from callflows.nodes.talk import Exit, Talk
from callflows.nodes.tool import ToolNode
from callflows.part import Part
from callflows.resuming import ResumePolicy
from callflows.rota import Rota
from callflows.texts import Texts
from callflows.tools import Host, PlainUrl, Secret, Tool, env_names, host_of

__all__ = [
    "REFERENCE_ERROR",
    "Business",
    "BusinessDocument",
    "Exit",
    "HangUpNode",
    "Node",
    "Orchestration",
    "Part",
    "Talk",
    "Target",
    "TransferNode",
    "names_in",
    "referred",
]

REFERENCE_ERROR = "flow_reference"
"""Type of the error a `Business` raises for names that lead nowhere; the parser tells those by place."""


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
    say: SpokenNow = Field(
        "I'm sorry, I have to end our call here. Please call again. Goodbye.",
        description="What the caller is told when a ceiling is reached, before being connected or hung up on.",
    )
    transfer: Name | None = Field(None, description="The target to connect the caller to then.")


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
    say: Texts = Field({}, description="What a blocked caller hears; nothing when left out.")


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


class Business(Part):
    """One business: its numbers, what it wants said, and its flow. All names in it lead somewhere."""

    version: int = Field(1, ge=1, le=1, description="Version of this file's form.")
    id: Slug
    name: Line
    numbers: tuple[PhoneNumber, ...] = Field(min_length=1, max_length=100)
    timezone: TimeZone
    language: Language = "en-US"
    languages: dict[Language, FurtherLanguage] = Field({}, max_length=20, description="Further languages.")
    voice: Voice = "marin"
    orchestration: Orchestration = Field(
        Orchestration.JOINT,
        description="Who tells an unfinished turn on a bad line from a finished one: off (nobody), local (our own "
        "measurements), model (the speech model) or joint (measurements first, then the model).",
    )
    disclosure: Spoken = Field("", description="Said first of all: that a machine speaks.")
    greeting: SpokenNow
    announcement: Spoken = Field(
        "", description="Said after the greeting, over no interruption: that calls are recorded."
    )
    consent: Consent = Consent()
    instructions: Prose = ""
    facts: tuple[Fact, ...] = Field((), description="Full sentences, the most important first.")
    documents: tuple[BusinessDocument, ...] = Field(
        (),
        max_length=200,
        description="Longer texts. Their passages are looked up for each question, in place of being told in full.",
    )
    hours: dict[Name, Hours] = Field({}, max_length=20, description="Schedules by name.")
    callers: Callers = Callers()
    transfers: dict[Name, Target] = Field({}, max_length=20)
    allow_hosts: tuple[Host, ...] = Field(
        (), max_length=20, description="The only hosts that tools and webhooks may reach."
    )
    tools: dict[Name, Tool] = Field({}, max_length=30, description="Requests to the business's own systems.")
    webhooks: tuple[Webhook, ...] = Field(
        (), max_length=5, description="Systems that are told of ended calls."
    )
    rotas: dict[Name, Rota] = Field({}, max_length=20, description="Who is on duty when, for `ring`.")
    notices: Notices = Notices()
    operator: Name | None = Field(None, description="The target behind key 0 and the word `operator`.")
    commands: Commands = Commands()
    emergency: tuple[Emergency, ...] = Field((), max_length=20)
    resume: ResumePolicy = ResumePolicy()
    limits: Limits = Limits()
    memory: MemoryUse = MemoryUse()
    spending: Spending = Spending()
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

    def env(self) -> list[str]:
        """The environment variables that the file refers to."""
        hooks = [name for hook in self.webhooks for name in env_names(hook.secret)]
        return [*(name for tool in self.tools.values() for name in tool.env()), *hooks]

    def tells(self, event: str) -> tuple[Webhook, ...]:
        """The systems that are told of such events."""
        return tuple(hook for hook in self.webhooks if event in hook.events)

    def node(self, name: str) -> NodeBase | None:
        """The node of that name, by what all kinds have in common."""
        return self.nodes.get(name)

    def voice_of(self, language: str) -> str:
        """The voice of a language."""
        further = self.languages.get(language)
        return (further.voice if further else None) or self.voice

    @model_validator(mode="after")
    def _names_lead_somewhere(self) -> Self:
        self._tools_that_verify()
        targets, links = referred(self.nodes)
        named = (self.on_model_down.transfer, self.spending.transfer, self.operator)
        targets |= {name for name in named if name is not None}
        targets |= {name for rota in self.rotas.values() for name in rota.people()}
        targets |= {each.transfer for each in self.emergency if each.transfer is not None}
        lost = sorted((targets - self.transfers.keys()) | (links - self.nodes.keys()) | self._lost())
        if self.on_model_down.keys is not None:
            links.add(self.on_model_down.keys)
        first = self.node(self.start)
        if lost or first is None or not first.CAN_START:
            names = ", ".join(lost) or self.start
            raise PydanticCustomError(REFERENCE_ERROR, "names that lead nowhere: {names}", {"names": names})
        return self

    def _tools_that_verify(self) -> None:
        for node in self.nodes.values():
            if isinstance(node, ToolNode) and node.verifies is not None and node.tool in self.tools:
                value = self.tools[node.tool].result.get(node.verifies)
                if value is None or value.kind != "yes_no":
                    raise fault(f"`verifies: {node.verifies}` is no yes_no of what `{node.tool}` answers", "")

    def _lost(self) -> set[str]:
        """Schedules, rotas and languages that nodes name and the business does not have."""
        schedules = names_in(self.nodes, lambda node: node.SCHEDULES) - self.hours.keys()
        schedules |= names_in(self.nodes, lambda node: node.ROTAS) - self.rotas.keys()
        lines = {name for name, node in self.nodes.items() if isinstance(node, QueueNode)}
        schedules |= names_in(self.nodes, lambda node: node.QUEUES) - lines
        known = {self.language, *self.languages}
        tools = names_in(self.nodes, lambda node: node.TOOLS) - self.tools.keys()
        urls = [*(tool.url for tool in self.tools.values()), *(hook.url for hook in self.webhooks)]
        hosts = {host_of(url) for url in urls} - set(self.allow_hosts)
        return schedules | tools | hosts | (names_in(self.nodes, lambda node: node.LANGUAGES) - known)


def referred(nodes: Mapping[str, NodeBase]) -> tuple[set[str], set[str]]:
    """The names of all targets and of all nodes that `nodes` refer to."""
    return names_in(nodes, lambda node: node.TARGETS), names_in(nodes, lambda node: node.LINKS)


def names_in(nodes: Mapping[str, NodeBase], patterns: Callable[[NodeBase], tuple[Pattern, ...]]) -> set[str]:
    """All names that stand in nodes where these patterns lead."""
    return {
        name
        for node in nodes.values()
        for pattern in patterns(node)
        for _, name in walk(node.model_dump(by_alias=True), pattern)
        if isinstance(name, str)
    }
