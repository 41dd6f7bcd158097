"""`hangup`: the flow is over."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.actions import HangUp
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.texts import Texts


class HangUpNode(NodeBase):
    """Ends the call; the flow is over."""

    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    CAN_START: ClassVar[bool] = False

    type: Literal["hangup"]
    say: Texts = Field({}, description="The last words.")

    def enter(self, here: Here) -> Outcome:
        """Say goodbye."""
        return Outcome(end=HangUp(here.text(self.say)))
