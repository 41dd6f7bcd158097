"""A business and its call flow: what a flow file says. Frozen; a `Business` that exists can be run."""

from collections.abc import Callable, Mapping
from typing import Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from callflows.down import Busy, ModelDown
from callflows.fields import (
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
from callflows.settings import (
    EXTENTS,
    BusinessDocument,
    Callers,
    Commands,
    Consent,
    Emergency,
    Extent,
    FurtherLanguage,
    Hears,
    Limits,
    MemoryUse,
    Models,
    Notices,
    Orchestration,
    Spending,
    Target,
    Webhook,
)
from callflows.subflows import MAX_NODES, RETURN
from callflows.tools import Host, Tool, env_names, host_of

__all__ = [
    "EXTENTS",
    "REFERENCE_ERROR",
    "Business",
    "BusinessDocument",
    "Consent",
    "Emergency",
    "Exit",
    "Extent",
    "HangUpNode",
    "Hears",
    "MemoryUse",
    "Node",
    "Orchestration",
    "Part",
    "Talk",
    "Target",
    "TransferNode",
    "Webhook",
    "names_in",
    "referred",
]

REFERENCE_ERROR = "flow_reference"
"""Type of the error a `Business` raises for names that lead nowhere; the parser tells those by place."""


class SubFlow(Part):
    """A group of nodes with names of its own, used by nodes of type flow. Its nodes go to one another only."""

    start: Name = Field(description="Its first node.")
    parameters: tuple[Name, ...] = Field(
        (), max_length=12, description="Words that its texts name in braces and each use gives."
    )
    exits: tuple[Name, ...] = Field(
        (),
        max_length=12,
        description="Names that its nodes may go to, beside `return`; each use says where they lead.",
    )
    nodes: dict[Name, Node] = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _names_mean_one_thing(self) -> Self:
        taken = sorted({RETURN, *self.exits} & self.nodes.keys() | {RETURN} & set(self.exits))
        if taken:
            raise fault(
                f"`{taken[0]}` is the name of a way out already", "call the node, or the exit, otherwise"
            )
        return self


class Business(Part):
    """One business: its numbers, what it wants said, and its flow. All names in it lead somewhere."""

    version: int = Field(1, ge=1, le=1, description="Version of this file's form.")
    include: tuple[Line, ...] = Field(
        (),
        max_length=50,
        description="Files in folders below this one whose parts count as if they stood here: shared/hours.yaml.",
    )
    id: Slug
    name: Line
    numbers: tuple[PhoneNumber, ...] = Field(min_length=1, max_length=100)
    timezone: TimeZone
    language: Language = "en-US"
    languages: dict[Language, FurtherLanguage] = Field({}, max_length=20, description="Further languages.")
    voice: Voice = "marin"
    models: Models = Models()
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
    on_busy: Busy = Busy()
    start: Name
    flows: dict[Name, SubFlow] = Field(
        {}, max_length=50, description="Groups of nodes that nodes of type flow go through."
    )
    nodes: dict[Name, Node] = Field(
        min_length=1,
        max_length=MAX_NODES,
        description="Those of `flows` count as often as they are used.",
    )

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
        named = (self.on_model_down.transfer, self.on_busy.transfer, self.spending.transfer, self.operator)
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
