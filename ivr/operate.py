"""Commands that look at a service's data from outside: calls, migrations."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from rich.console import Console

from callflows.parse import load_folder
from ivr import show_costs
from ivr.errors import CallthreadError
from ivr.foundations import database, flow_folder
from ivr.places import migrations
from ivr.settings import Settings
from ivr.show import as_json as call_json
from ivr.show import load_call, render_call, render_list
from ivr.spending import month_start
from memory import errors as faults
from memory import migrate
from memory.embedded import normalise_url
from memory.store import Store
from memory.store_costs import CostKey


@contextlib.asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Store]:
    """The service's store, whether or not the service is running. Raises: `CallthreadError`."""
    async with database(settings) as url:
        store = Store(url)
        try:
            yield store
        except faults.MemoryFault as error:
            raise CallthreadError(f"the database: {error}") from error
        finally:
            await store.close()


async def print_calls(settings: Settings, out: Console, business: str, limit: int) -> None:
    """`ivr calls list`."""
    known = list(load_folder(flow_folder(settings)).businesses)
    if business and business not in known:
        raise CallthreadError(f"there is no business {business!r}; there are: {', '.join(known)}")
    async with opened(settings) as store:
        for business_id in [business] if business else known:
            rows = await store.list_calls(business_id, limit=limit)
            out.print(f"{business_id}: {len(rows)} calls", style="bold")
            if rows:
                out.print(render_list(rows))


async def print_call(settings: Settings, out: Console, call_sid: str, *, as_json: bool) -> None:
    """`ivr calls show`."""
    async with opened(settings) as store:
        view = await load_call(store, call_sid)
    if view is None:
        raise CallthreadError(f"no call {call_sid!r} is known here; `ivr calls list` shows those that are")
    if as_json:
        out.print(call_json(view), markup=False, soft_wrap=True)
    else:
        out.print(render_call(view))


@dataclass(frozen=True, slots=True)
class CostQuery:
    """What `ivr costs` was asked: `business` empty for all, `month` like 2026-11, empty for all time."""

    business: str = ""
    month: str = ""
    by: CostKey = CostKey.MONTH


async def print_costs(settings: Settings, out: Console, asked: CostQuery, *, as_json: bool) -> None:
    """`ivr costs`."""
    businesses = load_folder(flow_folder(settings)).businesses
    if asked.business and asked.business not in businesses:
        raise CallthreadError(f"there is no business {asked.business!r}; there are: {', '.join(businesses)}")
    found = {}
    async with opened(settings) as store:
        for business in businesses.values():
            if asked.business in ("", business.id):
                since, until = month_of(asked.month, business.timezone)
                found[business.id] = await store.costs_by(
                    business.id, asked.by, business.timezone, since, until
                )
    if as_json:
        out.print(show_costs.as_json(found, asked.by), markup=False, soft_wrap=True)
        return
    for business_id, rows in found.items():
        if rows:
            out.print(show_costs.render(business_id, rows, asked.by))
        else:
            out.print(f"{business_id}: {show_costs.NOTHING}", markup=False)
    out.print(show_costs.NOTE, style="dim")


def month_of(month: str, zone: str) -> tuple[datetime | None, datetime | None]:
    """The month's first moment and the next one's, in this zone. Raises: `CallthreadError` for no month."""
    if not month:
        return None, None
    try:
        since = datetime.strptime(month, "%Y-%m").replace(tzinfo=ZoneInfo(zone))
    except ValueError:
        raise CallthreadError(f"--month {month}: write it like 2026-11") from None
    return since, month_start(since + timedelta(days=32))


async def migrate_database(settings: Settings, out: Console, service_role: str | None) -> None:
    """`ivr db upgrade`."""
    if settings.database_url is None:
        async with database(settings):
            out.print(f"the embedded database under {settings.data_dir} is at the newest schema")
        return
    url = normalise_url(settings.database_url.get_secret_value())
    try:
        await asyncio.to_thread(migrate.upgrade, url, migrations(), service_role)
    except faults.StorageUnavailable as error:
        raise CallthreadError(f"IVR_DATABASE_URL: the database cannot be reached: {error}") from error
    out.print("the database is at the newest schema")
