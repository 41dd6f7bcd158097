"""A business's own models, and what they cost."""

import pytest

from callflows.faults import FlowErrors
from ivr.adapters.openai_realtime import RealtimeServer
from ivr.models import ModelChoice
from ivr.remembering import Prices
from tests.unit.core.harness import clinic

OWN = clinic(
    "start: main", "models: {realtime: gpt-realtime-2.1-mini, transcribe: gpt-live-transcribe}\nstart: main"
)
PRICES = Prices("gpt-realtime-2.1", "gpt-realtime-whisper", "gpt-4o-mini-tts")


@pytest.fixture
async def server() -> RealtimeServer:
    return RealtimeServer("ws://127.0.0.1:9/v1", None, None, PRICES.model, PRICES.transcribe_model)


async def test_a_business_is_charged_for_the_models_that_it_names(server: RealtimeServer) -> None:
    choice = ModelChoice(server, PRICES)
    assert choice.prices_of(clinic()) == PRICES
    assert choice.prices_of(OWN) == Prices("gpt-realtime-2.1-mini", "gpt-live-transcribe", "gpt-4o-mini-tts")
    assert choice.prices_of(clinic("start: main", "models: {transcribe: whisper-1}\nstart: main")) == Prices(
        "gpt-realtime-2.1", "whisper-1", "gpt-4o-mini-tts"
    )


async def test_the_sandbox_is_the_only_model_it_has(server: RealtimeServer) -> None:
    assert ModelChoice(server, PRICES, is_only=True).prices_of(OWN) == PRICES


def test_a_models_name_is_checked() -> None:
    with pytest.raises(FlowErrors, match="not a model's name"):
        clinic("start: main", "models: {realtime: two words}\nstart: main")
