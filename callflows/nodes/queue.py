"""`queue` and `take`: callers wait in a line, and people of the business call in to take them out of it."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from callflows.away import QUEUED, TAKING, Away, Came, Errand, Take, Trip, Wait
from callflows.fields import Name, fault
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.nodes.prompts import AudioFiles, file_in
from callflows.nodes.rings import Key
from callflows.stock import NOBODY_WAITS, NOT_REACHED, YOUR_PLACE, phrase
from callflows.texts import Texts


class QueueNode(NodeBase):
    """The caller waits in a line until somebody takes their call, gives up by a key, or has waited long enough."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("full",), ("left",), ("otherwise",))
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",), ("hold",), ("not_reached",))
    UNSPOKEN: ClassVar[tuple[Pattern, ...]] = (("hold",),)
    CAN_START: ClassVar[bool] = False
    LEAVES: ClassVar[bool] = True

    type: Literal["queue"]
    say: Texts = Field({}, description="Said before the caller is put into the line.")
    hold: Texts = Field(
        min_length=1,
        description="Said every `every_s` to who waits, by the telephone network's voice; should name the key `leave`.",
    )
    position: bool = Field(True, description="Whether the place in the line is told with it.")
    music: AudioFiles = Field({}, description="A WAV that is played, again and again, in between.")
    every_s: int = Field(30, ge=10, le=120, description="So often `hold` is said.")
    max_wait_s: int = Field(
        600, ge=10, le=7_200, description="So long a caller waits, then goes to `otherwise`."
    )
    max_waiting: int = Field(20, ge=1, le=100, description="So many callers wait at most.")
    leave: Key | None = Field(None, description="The key by which the caller leaves the line.")
    full: Name | None = Field(
        None, description="The node to go to when the line is full; `otherwise` when left out."
    )
    left: Name | None = Field(
        None, description="The node to go to after the key `leave`; `otherwise` when left out."
    )
    not_reached: Texts = Field({}, description="Said to the caller before they go to `otherwise`.")
    otherwise: Name = Field(description="The node to go to when nobody has taken the call.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.left is not None and self.leave is None:
            raise fault("`left` belongs to `leave`", 'like leave: "1"')
        return self

    def enter(self, here: Here) -> Outcome:
        """Into the line."""
        return Outcome(leave=Errand(QUEUED, say=here.text(self.say)))

    def away(self, numbers: tuple[str, ...], here: Here) -> Away:
        """Wait."""
        return Wait("", self.leave or "")

    def returned(self, came: Came, trip: Trip, here: Here) -> Outcome:
        """Out of the line, without having talked to anybody."""
        if came is Came.LEFT:
            return Outcome(to=self.left or self.otherwise)
        if came is Came.FULL and self.full is not None:
            return Outcome(to=self.full)
        told = here.text(self.not_reached) or phrase(NOT_REACHED, here.language)
        return Outcome(told=told, to=self.otherwise)

    def hold_text(self, position: int, here: Here) -> str:
        """What is said to who waits at this place; 0: it is not known."""
        place = phrase(YOUR_PLACE, here.language).format(position) if self.position and position else ""
        return " ".join(filter(None, (here.text(self.hold), place)))

    def music_for(self, language: str) -> str:
        """The file to be played, by its path in the flow file."""
        return file_in(self.music, language)


class TakeNode(NodeBase):
    """Connects somebody of the business with the callers of a line, one after the other, until they hang up.

    Only a `verify` node may lead here, and only for `callers: staff` (or `owners`).
    """

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("failed",))
    QUEUES: ClassVar[tuple[Pattern, ...]] = (("queue",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",),)
    CAN_START: ClassVar[bool] = False
    NEEDS_PIN: ClassVar[bool] = True
    LEAVES: ClassVar[bool] = True

    type: Literal["take"]
    queue: Name = Field(description="A node of type queue.")
    say: Texts = Field({}, description="Said before.")
    wait_s: int = Field(300, ge=5, le=600, description="How long to stay on the line while nobody waits.")
    to: Name = Field(description="The node to go to when nobody has come.")
    failed: Name = Field(
        description="The node to go to for whoever calls from another number than the staff's."
    )

    def enter(self, here: Here) -> Outcome:
        """To the first who waits."""
        if not (here.is_staff or here.is_owner):
            return Outcome(to=self.failed)
        return Outcome(leave=Errand(TAKING, say=here.text(self.say)))

    def away(self, numbers: tuple[str, ...], here: Here) -> Away:
        """Take them out."""
        return Take(self.queue, self.wait_s)

    def returned(self, came: Came, trip: Trip, here: Here) -> Outcome:
        """After a talk to the next; when nobody came, on."""
        if came is Came.REACHED:
            return Outcome(leave=Errand(TAKING))
        return Outcome(told=phrase(NOBODY_WAITS, here.language), to=self.to)
