"""Who is on duty when: shifts by the week and by date, told for an instant in the business's time zone."""

from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import Field

from callflows.fields import Name
from callflows.hours import Hours, IsoDate
from callflows.part import Part


class Shift(Hours):
    """Hours, as a schedule has them, and who is on duty then."""

    who: tuple[Name, ...] = Field(min_length=1, max_length=10, description="Transfer targets, first to last.")


class Rota(Part):
    """Shifts. On a date of its own only the people named there are on duty."""

    shifts: tuple[Shift, ...] = Field(min_length=1, max_length=50)
    dates: dict[IsoDate, tuple[Name, ...]] = Field(
        {}, max_length=400, description='"2026-12-25": [anna]: on duty from midnight to midnight.'
    )

    def on_duty(self, now: datetime, zone: ZoneInfo) -> tuple[str, ...]:
        """The names of who is on duty, in the file's order, each once. `now` must have a zone."""
        own = self.dates.get(now.astimezone(zone).date().isoformat())
        if own is not None:
            return own
        names = (name for shift in self.shifts if shift.is_open(now, zone) for name in shift.who)
        return tuple(dict.fromkeys(names))

    def people(self) -> set[str]:
        """Everybody in it."""
        return {name for names in (*(s.who for s in self.shifts), *self.dates.values()) for name in names}
