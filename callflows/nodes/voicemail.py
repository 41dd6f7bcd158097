"""`voicemail`: the caller leaves a message."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.away import VOICEMAIL, Away, Came, Errand, Record, Trip
from callflows.fields import Name
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.texts import Texts


class VoicemailNode(NodeBase):
    """Records a message after a tone, keeps it with what the caller said, and tells the business of it."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("otherwise",))
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    CAN_START: ClassVar[bool] = False
    LEAVES: ClassVar[bool] = True

    type: Literal["voicemail"]
    say: Texts = Field(min_length=1, description="Said before the tone: who will hear it, and how to end.")
    max_s: int = Field(120, ge=5, le=600, description="How long a message may be.")
    silence_s: int = Field(5, ge=2, le=30, description="So much silence ends it.")
    finish: Literal["#", "*", ""] = Field("#", description="The key that ends it; empty: none.")
    transcribe: bool = Field(
        False, description="What was said is written down, for whoever is told of the message."
    )
    to: Name = Field(description="The node to go to with a message.")
    otherwise: Name | None = Field(None, description="The node to go to without one; `to` when left out.")

    def enter(self, here: Here) -> Outcome:
        """To the tone."""
        return Outcome(leave=Errand(VOICEMAIL, say=here.text(self.say)))

    def away(self, numbers: tuple[str, ...], here: Here) -> Away:
        """Record."""
        return Record(self.max_s, self.silence_s, self.finish, self.transcribe)

    def returned(self, came: Came, trip: Trip, here: Here) -> Outcome:
        """With a message or without."""
        return Outcome(to=self.to if came is Came.RECORDED else self.otherwise or self.to)
