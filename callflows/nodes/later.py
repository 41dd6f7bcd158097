"""`sms` and `callback`: what is done beside the call, to the caller's own number or a target of the file."""

from datetime import datetime
from typing import Annotated, ClassVar, Literal

import phonenumbers
from pydantic import AfterValidator, Field

from callflows.fields import Name, closest, fault
from callflows.nodes.base import (
    Awaited,
    Event,
    Here,
    Key,
    KeysDone,
    NodeBase,
    Outcome,
    Pattern,
    Silence,
    Wish,
    Words,
)
from callflows.nodes.prompts import Waits
from callflows.orders import MAX_TEXT, may_reach
from callflows.stock import CALLED_BACK_ALREADY, NOTED_ALREADY, phrase
from callflows.texts import Texts
from callflows.understand import yes_no


def _country(text: str) -> str:
    if text not in phonenumbers.SUPPORTED_REGIONS:
        raise fault("not a country", closest(text.upper(), sorted(phonenumbers.SUPPORTED_REGIONS)))
    return text


Country = Annotated[str, AfterValidator(_country)]
Countries = Annotated[tuple[Country, ...], Field(max_length=50)]


class SmsNode(NodeBase):
    """Sends a text message to the caller, or to a target, and goes on. Nobody else can be written to."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("otherwise",))
    TARGETS: ClassVar[tuple[Pattern, ...]] = (("recipient",),)
    TEXTS: ClassVar[tuple[Pattern, ...]] = (("text",),)
    UNSPOKEN: ClassVar[tuple[Pattern, ...]] = (("text",),)
    CAN_START: ClassVar[bool] = False

    type: Literal["sms"]
    text: Texts = Field(min_length=1, description="The message; {slot} stands for what was gathered.")
    recipient: Name | None = Field(None, description="A transfer target; the caller when left out.")
    countries: Countries = Field(
        (), description="Where callers may be written to; the business's own when left out."
    )
    to: Name = Field(description="The node to go to.")
    otherwise: Name | None = Field(
        None, description="The node to go to when the caller cannot be written to; `to` when left out."
    )

    def enter(self, here: Here) -> Outcome:
        """Send it and pass on."""
        text = here.text(self.text)[:MAX_TEXT]
        if self.recipient is not None:
            return Outcome(to=self.to, wish=Wish("sms", text=text, target=self.recipient))
        if not here.may_order or not may_reach(here.caller, self.countries or (here.region,)):
            return Outcome(to=self.otherwise or self.to)
        return Outcome(to=self.to, wish=Wish("sms", text=text))


class CallbackNode(Waits):
    """Asks whether to call the caller back, on their own number; after a yes they are called within `hours`."""

    LINKS: ClassVar[tuple[Pattern, ...]] = (("to",), ("otherwise",), *Waits.LINKS)
    SCHEDULES: ClassVar[tuple[Pattern, ...]] = (("hours",),)

    type: Literal["callback"]
    when: Literal["wanted", "dropped"] = Field(
        "wanted",
        description="wanted: a yes orders the call; dropped: a yes agrees to be called should this call break off, by "
        "`resume: call_back`.",
    )
    hours: Name | None = Field(
        None, description="A name under `hours` within which is called; at once if left out."
    )
    countries: Countries = Field(
        (), description="Where callers may be called; the business's own when left out."
    )
    to: Name = Field(description="The node to go to when it is agreed.")
    otherwise: Name = Field(
        description="The node to go to after a no, or when this caller cannot be called back."
    )

    def enter(self, here: Here) -> Outcome:
        """Ask, if there is anything to ask. What would not be done is not promised."""
        if not may_reach(here.caller, self.countries or (here.region,)):
            return Outcome(to=self.otherwise)
        return self._ask(here) if self.when == "dropped" else self._offer(here)

    def _offer(self, here: Here) -> Outcome:
        due = self._due(here)
        if due is None:
            return Outcome(to=self.otherwise)
        if here.called_back.is_due:
            return Outcome(told=phrase(NOTED_ALREADY, here.language), to=self.to)
        if not here.may_order:
            return Outcome(to=self.otherwise)
        if not here.called_back.may_again(datetime.fromisoformat(due) if due else here.now):
            return Outcome(told=phrase(CALLED_BACK_ALREADY, here.language), to=self.otherwise)
        return self._ask(here)

    def _ask(self, here: Here) -> Outcome:
        return Outcome(say=self.prompt(here), progress=here.progress)

    def awaits(self, here: Here) -> Awaited:
        """A yes or a no; key 1 or 2."""
        return Awaited(words=True, keys=True, silence_s=self.wait_s, key_wait_s=self.key_wait_s)

    def take(self, event: Event, here: Here) -> Outcome:
        """Agreed, declined, or asking again."""
        match event:
            case Silence():
                return self.silent(here)
            case Words(text):
                agreed = yes_no(text)
            case Key(digit):
                agreed = {"1": True, "2": False}.get(digit)
            case KeysDone():
                return Outcome(progress=here.progress)
        if agreed is None:
            return self.unmatched(here)
        if self.when == "dropped":
            return Outcome(to=self.to if agreed else self.otherwise, may_return=agreed)
        due = self._due(here)
        if not agreed or due is None:
            return Outcome(to=self.otherwise)
        return Outcome(to=self.to, wish=Wish("callback", due=due))

    def _due(self, here: Here) -> str | None:
        """When to call: empty for now; None if it is never open, or the time is not known."""
        if self.hours is None or here.is_open(self.hours):
            return ""
        opens = here.next_open(self.hours)
        return opens.isoformat() if opens is not None else None
