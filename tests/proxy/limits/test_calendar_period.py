"""The begin and the end of periods, with daylight saving time and with a clock that is set."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.limits.calendar_period import PeriodClock, bounds
from proxy.limits.limit import Period
from tests.support.looped import looped

CALENDAR = (Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH)
ZONES = ("UTC", "Europe/Berlin", "America/Santiago", "Africa/Cairo", "Asia/Kolkata", "Asia/Kathmandu", "America/Havana")


def at(zone: str, *parts: int) -> float:
    return datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[misc, arg-type]  # year, month, day, ...


def hours(zone: str, period: Period, moment: float) -> float:
    start, end = bounds(period, ZoneInfo(zone), moment)
    return (end - start) / 3600


@given(
    period=st.sampled_from(CALENDAR),
    zone=st.sampled_from(ZONES),
    wall=st.floats(at("UTC", 2025, 1, 1), at("UTC", 2030, 1, 1)),
)
def test_each_moment_is_in_its_period_and_the_next_begins_where_it_ends(period: Period, zone: str, wall: float) -> None:
    start, end = bounds(period, ZoneInfo(zone), wall)
    assert start <= wall < end
    assert start % 900 == end % 900 == 0
    assert bounds(period, ZoneInfo(zone), end)[0] == end
    assert bounds(period, ZoneInfo(zone), start) == (start, end)
    assert bounds(period, ZoneInfo(zone), end - 1) == (start, end)


def test_days_have_23_24_and_25_hours() -> None:
    assert hours("Europe/Berlin", Period.DAY, at("Europe/Berlin", 2026, 3, 29, 12)) == 23
    assert hours("Europe/Berlin", Period.DAY, at("Europe/Berlin", 2026, 11, 23, 12)) == 24
    assert hours("Europe/Berlin", Period.DAY, at("Europe/Berlin", 2026, 10, 25, 12)) == 25
    assert hours("Europe/Berlin", Period.WEEK, at("Europe/Berlin", 2026, 10, 25, 12)) == 24 * 7 + 1


@pytest.mark.parametrize(
    ("zone", "day"), [("America/Santiago", (2026, 9, 6)), ("Africa/Cairo", (2026, 4, 24))], ids=["Santiago", "Cairo"]
)
def test_a_day_without_a_midnight_begins_when_the_clocks_change(zone: str, day: tuple[int, int, int]) -> None:
    noon = at(zone, *day, 12)
    start, end = bounds(Period.DAY, ZoneInfo(zone), noon)
    assert (end - start) / 3600 == 23
    begins = datetime.fromtimestamp(start, ZoneInfo(zone))
    assert (begins.hour, begins.minute, begins.date()) == (1, 0, datetime(*day, tzinfo=UTC).date())
    before = datetime.fromtimestamp(start - 1, ZoneInfo(zone))
    assert before.date() == begins.date() - timedelta(days=1)


def test_weeks_begin_on_monday_and_months_on_the_first() -> None:
    sunday = at("Europe/Berlin", 2026, 11, 29, 23, 59, 59)
    start, end = bounds(Period.WEEK, ZoneInfo("Europe/Berlin"), sunday)
    assert datetime.fromtimestamp(start, ZoneInfo("Europe/Berlin")).isoformat() == "2026-11-23T00:00:00+01:00"
    assert end == sunday + 1
    for month in range(1, 13):
        moment = at("America/Havana", 2026, month, 28)
        start, end = bounds(Period.MONTH, ZoneInfo("America/Havana"), moment)
        assert start == at("America/Havana", 2026, month, 1)
        assert datetime.fromtimestamp(end, ZoneInfo("America/Havana")).day == 1


def test_hours_are_those_of_the_wall_and_an_hour_that_comes_twice_is_two() -> None:
    assert bounds(Period.HOUR, ZoneInfo("Asia/Kathmandu"), at("Asia/Kathmandu", 2026, 5, 5, 10, 40))[0] == at(
        "Asia/Kathmandu", 2026, 5, 5, 10
    )
    first = at("Europe/Berlin", 2026, 10, 25, 2, 30)
    assert bounds(Period.HOUR, ZoneInfo("Europe/Berlin"), first + 3600)[0] == first + 1800


def test_the_clock_of_periods_looks_them_up_once_and_goes_on() -> None:
    zone = ZoneInfo("Europe/Berlin")
    noon = at("Europe/Berlin", 2026, 11, 23, 12)
    clock = PeriodClock(Period.DAY, zone, noon)
    before = (clock.start, clock.end)
    clock.move(noon + 3600)
    assert (clock.start, clock.end) == before
    clock.move(clock.end)
    assert clock.start == before[1]


@looped(("back", "told"), [(30.0, False), (60.0, True), (40 * 86400.0, True)])
def test_a_wall_clock_that_is_set_back_leaves_the_later_period(back: float, told: bool) -> None:
    start = at("UTC", 2026, 11, 23)
    clock = PeriodClock(Period.DAY, ZoneInfo("UTC"), start)
    clock.move(start - back)
    assert clock.start == start
    assert clock.ahead(start - back) is told
    clock.move(start + 86400)
    assert clock.start == start + 86400
