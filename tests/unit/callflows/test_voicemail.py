"""The caller leaves a message."""

from pathlib import Path

import pytest

from callflows import engine
from callflows.away import Came, Trip
from callflows.check import check_paths
from callflows.conversation import Conversation
from callflows.engine import FlowState, Leave, Moment, Record
from callflows.model import Business
from callflows.parse import FlowErrors, parse_text

SHOP = """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
disclosure: ""
greeting: The Shop.
notices: {email: [shop@example.com]}
transfers:
  desk: {number: "+16175550102", description: a person}
start: menu
nodes:
  menu: {type: menu, say: Press a key., options: {"1": {to: message}, "2": {to: desk}}}
  desk: {type: transfer, target: desk, otherwise: message}
  message:
    type: voicemail
    say: Please speak after the tone.
    max_s: 60
    silence_s: 4
    transcribe: true
    to: thanks
    otherwise: menu
  thanks: {type: hangup, say: Thank you. Goodbye.}
"""
BUSINESS = parse_text(SHOP, "shop.yaml")


def at(key: str, business: Business = BUSINESS) -> Conversation:
    """A call that pressed this key."""
    call = Conversation(business, Moment(None, "+12025550144"))
    call.begin()
    call.press(key)
    return call


def test_a_message_is_recorded_and_the_flow_goes_on() -> None:
    call = at("1")
    assert call.state.ended == "voicemail"
    assert engine.away(BUSINESS, call.state) == Record(60, 4, "#", transcribe=True)
    assert FlowState.from_json(call.state.to_json(), BUSINESS) == call.state
    assert call.result(Came.RECORDED).said() == "Thank you. Goodbye."
    assert call.state.ended == "hung_up"


def test_nothing_said_goes_elsewhere() -> None:
    call = at("1")
    assert call.result(Came.EMPTY).said() == "Press a key."
    assert (call.state.node, call.state.ended) == ("menu", "")
    without = parse_text(SHOP.replace("    otherwise: menu\n", ""), "shop.yaml")
    call = at("1", without)
    assert call.result(Came.EMPTY).said() == "Thank you. Goodbye."


def test_who_hangs_up_after_speaking_is_done() -> None:
    call = at("1")
    assert call.result(Came.HUNG_UP).actions == ()
    assert call.state.ended == "hung_up"


def test_from_a_person_who_is_not_reached_to_the_tone() -> None:
    call = at("2")
    reaction = call.result(Came.NO_ANSWER)
    said = "I am sorry, nobody could take the call. Please speak after the tone."
    assert reaction.said() == said
    assert reaction.actions[-1] == Leave("Please speak after the tone.")
    assert (call.state.ended, call.state.trip) == ("voicemail", Trip(2, say=said))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("max_s: 60", "max_s: 1", "is too small"),
        ("to: thanks", "to: gone", "no node is called `gone`"),
        ("say: Please speak after the tone.", "silence_s: 4", "is given twice"),
        ("shop@example.com", "shop", "not an e-mail address"),
        ("otherwise: menu", "otherwise: desk", "leads back to itself"),
    ],
)
def test_what_is_wrong_is_told(old: str, new: str, told: str) -> None:
    assert old in SHOP
    with pytest.raises(FlowErrors) as caught:
        parse_text(SHOP.replace(old, new, 1), "shop.yaml")
    assert any(told in fault.message for fault in caught.value.faults), caught.value.faults


def test_a_message_nobody_is_told_of_is_warned_about(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(SHOP)
    assert [str(fault) for fault in check_paths(file)] == []
    file.write_text(SHOP.replace("notices: {email: [shop@example.com]}\n", ""))
    (warning,) = check_paths(file)
    assert warning.message == "nobody is told of the messages left here"
    assert warning.line == 13
