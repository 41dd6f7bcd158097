"""Hours that the owner sets by telephone: by keys, after the PIN, and for nobody else."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from callflows import engine
from callflows.check import check_paths
from callflows.engine import Moment, SetHours
from callflows.parse import parse_text

OWNER = "+12025550143"
FLOW = """\
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
disclosure: ""
greeting: Hello.
hours:
  office: {weekly: {mon-fri: "09:00-17:00"}}
callers: {owners: ["+12025550143"]}
start: now
nodes:
  now: {type: hours, hours: office, open: menu, closed: menu}
  menu: {type: menu, say: Press nine., options: {"9": {to: pin}, "1": {to: talk}}}
  pin:
    type: verify
    say: Your PIN?
    no_match: {times: 2}
    to: choose
    failed: menu
  choose:
    type: menu
    say: Press one to open, two to close, three for the usual hours.
    options: {"1": {to: opened}, "2": {to: closed}, "3": {to: usual}}
  opened: {type: override, hours: office, state: open, lasts: 3h, to: done, failed: menu}
  closed: {type: override, hours: office, state: closed, to: done, failed: menu}
  usual: {type: override, hours: office, state: normal, to: done, failed: menu}
  done: {type: hangup, say: It is set.}
  talk: {type: talk, instructions: Help., exits: {menu: {to: menu, when: asked}}}
"""
SHOP = parse_text(FLOW, "shop.yaml")
NOW = datetime(2026, 1, 7, 15, tzinfo=UTC)


def chosen(key: str, caller: str | None = OWNER, *, is_right: bool = True) -> engine.Step:
    """The call after the PIN and a key."""
    moment = Moment(NOW, caller, call_id="CA1")
    state = engine.begin(SHOP, moment).state
    for event in (engine.Key("9"), engine.Key("4"), engine.Key("2"), engine.Key("#")):
        state = engine.step(SHOP, state, event, moment).state
    assert state.using is not None
    state = engine.step(SHOP, state, engine.ToolAnswer(state.using.key, is_right), moment).state
    step = engine.step(SHOP, state, engine.Key(key), moment)
    return engine.step(SHOP, step.state, engine.KeysDone(), moment) if step.state.progress.keys else step


def orders(step: engine.Step) -> list[SetHours]:
    return [action for action in step.actions if isinstance(action, SetHours)]


@pytest.mark.parametrize(("key", "is_open", "lasts_h"), [("1", True, 3), ("2", False, 12), ("3", None, 12)])
def test_the_owner_sets_hours_after_the_pin(key: str, is_open: bool | None, lasts_h: int) -> None:
    step = chosen(key)
    (order,) = orders(step)
    assert (order.schedule, order.is_open) == ("office", is_open)
    assert order.until == NOW + timedelta(hours=lasts_h)
    assert step.state.ended == "hung_up"


@pytest.mark.parametrize("caller", ["+12025550199", None])
def test_another_number_sets_nothing_even_with_a_pin_of_its_own(caller: str | None) -> None:
    step = chosen("1", caller)
    assert orders(step) == []
    assert step.state.node == "menu"


def test_a_wrong_pin_leads_to_no_choice() -> None:
    step = chosen("1", is_right=False)
    assert orders(step) == []
    assert step.state.node == "pin"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"1": {to: talk}', '"1": {to: choose}'),
        ("menu: {to: menu, when: asked}", "menu: {to: closed, when: asked}"),
        ("failed: menu\n  choose", "failed: choose\n  choose"),
        ("{times: 2}", "{times: 2, to: choose}"),
        ("open: menu", "open: opened"),
    ],
)
def test_a_way_around_the_pin_is_a_fault(tmp_path: Path, old: str, new: str) -> None:
    assert old in FLOW
    (tmp_path / "f.yaml").write_text(FLOW)
    assert [fault.message for fault in check_paths(tmp_path) if fault.severity == "error"] == []
    (tmp_path / "f.yaml").write_text(FLOW.replace(old, new, 1))
    faults = [fault for fault in check_paths(tmp_path) if "can be reached without a PIN" in fault.message]
    assert faults
    lines = (tmp_path / "f.yaml").read_text().split("\n")
    assert all("type: override" in lines[fault.line - 1] for fault in faults)
