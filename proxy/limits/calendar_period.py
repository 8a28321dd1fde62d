"""The begin and end of hours, days, weeks and months in a time zone, in seconds since 1970. Time is an argument.

Days have 23 or 25 hours when the clocks change, and some days have no midnight (Santiago, Cairo in 2026). Weeks begin
on Monday.
"""

import math
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from proxy.limits.limit import Period

HOUR: Final = 3600

SET_BACK_SECONDS: Final = 60.0
"""The least seconds by which the wall clock must be set back for the change to be logged."""


def bounds(period: Period, zone: tzinfo, wall: float) -> tuple[int, int]:
    """Return the begin and the end of the period that contains a moment."""
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
    """Return when a day begins. If the clocks skip midnight, this is the moment of the change, because Python reads the
    missing time by the offset before it. If midnight comes twice, this is the first one."""
    return int(datetime.combine(day, time.min, zone).timestamp())


class PeriodClock:
    """The current calendar period, shared by all counters of its kind. It is computed once for each period and never
    goes back.

    If the wall clock is set back, the later period stays current until it is over. Spending in it stays counted.
    """

    __slots__ = ("end", "period", "start", "zone")

    def __init__(self, period: Period, zone: tzinfo, wall: float) -> None:
        self.period = period
        self.zone = zone
        self.start, self.end = bounds(period, zone, wall)

    def move(self, wall: float) -> None:
        """Move to the period of a moment, unless that is an earlier period."""
        if wall >= self.end:
            self.start, self.end = bounds(self.period, self.zone, wall)

    def ahead(self, wall: float) -> bool:
        """Return whether the wall clock is so far before this period that it must have been set back."""
        return wall <= self.start - SET_BACK_SECONDS
