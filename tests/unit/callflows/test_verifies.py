"""A question that the business's own system confirms verifies the caller as a PIN does."""

import pytest

from callflows import engine
from callflows.engine import FlowState, Moment, ToolAnswer
from callflows.faults import FlowErrors
from callflows.parse import parse_text

CRM = """\
id: crm
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Shop.
allow_hosts: [api.example.com]
tools:
  birthday:
    description: Checks a customer's date of birth.
    url: https://api.example.com/check
    body: {caller: "{caller}", born: "{born}"}
    result: {confirmed: {kind: yes_no}}
    say: One moment.
start: ask
nodes:
  ask: {type: collect, slot: born, kind: date, by: voice, say: "When were you born?", to: check}
  check: {type: tool, tool: birthday, verifies: confirmed, to: account, failed: desk}
  account: {type: talk, instructions: Talk about the account.}
  desk: {type: talk, instructions: Talk about anything else.}
"""
WHEN = Moment(caller="+12025550143", call_id="CA1")


def asked() -> FlowState:
    business = parse_text(CRM, "crm.yaml")
    return engine.enter(business, FlowState(1, "ask", {"born": "1980-05-01"}), "check", WHEN).state


@pytest.mark.parametrize(
    ("body", "is_failed", "verified", "node"),
    [
        ({"confirmed": True}, False, True, "account"),
        ({"confirmed": False}, False, False, "desk"),
        ({}, False, None, "desk"),
        ("yes", False, None, "desk"),
        (None, True, None, "desk"),
        ({"confirmed": True}, True, None, "desk"),
    ],
)
def test_only_a_declared_yes_verifies(
    body: object, is_failed: bool, verified: bool | None, node: str
) -> None:
    business, state = parse_text(CRM, "crm.yaml"), asked()
    assert state.using is not None
    answer = ToolAnswer(state.using.key, body, is_failed)
    assert engine.verification(business, state, answer) is verified
    assert engine.step(business, state, answer, WHEN).state.node == node
    assert engine.verification(business, state, ToolAnswer("another", {"confirmed": True}, False)) is None


def test_a_tool_without_it_verifies_nobody() -> None:
    business = parse_text(CRM.replace("verifies: confirmed, ", ""), "crm.yaml")
    state = asked()
    assert state.using is not None
    assert (
        engine.verification(business, state, ToolAnswer(state.using.key, {"confirmed": True}, False)) is None
    )


def test_it_must_be_a_yes_or_no_of_the_answer() -> None:
    for wrong in ("verifies: another", "verifies: born"):
        with pytest.raises(FlowErrors, match="is no yes_no of what `birthday` answers"):
            parse_text(CRM.replace("verifies: confirmed", wrong), "crm.yaml")
