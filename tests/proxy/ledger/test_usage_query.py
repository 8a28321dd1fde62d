"""Queries of reports: their valid parameters, and the database table that serves them."""

import pytest

from proxy.ledger.usage_query import SqlDialect, UsageQueryError, usage_query, usage_sql
from tests.proxy.ledger.kit import NOON
from tests.support.looped import looped

WORDS = SqlDialect("?", "rows", "days", "day_of(time, ?)", True, "?", "tags")
DAY = 86_400_000


def test_days_are_whole_ones_that_end_with_today() -> None:
    assert usage_query(["team"], "1d", None, "UTC", NOON).day == "2026-11-01"
    week = usage_query(["team"], "7d", None, "UTC", NOON)
    assert (week.day, week.since) == ("2026-10-26", NOON - DAY // 2 - 6 * DAY)
    assert usage_query(["team"], "1w", None, "UTC", NOON) == week
    berlin = usage_query(["team"], "2026-10-26", None, "Europe/Berlin", NOON)
    assert berlin.since == week.since - 3_600_000


def test_hours_are_exact_and_need_the_rows() -> None:
    query = usage_query(["team"], "12h", None, "UTC", NOON)
    assert (query.since, query.day, query.from_rows) == (NOON - DAY // 2, None, True)


def test_everybodys_usage_comes_from_the_sums_and_one_teams_from_the_rows() -> None:
    everybody = usage_query(["team", "day"], "7d", None, "UTC", NOON)
    assert usage_sql(everybody, WORDS)[0].startswith("SELECT team, day, ")
    assert " FROM days WHERE day >= ?" in usage_sql(everybody, WORDS)[0]
    one = usage_query(["day", "key"], "7d", "search", "UTC", NOON)
    statement, parameters = usage_sql(one, WORDS)
    assert " FROM rows WHERE team = ? AND time >= ? GROUP BY 1, 2" in statement
    assert parameters == ["UTC", "search", one.since]
    for name in ("asked", "user", "tag"):
        assert usage_query([name], "7d", None, "UTC", NOON).from_rows


def test_a_dimension_counts_once() -> None:
    assert usage_query(["team", "day", "team"], "7d", None, "UTC", NOON).by == ("team", "day")


@looped("since", ["", "7", "d", "0d", "9999d", "99999w", "2026-13-01", "0001-01-01", "-1d", "7d; DROP", "\u0667d"])
def test_a_time_that_makes_no_sense_is_refused_by_name(since: str) -> None:
    with pytest.raises(UsageQueryError, match="since"):
        usage_query(["team"], since, None, "UTC", NOON)


def test_another_dimension_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageQueryError, match="'colour' is none of team, key"):
        usage_query(["colour"], "7d", None, "UTC", NOON)
