"""The brain of the unscripted sandbox: listens by ear, answers by `think`."""

from ivr.sandbox.brain import Answer, HearPlan, Manners, Question
from ivr.sandbox.think import think


class Thinker:
    """Behaves as the provider does. `partials_ms`: see `Manners`."""

    def __init__(self, partials_ms: float = 0) -> None:
        self._manners = Manners(partials_ms=partials_ms)

    @property
    def manners(self) -> Manners:
        """Nothing unusual."""
        return self._manners

    def hear(self, item_id: str) -> HearPlan:
        """By ear."""
        return HearPlan(listen=True)

    def answer(self, question: Question) -> Answer:
        """By rule."""
        return think(question)
