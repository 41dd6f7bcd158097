"""`say`: an exact text or an audio file, then on."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.fields import Name
from callflows.nodes.base import Here, Outcome, Pattern
from callflows.nodes.prompts import Asks


class SayNode(Asks):
    """Says a text exactly, or plays a file, and goes on."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",),)

    type: Literal["say"]
    to: Name = Field(description="The node to go to afterwards.")

    def enter(self, here: Here) -> Outcome:
        """Say it and pass on."""
        return Outcome(say=self.prompt(here), to=self.to)
