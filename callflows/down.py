"""What callers hear while the speech model is in trouble, once there is none, and when there is no room."""

from pydantic import Field

from callflows.fields import Name
from callflows.part import Part
from callflows.stock import LINES_BUSY, MODEL_IS_DOWN, ONE_MOMENT, phrase
from callflows.texts import FixedTexts, text_in


class ModelDown(Part):
    """What a caller hears, by the telephone network's own voice, when there is no speech model."""

    say: FixedTexts = Field(
        {}, description="Said first; left out, that the assistant cannot take the call and to call again."
    )
    keys: Name | None = Field(
        None,
        description="The node at which the flow then goes on by keys alone: menus, entries, hours, transfers.",
    )
    transfer: Name | None = Field(
        None, description="The target to connect the caller to afterwards, or where keys lead no further."
    )
    voicemail: FixedTexts = Field(
        {},
        description="Said before a tone, after which the caller leaves a message: where there is no transfer, or it "
        "reached nobody.",
    )
    filler: FixedTexts = Field(
        {},
        description="Said while an answer that has failed is asked for again, before the model counts as down.",
    )

    def say_in(self, language: str) -> str:
        """What is said first, in the language that the call is in."""
        return text_in(self.say, language) or phrase(MODEL_IS_DOWN, language)

    def filler_in(self, language: str) -> str:
        """The filler in the language that the call is in."""
        return text_in(self.filler, language) or phrase(ONE_MOMENT, language)


class Busy(Part):
    """What a caller hears, by the telephone network's own voice, whom we have no room for."""

    say: FixedTexts = Field(
        {}, description="Said first; left out, that all lines are busy and to call again."
    )
    transfer: Name | None = Field(
        None, description="The target to connect the caller to then; hung up on when left out."
    )

    def say_in(self, language: str) -> str:
        """What is said first."""
        return text_in(self.say, language) or phrase(LINES_BUSY, language)
