"""`tool`: asks a system of the business, and goes on with what it answers."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from callflows.actions import Say
from callflows.fields import Name
from callflows.nodes.base import Awaited, Event, Here, NodeBase, Outcome, Pattern, Silence
from callflows.texts import Texts

ANSWER_WAIT_S = 40.0
"""More than the slowest tool may take with all its attempts: three of 10 s, and the pauses between them."""


class ToolNode(NodeBase):
    """Uses a tool; the caller hears `say` meanwhile. Goes `to` with its answer, or to `failed` without."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("failed",))
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    TOOLS: ClassVar[tuple[Pattern, ...]] = (("tool",),)
    WAITS: ClassVar[bool] = True
    NEEDS_CALLER: ClassVar[bool] = False

    type: Literal["tool"]
    tool: Name = Field(description="A name under `tools`.")
    say: Texts = Field({}, description="Said while it runs; the tool's own text when left out.")
    to: Name = Field(description="The node to go to with its answer.")
    failed: Name = Field(description="The node to go to when it does not answer, or not as declared.")
    verifies: Name | None = Field(
        None,
        description="A yes_no of its answer: a yes verifies the caller as a PIN does, a no leads to `failed`.",
    )

    def enter(self, here: Here) -> Outcome:
        """Ask."""
        text = here.text(self.say)
        return Outcome(say=(Say(text),) if text else (), use=self.tool, progress=here.progress)

    def awaits(self, here: Here) -> Awaited:
        """Nothing of the caller's but words that always work."""
        return Awaited(words=True, keys=False, silence_s=ANSWER_WAIT_S, key_wait_s=1)

    def take(self, event: Event, here: Here) -> Outcome:
        """What the caller does is not waited for, unless nothing comes for too long."""
        return Outcome(to=self.failed) if isinstance(event, Silence) else Outcome(progress=here.progress)

    def answered(self, values: Mapping[str, Any] | None, here: Here) -> Outcome:
        """Go on."""
        if values is None or (self.verifies is not None and values.get(self.verifies) is not True):
            return Outcome(to=self.failed)
        return Outcome(to=self.to, slots=values)
