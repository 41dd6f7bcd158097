"""`hours`, `branch` and `language`: nodes the call passes without a word."""

from typing import ClassVar, Literal

from pydantic import Field

from callflows.fields import Language, Name
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.nodes.conditions import Condition
from callflows.part import Part


class HoursNode(NodeBase):
    """Goes one way while a schedule is open and another while it is closed."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("open",), ("closed",))
    SCHEDULES: ClassVar[tuple[Pattern, ...]] = (("hours",),)

    type: Literal["hours"]
    hours: Name = Field(description="A name under `hours`.")
    open: Name = Field(description="The node to go to while it is open.")
    closed: Name = Field(description="The node to go to while it is closed.")

    def enter(self, here: Here) -> Outcome:
        """Pass on."""
        return Outcome(to=self.open if here.is_open(self.hours) else self.closed)


class Case(Part):
    """One way of a branch."""

    when: Condition
    to: Name = Field(description="The node to go to when the condition holds.")


class BranchNode(NodeBase):
    """Goes the way of the first case whose condition holds."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("cases", "*", "to"), ("otherwise",))
    SCHEDULES: ClassVar[tuple[Pattern, ...]] = (("cases", "*", "when", "**", "hours"),)
    READS: ClassVar[tuple[Pattern, ...]] = (("cases", "*", "when", "**", "slot"),)
    LANGUAGES: ClassVar[tuple[Pattern, ...]] = (("cases", "*", "when", "**", "language"),)

    type: Literal["branch"]
    cases: tuple[Case, ...] = Field(min_length=1, max_length=30)
    otherwise: Name = Field(description="The node to go to when no case holds.")

    def enter(self, here: Here) -> Outcome:
        """Pass on."""
        return Outcome(to=next((case.to for case in self.cases if case.when.holds(here)), self.otherwise))


class LanguageNode(NodeBase):
    """From here on the call is in another language of the business."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",),)
    LANGUAGES: ClassVar[tuple[Pattern, ...]] = (("language",),)

    type: Literal["language"]
    language: Language
    to: Name

    def enter(self, here: Here) -> Outcome:
        """Pass on."""
        return Outcome(to=self.to, language=self.language)
