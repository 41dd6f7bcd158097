"""`ivr flows override`: hours that are set by hand, until a time; in force in every worker's calls."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import structlog
from rich.console import Console

from callflows.fields import parse_duration
from callflows.hours import Override
from callflows.model import Business
from callflows.parse import load_folder
from callflows.scripts import local_time
from ivr.core.commands import SetHours
from ivr.core.events import HoursByHand
from ivr.core.setup import CallSetup
from ivr.errors import CallthreadError
from ivr.foundations import flow_folder
from ivr.operate import opened
from ivr.remembering import in_our_terms
from ivr.settings import Settings
from memory import errors as faults
from memory.store import Store
from memory.store_notices import HoursOverride

log = structlog.get_logger()

LONGEST = timedelta(days=366)
LOOK_EVERY_S = 2.0
"""As often as for new flow files."""


async def set_hours(
    settings: Settings, out: Console, business_id: str, state: str, schedule: str, until: str
) -> None:
    """Set, take back (`normal`) or, without a state, list what is set by hand. Raises: `CallthreadError`."""
    business = _business(settings, business_id)
    schedules = _schedules(business, schedule)
    now = datetime.now(UTC)
    async with opened(settings) as store:
        if state in ("open", "closed"):
            end = until_of(until, business.timezone, now)
            for name in schedules:
                await store.set_override(business.id, HoursOverride(name, state == "open", end))
        elif state == "normal":
            for name in schedules:
                await store.clear_override(business.id, name)
        elif state:
            raise CallthreadError(f"{state!r} is none of open, closed and normal")
        _tell(out, business, await store.overrides(business.id, now))


async def overrides_of(store: Store, business: Business, now: datetime) -> Mapping[str, Override]:
    """What holds now, as the flow takes it. Raises: `memory.errors`."""
    held = await store.overrides(business.id, now) if business.hours else []
    return {each.schedule: Override(each.is_open, each.until) for each in held}


class HoursBoard:
    """Tells the calls under way here what is set by hand, within `LOOK_EVERY_S`, whoever set it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._calls: dict[str, _Told] = {}

    def joined(self, call_id: str, setup: CallSetup, tell: Callable[[HoursByHand], None]) -> None:
        """A call begins, which knows what was set until now."""
        if setup.business.hours:
            self._calls[call_id] = _Told(setup.business, tell, setup.overrides)

    def left(self, call_id: str) -> None:
        """The call's stream is over."""
        self._calls.pop(call_id, None)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except faults.MemoryFault as error:
                log.warning("hours_not_looked_at", error=type(error).__name__)

    async def look(self) -> None:
        """Tell every call that does not know it yet. Raises: `memory.errors`."""
        now = datetime.now(UTC)
        businesses = {told.business.id: told.business for told in self._calls.values()}
        held = {key: await overrides_of(self._store, each, now) for key, each in businesses.items()}
        for told in tuple(self._calls.values()):
            known = held.get(told.business.id, told.known)
            if known != told.known:
                told.known = known
                told.tell(HoursByHand(known))


@dataclass(slots=True)
class _Told:
    """A call, and what it was told last."""

    business: Business
    tell: Callable[[HoursByHand], None]
    known: Mapping[str, Override]


async def apply_override(store: Store, business_id: str, order: SetHours) -> None:
    """What the owner has set by telephone. Raises: `ivr.errors.StorageUnavailable`."""
    async with in_our_terms():
        if order.is_open is None:
            await store.clear_override(business_id, order.schedule)
        else:
            await store.set_override(business_id, HoursOverride(order.schedule, order.is_open, order.until))
    log.info("hours_set_by_phone", business=business_id, schedule=order.schedule, is_open=order.is_open)


def until_of(text: str, zone: str, now: datetime) -> datetime:
    """`3h`, `2d`, or a time, local at the business. Raises: `CallthreadError` with an example."""
    if not text:
        raise CallthreadError("--until: say how long it holds, like --until 3h or --until 2026-12-24T18:00")
    length = parse_duration(text)
    try:
        end = now + length if length is not None else local_time(text, zone)
    except (ValueError, OverflowError):
        raise CallthreadError("--until: not a time; like 3h, 2d or 2026-12-24T18:00") from None
    if not now < end <= now + LONGEST:
        raise CallthreadError("--until: must lie ahead, by a year at most")
    return end


def _business(settings: Settings, business_id: str) -> Business:
    known = load_folder(flow_folder(settings)).businesses
    if business_id not in known:
        raise CallthreadError(f"there is no business {business_id!r}; there are: {', '.join(known)}")
    return known[business_id]


def _schedules(business: Business, named: str) -> Sequence[str]:
    if not business.hours:
        raise CallthreadError(f"{business.id} has no hours; docs/callflows.md shows how to write them")
    if named and named not in business.hours:
        raise CallthreadError(f"--hours: {business.id} has no {named!r}, but {', '.join(business.hours)}")
    return [named] if named else list(business.hours)


def _tell(out: Console, business: Business, held: Sequence[HoursOverride]) -> None:
    for each in held:
        until = each.until.astimezone(ZoneInfo(business.timezone))
        state = "open" if each.is_open else "closed"
        out.print(f"{business.id} {each.schedule}: {state} until {until:%Y-%m-%d %H:%M %Z}", markup=False)
    if not held:
        out.print(f"{business.id}: the hours of the file hold", markup=False)
