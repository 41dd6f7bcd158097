"""`transfer` and `ring`: people are called, one after the other or together, until one of them takes the call."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from callflows.away import TRANSFERRED, Away, Came, Dial, Errand, Trip, Whisper
from callflows.fields import Name, fault
from callflows.nodes.base import Here, NodeBase, Outcome, Pattern
from callflows.stock import NOT_REACHED, phrase
from callflows.texts import Texts

MAX_AT_ONCE = 10
"""What Twilio rings at the same time."""
Key = Annotated[str, Field(pattern=r"^[0-9*#]$")]


class Rings(NodeBase):
    """What nodes have in common that call people. Only targets of the file are ever called."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("otherwise",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("say",), ("whisper",), ("not_reached",))
    UNSPOKEN: ClassVar[tuple[Pattern, ...]] = (("whisper",),)
    CAN_START: ClassVar[bool] = False
    LEAVES: ClassVar[bool] = True

    say: Texts = Field({}, description="Said to the caller before; the target's own text when left out.")
    timeout_s: int = Field(20, ge=5, le=120, description="How long each is rung.")
    whisper: Texts = Field(
        {}, description="Said to who answers, alone, before they are connected; must name the key `accept`."
    )
    accept: Key | None = Field(
        None, description="The key by which who answers takes the call, after a `whisper`; 1 when left out."
    )
    not_reached: Texts = Field({}, description="Said to the caller when nobody has taken the call.")
    otherwise: Name | None = Field(
        None, description="The node to go to then; left out, the call goes on where the model last talked."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.accept is not None and not self.whisper:
            raise fault(
                "`accept` belongs to `whisper`", "like whisper: A call from the shop. Press one to take it."
            )
        return self

    def away(self, numbers: tuple[str, ...], here: Here) -> Away | None:
        """Ring the targets whose turn it is."""
        return Dial(numbers, self.timeout_s, bool(self.whisper))

    def whispered(self, here: Here) -> Whisper | None:
        """What who answers hears; None: they are connected at once."""
        return Whisper(here.text(self.whisper), self.accept or "1", here.language) if self.whisper else None

    def returned(self, came: Came, trip: Trip, here: Here) -> Outcome:
        """The next target, or on without them."""
        if trip.after:
            return Outcome(leave=Errand(TRANSFERRED, trip.after[:1], trip.after[1:]))
        return self.nobody(here)

    def nobody(self, here: Here) -> Outcome:
        """Nobody has taken the call."""
        from_file = here.text(self.not_reached)
        return Outcome(told=from_file or phrase(NOT_REACHED, here.language), to=self.otherwise or "")


class TransferNode(Rings):
    """Connects the caller to a target; where that fails to the next of `fallback`, then goes to `otherwise`."""

    TARGETS: ClassVar[tuple[Pattern, ...]] = (("target",), ("fallback", "*"))

    type: Literal["transfer"]
    target: Name
    fallback: tuple[Name, ...] = Field((), max_length=10, description="Who is tried next, in this order.")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        if len({self.target, *self.fallback}) <= len(self.fallback):
            raise fault("a target is named twice", "each is tried once")
        return self

    def enter(self, here: Here) -> Outcome:
        """Connect at once."""
        return Outcome(leave=Errand(TRANSFERRED, (self.target,), self.fallback, here.text(self.say)))


class RingNode(Rings):
    """Calls who is on duty by a rota, or the targets listed; one after the other, or together."""

    TARGETS: ClassVar[tuple[Pattern, ...]] = (("targets", "*"),)
    ROTAS: ClassVar[tuple[Pattern, ...]] = (("rota",),)

    type: Literal["ring"]
    targets: tuple[Name, ...] = Field((), max_length=MAX_AT_ONCE, description="Who is called.")
    rota: Name | None = Field(None, description="A name under `rotas`: who is on duty now is called.")
    order: Literal["in_turn", "together"] = "in_turn"

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if bool(self.targets) == (self.rota is not None):
            raise fault("needs either `targets` or `rota`", "like targets: [anna, ben], or rota: plumbers")
        if len(set(self.targets)) < len(self.targets):
            raise fault("a target is named twice", "each is called once")
        return self

    def enter(self, here: Here) -> Outcome:
        """Call them; if nobody is on duty, go on without."""
        names = self.targets if self.rota is None else here.on_duty(self.rota)
        if not names:
            return self.nobody(here)
        together = self.order == "together"
        first, after = (names[:MAX_AT_ONCE], ()) if together else (names[:1], names[1:])
        return Outcome(leave=Errand(TRANSFERRED, first, after, here.text(self.say)))
