"""Hours that are set by hand, in a call that is under way: by somebody else, or by this very caller."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from callflows.engine import Override
from callflows.parse import parse_text
from ivr.core import commands as do
from ivr.core import events as ev
from ivr.core.session import CallCore
from tests.unit.core.harness import World

OWNER = "+12025550143"
NOW = datetime(2026, 1, 7, 10, tzinfo=ZoneInfo("America/New_York"))  # Wednesday
LATER = NOW.replace(hour=23)
SHOP = """\
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: The Shop.
hours:
  office: {weekly: {mon-fri: "09:00-17:00"}}
callers: {owners: ["+12025550143"]}
start: menu
nodes:
  menu: {type: menu, say: Press one., options: {"1": {to: now}, "9": {to: pin}}}
  now: {type: hours, hours: office, open: open, closed: closed}
  open: {type: say, say: We are open., to: menu}
  closed: {type: say, say: We are closed., to: menu}
  pin: {type: verify, say: Your PIN., to: choose, failed: menu}
  choose: {type: menu, say: Two or three., options: {"2": {to: close}, "3": {to: shut}}}
  close: {type: override, hours: office, state: closed, to: now, failed: menu}
  shut: {type: override, hours: office, state: closed, to: bye, failed: menu}
  bye: {type: hangup, say: It is set.}
"""


def shop() -> World:
    world = World(business=parse_text(SHOP, "shop.yaml"))
    world.core = CallCore(replace(world.setup, caller=OWNER, started_at=NOW), world.now_ms)
    world.run(5_500)
    return world


def by_hand(world: World, overrides: dict[str, Override]) -> str:
    """What the caller hears at the `hours` node after these were told."""
    world.happen(ev.HoursByHand(overrides))
    world.press("1")
    world.run(5_000)
    return world.said()[-1]


def entered(world: World) -> World:
    """The owner's PIN was entered, and is right."""
    world.press("9")
    world.run(4_000)
    world.press("4", "2", "#")
    world.run(200)
    (check,) = world.of(do.CheckPin)
    world.happen(ev.ToolAnswered(check.key, True))
    world.run(4_000)
    return world


def test_what_is_set_while_the_call_is_under_way_holds_at_its_next_hours_node() -> None:
    world = shop()
    assert by_hand(world, {"office": Override(False, LATER)}).startswith("We are closed.")
    assert by_hand(world, {}).startswith("We are open.")
    assert by_hand(world, {"office": Override(False, NOW)}).startswith("We are open.")  # over already


def test_what_the_caller_sets_holds_for_themselves_at_once() -> None:
    world = entered(shop())
    world.press("2")
    world.run(200)
    assert [order.is_open for order in world.of(do.SetHours)] == [False]
    world.run(4_000)
    assert world.said()[-1].startswith("We are closed.")
    world.press("1")
    world.run(5_000)
    assert world.said()[-1].startswith("We are closed.")


def test_what_is_set_as_the_last_of_a_call_is_set() -> None:
    world = entered(shop())
    world.press("3")
    world.run(5_000)
    assert world.said()[-1] == "It is set."
    assert [order.schedule for order in world.of(do.SetHours)] == ["office"]
    assert world.of(do.EndCall) == [do.EndCall(do.EndReason.FINISHED)]
