"""Hours set by hand: stored with their end, seen by the next call, taken back, and each business's own."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from callflows import engine
from callflows.model import Business
from callflows.parse import parse_text
from ivr.core.commands import SetHours
from ivr.core.events import HoursByHand
from ivr.core.setup import CallSetup
from ivr.errors import CallthreadError
from ivr.override import HoursBoard, apply_override, overrides_of, set_hours, until_of
from ivr.settings import Settings
from memory.embedded import conninfo_of
from memory.store import HoursOverride, Store

FLOW = """\
id: shop
name: Shop
numbers: ["+16175550101"]
timezone: America/New_York
greeting: Hello.
hours:
  office: {weekly: {mon-fri: "09:00-17:00"}}
  phone: {weekly: {mon-fri: "08:00-20:00"}}
start: now
nodes:
  now: {type: hours, hours: office, open: open, closed: closed}
  open: {type: talk, instructions: Help.}
  closed: {type: hangup, say: We are closed.}
"""
NOW = datetime(2026, 1, 7, 15, tzinfo=UTC)  # Wednesday, 10:00 in New York


def shop() -> Business:
    return parse_text(FLOW, "shop.yaml")


async def node_at(store: Store, now: datetime) -> str:
    held = await overrides_of(store, shop(), now)
    return engine.begin(shop(), engine.Moment(now, None, held)).state.node


async def test_an_override_decides_until_it_ends_and_for_its_business_only(store: Store) -> None:
    assert await node_at(store, NOW) == "open"
    until = NOW + timedelta(hours=2)
    await store.set_override("shop", HoursOverride("office", False, until))
    await store.set_override("elsewhere", HoursOverride("office", True, until + timedelta(days=9)))
    assert await node_at(store, NOW) == "closed"
    assert await node_at(store, until - timedelta(seconds=1)) == "closed"
    assert await node_at(store, until) == "open"
    night = NOW + timedelta(hours=12)
    assert await node_at(store, night) == "closed"
    await store.set_override("shop", HoursOverride("office", True, night + timedelta(hours=1)))
    assert await node_at(store, night) == "open"
    assert await store.clear_override("shop", "office")
    assert not await store.clear_override("shop", "office")
    assert await node_at(store, night) == "closed"
    assert len(await store.overrides("elsewhere", NOW)) == 1


async def test_what_the_owner_sets_by_telephone_holds_for_the_next_call(store: Store) -> None:
    until = NOW + timedelta(hours=2)
    await apply_override(store, "shop", SetHours("office", False, until))
    assert await node_at(store, NOW) == "closed"
    await apply_override(store, "shop", SetHours("office", None, until))
    assert await node_at(store, NOW) == "open"


async def test_the_command_sets_lists_and_takes_back(service_url: str, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(FLOW)
    env = {"IVR_CALLFLOWS": str(tmp_path), "IVR_DATABASE_URL": conninfo_of(service_url)}
    settings = Settings.load(env)

    async def told(*arguments: str) -> str:
        out = StringIO()
        await set_hours(settings, Console(file=out, width=200), "shop", *arguments)
        return out.getvalue()

    assert await told("", "", "") == "shop: the hours of the file hold\n"
    assert "shop office: closed until" in await told("closed", "office", "3h")
    assert (await told("", "", "")).count("\n") == 1
    assert (await told("open", "", "2d")).count(": open until") == 2
    assert await told("normal", "", "") == "shop: the hours of the file hold\n"
    for wrong in (("ajar", "", "3h"), ("open", "offce", "3h"), ("open", "", ""), ("open", "", "yesterday")):
        with pytest.raises(CallthreadError):
            await told(*wrong)


def test_until_is_a_length_or_a_local_time() -> None:
    assert until_of("1h30m", "America/New_York", NOW) == NOW + timedelta(minutes=90)
    assert until_of("2026-01-07T18:00", "America/New_York", NOW) == NOW + timedelta(hours=8)
    for wrong in ("2026-01-07T08:00", "2030-01-01", "soon"):
        with pytest.raises(CallthreadError, match="--until"):
            until_of(wrong, "America/New_York", NOW)


async def test_calls_under_way_are_told_once_of_what_changes(store: Store) -> None:
    board, told, other = HoursBoard(store), list[HoursByHand](), list[HoursByHand]()
    now = datetime.now(UTC)
    until = now + timedelta(hours=2)
    setup = CallSetup("CA1", shop(), engine.start(shop()), "")
    board.joined("CA1", setup, told.append)
    board.joined("CA2", replace(setup, overrides={"office": engine.Override(False, until)}), other.append)
    await board.look()
    assert (told, other) == ([], [HoursByHand({})])  # taken back between its beginning and now
    await store.set_override("shop", HoursOverride("office", False, until))
    await board.look()
    await board.look()
    assert told == [HoursByHand({"office": engine.Override(False, until)})] == other[1:]
    board.left("CA1")
    await store.clear_override("shop", "office")
    await board.look()
    assert (len(told), other[2:]) == (1, [HoursByHand({})])
