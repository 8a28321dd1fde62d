"""Where hours, days, weeks and months begin and end in a time zone, in seconds since 1970.

Days have 23 or 25 hours where the clocks change, and some have no midnight (Santiago, Cairo in 2026). Weeks begin on
Monday. Time is an argument.
"""

import math
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from proxy.limits.limit import Period

HOUR: Final = 3600

BACK: Final = 60.0
"""Seconds by which a clock has to go back before that is worth a line of the log."""


def bounds(period: Period, zone: tzinfo, wall: float) -> tuple[int, int]:
    """Return the beginning and the end of the period that holds a moment."""
    second = math.floor(wall)
    local = datetime.fromtimestamp(second, zone)
    if period is Period.HOUR:
        into = (local.minute * 60 + local.second) % HOUR
        begin = second - into
        return begin, begin + HOUR
    first = _first_day(period, local.date())
    after = _first_day(period, first + timedelta(days=32 if period is Period.MONTH else _DAYS[period]))
    return _midnight(first, zone), _midnight(after, zone)


_DAYS: Final = {Period.DAY: 1, Period.WEEK: 7}


def _first_day(period: Period, day: date) -> date:
    match period:
        case Period.WEEK:
            return day - timedelta(days=day.weekday())
        case Period.MONTH:
            return day.replace(day=1)
        case _:
            return day


def _midnight(day: date, zone: tzinfo) -> int:
    """Return when a day begins. A midnight that the clocks leave out is read by the offset before it, which makes it
    the moment at which they change; of two midnights it is the first."""
    return int(datetime.combine(day, time.min, zone).timestamp())


class PeriodClock:
    """The period that is now, for all that count by it; it is looked up once for each period, and never goes back.

    A wall clock that was set back leaves the later period in force until it is over: what was spent in it stays spent.
    """

    __slots__ = ("end", "period", "start", "zone")

    def __init__(self, period: Period, zone: tzinfo, wall: float) -> None:
        self.period = period
        self.zone = zone
        self.start, self.end = bounds(period, zone, wall)

    def move(self, wall: float) -> None:
        """Go on to the period of a moment, unless it is an earlier one."""
        if wall >= self.end:
            self.start, self.end = bounds(self.period, self.zone, wall)

    def ahead(self, wall: float) -> bool:
        """Return whether the wall clock is so far before this period that it was set back."""
        return wall <= self.start - BACK
