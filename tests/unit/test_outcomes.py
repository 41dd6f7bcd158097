"""What comes after a call that has failed: keys, a person, a message, goodbye."""

import pytest

from callflows import engine
from callflows.down import ModelDown
from ivr.outcomes import down_of, message_of, outcome_of
from ivr.web.deps import ByKeys, Ended, Outcome, RecordMessage, TransferTo
from memory.calls import CallStatus
from tests.unit.core.harness import clinic

SAY, TONE = "There is no assistant now.", "Leave a message after the tone."
MESSAGE = RecordMessage(f"{SAY} {TONE}", 120, 5, "#", False, 0, "en-US")

DOWN: list[tuple[dict[str, str], Outcome]] = [
    ({"say": SAY}, Ended(SAY)),
    ({"say": SAY, "voicemail": TONE}, MESSAGE),
    (
        {"say": SAY, "voicemail": TONE, "transfer": "nurse"},
        TransferTo(clinic().transfers["nurse"].number, SAY),
    ),
    ({"say": SAY, "voicemail": TONE, "keys": "start"}, ByKeys(SAY)),
]


@pytest.mark.parametrize(("down", "wanted"), DOWN)
def test_what_a_caller_gets_without_a_model(down: dict[str, str], wanted: Outcome) -> None:
    business = clinic().model_copy(update={"on_model_down": ModelDown.model_validate(down)})
    flow = engine.begin(business, engine.Moment()).state
    assert outcome_of(business, CallStatus.FAILED, flow) == wanted


def test_where_keys_end_nothing_is_said_twice() -> None:
    down = ModelDown.model_validate({"keys": "start", "voicemail": TONE})
    business = clinic().model_copy(update={"on_model_down": down})
    assert down_of(business, "") == message_of(business, "")
    assert isinstance(message_of(business, ""), RecordMessage)
