"""`talk`: the speech model leads."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.fields import Line, Name, Prose, Topic
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.part import Part
from callflows.typed import Value


class Exit(Part):
    """A way out of a talking node."""

    to: Name = Field(description="The node to go to.")
    when: Line = Field(description="When the speech model is to take this exit.")


class Talk(NodeBase):
    """The speech model talks with the caller until an exit, a transfer or the end of the call."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("exits", "*", "to"),)
    TARGETS: ClassVar[tuple[Pattern, ...]] = (("transfers", "*"),)
    TOOLS: ClassVar[tuple[Pattern, ...]] = (("tools", "*"),)
    WAITS: ClassVar[bool] = True

    type: Literal["talk"]
    instructions: Prose = Field(min_length=1, description="What to do in this part of the call.")
    topic: Topic = Field("", description="What this part is about, as said in 'we were talking about …'.")
    transfers: tuple[Name, ...] | None = Field(None, description="Targets allowed here; all when left out.")
    tools: tuple[Name, ...] = Field((), max_length=12, description="Tools that the speech model may use.")
    slots: dict[Name, Value] = Field(
        {}, max_length=12, description="What the speech model is to find out, and writes down by a function."
    )
    exits: dict[Name, Exit] = Field({}, max_length=12)

    def enter(self, here: Here) -> Outcome:
        """The model speaks from here on."""
        return Outcome()
