"""A flow by keys alone: what is asked, where keys lead, and where they end."""

import pytest

from callflows import engine
from callflows.engine import FlowState, Moment
from callflows.faults import FlowErrors
from callflows.model import Business
from callflows.parse import parse_text
from ivr import bykeys
from ivr.bykeys import Asked, Away, Left, turn_of
from tests.unit.core.flows import BANK as BANK_TEXT
from tests.unit.core.flows import bank

MENU = "For balances press one, for opening hours press two."
BANK = bank("greeting: The Bank.", "greeting: The Bank.\non_model_down: {keys: menu}")


def begin(business: Business, state: FlowState, moment: Moment) -> tuple[FlowState, Asked | Left | Away]:
    return turn_of(business, bykeys.begin(business, state, moment))


def take(
    business: Business, state: FlowState, digits: str, moment: Moment
) -> tuple[FlowState, Asked | Left | Away]:
    return turn_of(business, bykeys.take(business, state, digits, moment))


def at(node: str, business: Business = BANK) -> FlowState:
    return engine.at_node(business, node)


def test_it_begins_at_the_node_for_it_with_what_was_gathered() -> None:
    state, turn = begin(BANK, FlowState(1, "help", {"account": "123"}), Moment())
    assert turn == Asked(MENU, 7, 1)
    assert (state.node, state.slots) == ("menu", {"account": "123"})


def test_a_choice_leads_on_and_back() -> None:
    state, turn = take(BANK, at("menu"), "2", Moment())
    assert turn == Asked(f"We open at nine. {MENU}", 7, 1)
    state, turn = take(BANK, state, "1", Moment())
    assert turn == Asked("Enter your PIN.", 7, 0)
    state, turn = take(BANK, state, "1234", Moment())
    assert turn == Left("Your balance is nine dollars.")
    assert "1234" not in str(state.to_json())


def test_an_entry_that_is_too_short_is_asked_for_again() -> None:
    _, turn = take(BANK, at("pin"), "12", Moment())
    assert isinstance(turn, Asked)
    assert turn.say != ""


def test_keys_beyond_the_choice_are_not_the_next_answer() -> None:
    state, turn = take(BANK, at("menu"), "11234", Moment())
    assert turn == Asked("Enter your PIN.", 7, 0)
    assert state.node == "pin"


def test_silence_and_wrong_keys_come_to_an_end() -> None:
    state, turn = take(BANK, at("menu"), "", Moment())
    assert isinstance(turn, Asked)
    assert "Are you there?" in turn.say
    state, turn = take(BANK, state, "", Moment())
    assert turn == Left("Goodbye then.")


def test_zero_reaches_the_operator() -> None:
    state, turn = take(BANK, at("menu"), "0", Moment())
    assert (turn, state.trip.say) == (Away(), "Connecting you.")
    assert engine.away(BANK, state) == engine.Dial(("+16175550102",), 20)


def test_a_talking_node_is_where_keys_end() -> None:
    _, turn = take(BANK, at("menu"), "5", Moment())
    assert turn == Left("", is_done=False)


SPARE = "  spare: {type: menu, say: Press one., options: {'1': {to: bye}}}\n"


@pytest.mark.parametrize(("keys", "fault"), [("nowhere", "nowhere"), ("menu", "nothing leads to `spare`")])
def test_the_node_for_keys_must_exist(keys: str, fault: str) -> None:
    text = BANK_TEXT.replace("greeting:", f"on_model_down: {{keys: {keys}}}\ngreeting:") + SPARE
    with pytest.raises(FlowErrors, match=fault):
        parse_text(text, "bank.yaml")


def test_a_part_that_only_keys_reach_is_no_mistake() -> None:
    text = BANK_TEXT.replace("greeting:", "on_model_down: {keys: spare}\ngreeting:") + SPARE
    assert parse_text(text, "bank.yaml").on_model_down.keys == "spare"
