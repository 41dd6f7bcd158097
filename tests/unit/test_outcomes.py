"""What comes after a call that has failed: keys, a person, a message, goodbye."""

from dataclasses import replace
from typing import Any

import pytest

from callflows import engine
from callflows.down import ModelDown
from callflows.settings import FurtherLanguage, Spending
from callflows.stock import MODEL_IS_DOWN, MONEY_IS_SPENT
from ivr.outcomes import down_of, message_of, outcome_of
from ivr.web.deps import ByKeys, Ended, Outcome, RecordMessage, TransferTo
from memory.calls import CallStatus
from tests.unit.core.harness import clinic

SAY, TONE = "There is no assistant now.", "Leave a message after the tone."
MESSAGE = RecordMessage(f"{SAY} {TONE}", 120, 5, "#", False, 0, "en-US")

DOWN: list[tuple[dict[str, str], Outcome]] = [
    ({"say": SAY}, Ended(SAY, "en-US")),
    ({"say": SAY, "voicemail": TONE}, MESSAGE),
    (
        {"say": SAY, "voicemail": TONE, "transfer": "nurse"},
        TransferTo(clinic().transfers["nurse"].number, SAY, language="en-US"),
    ),
    ({"say": SAY, "voicemail": TONE, "keys": "start"}, ByKeys(SAY, "en-US")),
]


@pytest.mark.parametrize(("down", "wanted"), DOWN)
def test_what_a_caller_gets_without_a_model(down: dict[str, str], wanted: Outcome) -> None:
    business = clinic().model_copy(update={"on_model_down": ModelDown.model_validate(down)})
    flow = engine.begin(business, engine.Moment()).state
    assert outcome_of(business, CallStatus.FAILED, flow) == wanted


def test_where_keys_end_nothing_is_said_twice() -> None:
    down = ModelDown.model_validate({"keys": "start", "voicemail": TONE})
    business = clinic().model_copy(update={"on_model_down": down})
    assert down_of(business, "", "en-US") == message_of(business, "", "en-US")
    assert isinstance(message_of(business, "", "en-US"), RecordMessage)


SPANISH = {"es-US": FurtherLanguage()}


@pytest.mark.parametrize(
    ("down", "wanted"),
    [
        ({}, Ended(MODEL_IS_DOWN["es"], "es-US")),
        ({"say": {"en-US": "Sorry.", "es-US": "Perdone."}, "keys": "start"}, ByKeys("Perdone.", "es-US")),
        (
            {"say": "Sorry.", "voicemail": {"en-US": "Speak.", "es-US": "Hable."}},
            RecordMessage("Sorry. Hable.", 120, 5, "#", False, 0, "es-US"),
        ),
    ],
)
def test_it_is_told_in_the_language_that_the_call_is_in(down: dict[str, Any], wanted: Outcome) -> None:
    changed = {"on_model_down": ModelDown.model_validate(down), "languages": SPANISH}
    business = clinic().model_copy(update=changed)
    flow = replace(engine.begin(business, engine.Moment()).state, language="es-US")
    assert outcome_of(business, CallStatus.FAILED, flow) == wanted


def test_a_spent_ceiling_is_told_in_it_too() -> None:
    assert Spending().say_in("fr-CA") == MONEY_IS_SPENT["fr"]
    assert Spending.model_validate({"say": {"en": "Enough.", "fr": "Assez."}}).say_in("fr-CA") == "Assez."
