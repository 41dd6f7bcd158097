"""A call whose node has vanished goes on at the nearest node before it that is still there."""

import pytest

from callflows.model import Business
from callflows.parse import parse_text
from callflows.survivors import surviving, taken_up

HEAD = """\
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello.
start: menu
nodes:
"""
MENU = '  menu: {type: menu, say: Choose., options: {"1": {to: party}, "2": {to: talk}}}\n'
PARTY = '  party: {type: collect, slot: party, kind: number, say: "How many?", to: size}\n'
SIZE = "  size: {type: branch, cases: [{when: {slot: party, value: 1}, to: day}], otherwise: day}\n"
DAY = '  day: {type: collect, slot: day, kind: date, by: voice, say: "When?", to: talk}\n'
TALK = (
    "  talk: {type: talk, instructions: Help., exits: {day: {to: day, when: x}, menu: {to: menu, when: x}}}\n"
)


def flow(*nodes: str) -> Business:
    return parse_text(HEAD + "".join(nodes), "f.yaml")


OLD = flow(MENU, PARTY, SIZE, DAY, TALK)
NO_DAY = TALK.replace("day: {to: day, when: x}, ", "")
TO_TALK = PARTY.replace("to: size", "to: talk")


@pytest.mark.parametrize(
    ("new", "node", "at"),
    [
        (OLD, "day", "day"),
        # `size` led there too, but waits for nobody; `talk` did, and is there.
        (flow(MENU, TO_TALK, NO_DAY), "day", "talk"),
        (flow(MENU, TO_TALK, NO_DAY), "size", "party"),
        (flow(MENU.replace("to: party", "to: talk"), NO_DAY), "size", "menu"),
        (OLD, "nonsense", "menu"),
    ],
)
def test_the_nearest_node_that_waits_and_led_there(new: Business, node: str, at: str) -> None:
    assert surviving(OLD, new, node) == at


def test_what_was_gathered_is_kept_and_what_was_half_entered_is_not() -> None:
    new = flow(MENU, TO_TALK, NO_DAY)
    stored = {"version": 1, "node": "day", "slots": {"party": 3}, "progress": {"no_match": 2}}
    assert taken_up(stored, OLD, new) == {"version": 1, "node": "talk", "slots": {"party": 3}}
    assert taken_up(stored, OLD, OLD) == stored
    assert taken_up(None, OLD, new) is None
    assert taken_up({"node": 7}, OLD, new) == {"node": 7}
