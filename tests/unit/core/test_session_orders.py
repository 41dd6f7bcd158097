"""What a call orders in its last step is ordered, whenever the caller hangs up."""

from callflows.parse import parse_text
from ivr.core import commands as do
from tests.unit.core.harness import World, calling, speech

CALLER = "+12025550144"
SHOP = parse_text(
    """\
id: shop
name: The Shop
numbers: ["+16175550101"]
timezone: America/New_York
disclosure: ""
greeting: The Shop.
transfers: {desk: {number: "+16175550102", description: a person}}
start: menu
nodes:
  menu: {type: menu, say: Press a key., options: {"1": {to: text}, "2": {to: talk}, "3": {to: note}}}
  talk: {type: talk, instructions: Talk., exits: {done: {to: text, when: all is said}}, transfers: []}
  text: {type: sms, text: Thank you., recipient: desk, to: bye}
  bye: {type: hangup, say: Goodbye now.}
  note: {type: sms, text: A caller., recipient: desk, to: desk}
  desk: {type: transfer, target: desk, say: Connecting you., otherwise: menu}
""",
    "shop.yaml",
)


def orders(world: World) -> list[str]:
    """What the last thing that was journalled has in it."""
    state = world.of(do.SaveSnapshot)[-1].snapshot.state
    return [order["text"] for order in state.get("orders", ())]


def at_menu(*answers: object) -> World:
    world = World(*answers, business=SHOP)  # type: ignore[arg-type]
    world.run(5_500)
    assert world.said() == ["The Shop.", "Press a key."]
    return world


def test_a_text_stands_when_the_caller_hangs_up_before_the_goodbye() -> None:
    world = at_menu()
    world.press("1")
    world.hang_up()
    world.run(3_000)
    assert orders(world) == ["Thank you."]


def test_a_text_stands_when_the_line_breaks_during_the_goodbye() -> None:
    world = at_menu()
    world.press("1")
    world.run(1_000)
    world.break_line()
    world.run(3_000)
    assert world.of(do.LeaveCall)
    assert orders(world) == ["Thank you."]
    flow = world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]
    assert (flow["node"], flow["ahead"]) == ("menu", 1)


def test_a_text_before_a_transfer_stands_too() -> None:
    world = at_menu()
    world.press("3")
    world.hang_up()
    world.run(3_000)
    assert orders(world) == ["A caller."]


def test_a_text_is_ordered_once_when_all_goes_well() -> None:
    world = at_menu()
    world.press("1")
    world.run(6_000)
    assert world.of(do.EndCall)
    assert orders(world) == ["Thank you."]
    assert "ahead" not in world.of(do.SaveSnapshot)[-1].snapshot.state["flow"]


def test_a_text_behind_an_exit_that_the_model_takes_stands() -> None:
    world = at_menu(speech("What else?", 600), calling(("leave_done", "{}")))
    world.press("2")
    world.run(3_000)
    world.says("That is all.")
    world.run(4_000)
    world.hang_up()
    world.run(3_000)
    assert orders(world) == ["Thank you."]
