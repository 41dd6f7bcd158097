"""`flow`: a group of nodes under `flows`, gone through as if it stood here."""

from typing import ClassVar, Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from callflows.fields import Name
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.texts import Texts


class FlowNode(NodeBase):
    """Goes through a group of nodes, and on where that leads.

    Each use is a copy of its own, made when the file is read.
    """

    LINKS: ClassVar[tuple[Pattern, ...]] = (("begins",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("with", "*"),)

    type: Literal["flow"]
    flow: Name = Field(description="A name under `flows`.")
    given: dict[Name, Texts] = Field(
        {}, alias="with", max_length=12, description="A text for each of its parameters."
    )
    fills: dict[Name, Name] = Field(
        {}, max_length=12, description="Slots that it fills, each with the name to be kept under here."
    )
    then: Name | None = Field(None, description="The node to go to when it goes to `return`.")
    exits: dict[Name, Name] = Field({}, max_length=12, description="The node to go to for each of its exits.")
    begins: SkipJsonSchema[Name | None] = None
    """The first node of the copy, set by callflows/subflows.py; no file may hold it. None where nothing is run."""

    def enter(self, here: Here) -> Outcome:
        """Into it."""
        return Outcome(to=self.begins or "")
