"""Which speech model a business's calls have, and what that costs."""

from dataclasses import dataclass, replace

from callflows.model import Business
from ivr.adapters.openai_realtime import RealtimeServer
from ivr.ports import ModelLink
from ivr.remembering import Prices


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """The models of a business's file, or else the service's. `is_only`: the server has one, whatever a file names."""

    server: RealtimeServer
    prices: Prices
    is_only: bool = False

    def link(self, business: Business) -> ModelLink:
        """A link for one session of its calls, not yet open."""
        if self.is_only:
            return self.server.link()
        return self.server.link(business.models.realtime, business.models.transcribe)

    def prices_of(self, business: Business) -> Prices:
        """What its calls cost."""
        if self.is_only:
            return self.prices
        named = business.models
        return replace(
            self.prices,
            model=named.realtime or self.prices.model,
            transcribe_model=named.transcribe or self.prices.transcribe_model,
        )
