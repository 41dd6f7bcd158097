"""What callers hear while the speech model is in trouble, and once there is none."""

from pydantic import Field

from callflows.fields import Name
from callflows.part import Part
from callflows.stock import MODEL_IS_DOWN, ONE_MOMENT, phrase
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
