"""`verify`: a PIN by keys, checked elsewhere; nothing of it is kept, said or waited for by words."""

import pytest

from callflows import engine
from callflows.actions import Begin, CheckPin, Say
from callflows.engine import FlowState, Key, KeysDone, Moment, Silence, ToolAnswer, Words
from callflows.model import Business
from callflows.parse import parse_text

BANK = """\
id: bank
name: The Bank
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Bank.
start: pin
nodes:
  pin:
    type: verify
    say: Please enter your PIN.
    no_match: {say: ["That was not right."], times: 1}
    to: account
    failed: desk
  account: {type: talk, instructions: Talk about the account.}
  desk: {type: talk, instructions: Talk about anything else.}
"""
WHEN = Moment()


def bank() -> Business:
    return parse_text(BANK, "bank.yaml")


def entered(state: FlowState, keys: str) -> engine.Step:
    step = engine.Step(state, ())
    for digit in keys:
        step = engine.step(bank(), step.state, Key(digit), WHEN)
    return step


def answer(state: FlowState, body: object, key: str = "", *, is_failed: bool = False) -> engine.Step:
    using = state.using
    return engine.step(
        bank(), state, ToolAnswer(key or (using.key if using else "none"), body, is_failed), WHEN
    )


def test_a_right_pin_leads_on() -> None:
    asked = entered(engine.start(bank()), "123456#")
    assert asked.actions == (CheckPin("pin-1", "123456"),)
    done = answer(asked.state, True)
    assert (done.state.node, done.state.using, done.actions[-1]) == ("account", None, Begin())


@pytest.mark.parametrize("body", [False, None, "true", 1, {"ok": True}])
def test_anything_but_true_is_wrong(body: object) -> None:
    again = answer(entered(engine.start(bank()), "123456#").state, body)
    assert again.actions == (Say("That was not right."), Say("Please enter your PIN."))
    assert again.state.node == "pin"
    second = entered(again.state, "654321#")
    assert second.actions == (CheckPin("pin-2", "654321"),)
    assert answer(second.state, False).state.node == "desk"


def test_an_answer_to_another_pin_or_a_failed_one_opens_nothing() -> None:
    asked = entered(engine.start(bank()), "123456#").state
    assert answer(asked, True, "pin-7") == engine.Step(asked, ())
    assert answer(asked, True, is_failed=True).state.node == "pin"
    once = answer(asked, False).state
    assert answer(once, True, "pin-1") == engine.Step(once, ())


def test_nothing_of_a_pin_is_kept_or_heard() -> None:
    halfway = entered(engine.start(bank()), "1234").state
    checking = engine.step(bank(), halfway, KeysDone(), WHEN).state
    for state in (halfway, checking, answer(checking, True).state):
        assert "1234" not in repr(state.to_json())
    assert "1234" not in repr(entered(engine.start(bank()), "1234#").actions)
    for state in (halfway, checking):
        awaited = engine.awaits(bank(), state)
        assert awaited is not None
        assert (awaited.secret, awaited.words) == (True, False)
    assert engine.step(bank(), checking, Key("5"), WHEN) == engine.Step(checking, ())
    assert engine.step(bank(), checking, Words("1234"), WHEN).state.node == "pin"


def test_another_worker_has_it_entered_again() -> None:
    checking = entered(engine.start(bank()), "123456#").state
    restored = FlowState.from_json(checking.to_json(), bank())
    assert restored.using is None
    again = engine.again(bank(), restored, WHEN)
    assert again.actions == (Say("Please enter your PIN."),)
    awaited = engine.awaits(bank(), again.state)
    assert awaited is not None
    assert awaited.keys


def test_silence_and_a_check_that_never_ends() -> None:
    assert engine.step(bank(), engine.start(bank()), Silence(), WHEN).actions == (
        Say("Please enter your PIN."),
    )
    checking = entered(engine.start(bank()), "123456#").state
    assert engine.step(bank(), checking, Silence(), WHEN).state.node == "pin"
