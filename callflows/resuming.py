"""What happens when a call has broken off: to a caller who calls again, and to one who is called back."""

from datetime import timedelta
from typing import Literal, Self

from pydantic import Field, model_validator

from callflows.fields import Duration, Name, ResumeText, fault
from callflows.nodes.later import Countries
from callflows.part import Part
from callflows.texts import Template

_TWO_HOURS = timedelta(hours=2)
_HALF_AN_HOUR = timedelta(minutes=30)


class CallBack(Part):
    """A caller whose call was dropped, not by themselves, is called back once, and goes on where it stopped."""

    consent: Literal["asked", "policy"] = Field(
        "asked",
        description="asked: only who said yes at a `callback` node with `when: dropped`; policy: everybody, because "
        "your callers have agreed to it elsewhere.",
    )
    hours: Name | None = Field(
        None,
        description="A name under `hours` within which is called, or when it opens next; left out: always.",
    )
    countries: Countries = Field(
        (), description="Where callers may be called; the business's own when left out."
    )


class ResumePolicy(Part):
    """What happens when a caller who was cut off calls again, or is called back."""

    within: Duration = Field(
        _TWO_HOURS, description="How long a call that broke off can be taken up: 2h, 30m."
    )
    greeting: Literal["offer", "straight", "never"] = Field(
        "offer",
        description="offer: ask whether to go on, and go on after a yes; straight: go on; never: greet as a new call.",
    )
    say: ResumeText = Field("", description="The offer in your own words or language; {topic} is filled in.")
    confirm_after: Duration = Field(
        _HALF_AN_HOUR, description="What was gathered longer ago is read back first, to be confirmed."
    )
    confirm: Template = Field(
        "You had told me: {slots}. Is that still right?",
        description="The words for it; {slots} is filled in.",
    )
    call_back: CallBack | None = Field(None, description="Call back who was cut off; left out: nobody is.")

    @model_validator(mode="after")
    def _goes_on(self) -> Self:
        if self.call_back is not None and self.greeting == "never":
            raise fault("who is called back goes on where the call stopped", "greeting: offer, or straight")
        return self
