"""`override`: the owner opens or closes the business by telephone, once their PIN was right."""

from datetime import timedelta
from typing import ClassVar, Literal

from pydantic import Field

from callflows.actions import SetHours
from callflows.fields import Duration, Name
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern


class OverrideNode(NodeBase):
    """Sets a schedule by hand, and goes on. Only a `verify` node may lead here, and only for `callers: owners`."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("failed",))
    SCHEDULES: ClassVar[tuple[Pattern, ...]] = (("hours",),)
    CAN_START: ClassVar[bool] = False
    NEEDS_PIN: ClassVar[bool] = True

    type: Literal["override"]
    hours: Name = Field(description="A name under `hours`.")
    state: Literal["open", "closed", "normal"] = Field(description="`normal`: the file's hours hold again.")
    lasts: Duration = Field(timedelta(hours=12), description="How long it holds: 3h, 2d.")
    to: Name = Field(description="The node to go to afterwards.")
    failed: Name = Field(
        description="The node to go to for whoever calls from another number than an owner's."
    )

    def enter(self, here: Here) -> Outcome:
        """Set it, for every call."""
        if not here.is_owner or here.now is None:
            return Outcome(to=self.failed)
        is_open = None if self.state == "normal" else self.state == "open"
        return Outcome(to=self.to, hours=SetHours(self.hours, is_open, here.now + self.lasts))
