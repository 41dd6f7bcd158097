"""`transfer` and `hangup`: the flow is over."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.actions import HangUp
from callflows.fields import Name
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.texts import Texts


class TransferNode(NodeBase):
    """Connects the caller to a target; the flow is over."""

    TARGETS: ClassVar[tuple[Pattern, ...]] = (("target",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    CAN_START: ClassVar[bool] = False

    type: Literal["transfer"]
    target: Name
    say: Texts = Field({}, description="Said before; the target's own text when left out.")

    def enter(self, here: Here) -> Outcome:
        """Connect at once."""
        return Outcome(target=self.target, target_say=here.text(self.say))


class HangUpNode(NodeBase):
    """Ends the call; the flow is over."""

    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    CAN_START: ClassVar[bool] = False

    type: Literal["hangup"]
    say: Texts = Field({}, description="The last words.")

    def enter(self, here: Here) -> Outcome:
        """Say goodbye."""
        return Outcome(end=HangUp(here.text(self.say)))
