"""The query of a report, and its SQL.

The usage of all teams is read from the sums by day. The usage of one team, and dimensions that only rows have, are read
from the rows. Both readings count whole days of the configured time zone if the time is given in days. This module does
no I/O, and the time is an argument.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from proxy.ledger.rollups import UNPRICED, Days

DIMENSIONS: Final = ("team", "key", "model", "asked", "user", "tag", "day", "deployment")
"""The dimensions of a report. `model` is the name in the configuration, such as `openai/*`. `asked` is the name that
the client sent."""

DEFAULT_BY: Final = ("team", "model")

DEFAULT_SINCE: Final = "7d"

MAX_DAYS: Final = 4000
"""The most days of a report."""

_ROWS_ONLY: Final = frozenset({"asked", "user", "tag"})

_SPAN: Final = re.compile(r"([0-9]{1,5})([smhdw])", re.ASCII)
_SECONDS: Final[Mapping[str, int]] = {"s": 1, "m": 60, "h": 3600}
_DAYS: Final[Mapping[str, int]] = {"d": 1, "w": 7}


class UsageQueryError(ValueError):
    """An invalid query. The message is the reason."""


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """A report, grouped `by` dimensions, since `since` in ms. `day` is the day of that time if it is a whole day.
    `team` limits the report to one team."""

    by: tuple[str, ...]
    since: int
    day: str | None
    zone: str
    team: str | None = None

    @property
    def from_rows(self) -> bool:
        """Whether the report needs the rows themselves."""
        return self.team is not None or self.day is None or not _ROWS_ONLY.isdisjoint(self.by)


@dataclass(frozen=True, slots=True)
class SqlDialect:
    """The parts of SQL that differ between the databases: the placeholder of a parameter, the tables, the day of a row,
    a time from a parameter in ms, and the tags as text. The day has a parameter for the zone if `day_takes_zone`."""

    mark: str
    request: str
    usage_day: str
    day: str
    day_takes_zone: bool
    time: str
    tags: str


def usage_query(by: Sequence[str], since: str, team: str | None, zone: str, now: int) -> UsageQuery:
    """Return the query of these parameters. `now` is in ms. `since` is a duration such as 7d, or a date."""
    for name in by:
        if name not in DIMENSIONS:
            raise UsageQueryError(f"by: {name[:40]!r} is none of {', '.join(DIMENSIONS)}")
    days = Days(zone)
    if (span := _SPAN.fullmatch(since)) and span[2] in _SECONDS:
        begin = max(0, now - 1000 * int(span[1]) * _SECONDS[span[2]])
        return UsageQuery(tuple(dict.fromkeys(by)), begin, None, zone, team)
    first = _first_day(since, days.at(now))
    return UsageQuery(tuple(dict.fromkeys(by)), days.midnight(first), first.date().isoformat(), zone, team)


def _first_day(since: str, now: datetime) -> datetime:
    """Return the first of the given number of days up to today, or the given day."""
    if span := _SPAN.fullmatch(since):
        count = int(span[1]) * _DAYS[span[2]]
        if not 1 <= count <= MAX_DAYS:
            raise UsageQueryError(f"since: 1 to {MAX_DAYS} days")
        return now - timedelta(days=count - 1)
    try:
        day = date.fromisoformat(since)
        if day.year < 1971:
            raise ValueError
    except ValueError:
        raise UsageQueryError(f"since: {since[:40]!r} is no duration such as 7d or 12h, and no date") from None
    return datetime(day.year, day.month, day.day, tzinfo=now.tzinfo)


# SQL -----------------------------------------------------------------------------------------------------------------

_COLUMNS: Final[Mapping[str, str]] = {
    "team": "team",
    "key": "key_name",
    "model": "model",
    "asked": "asked",
    "deployment": "coalesce(deployment, '')",
    "user": "coalesce(user_name, '')",
}

_ROW_SUMS: Final = (
    "count(*), coalesce(sum(CASE WHEN outcome = 'ok' THEN 0 ELSE 1 END), 0), coalesce(sum(tokens_in), 0), "
    "coalesce(sum(tokens_cached), 0), coalesce(sum(tokens_out), 0), coalesce(sum(tokens_reasoning), 0), "
    f"coalesce(sum(cost), 0), coalesce(sum(CASE WHEN {UNPRICED} THEN 1 ELSE 0 END), 0), "
    "coalesce(sum(ms), 0)"
)

_DAY_SUMS: Final = ", ".join(
    f"coalesce(sum({name}), 0)"
    for name in (
        *("requests", "errors", "tokens_in", "tokens_cached", "tokens_out", "tokens_reasoning"),
        *("cost", "unpriced", "ms"),
    )
)


def usage_sql(query: UsageQuery, dialect: SqlDialect) -> tuple[str, list[str | int]]:
    """Return the statement and its parameters. The first columns are the dimensions, followed by the sums."""
    if query.from_rows:
        return _from_rows(query, dialect)
    groups = ["day" if name == "day" else _COLUMNS[name] for name in query.by]
    where = f"day >= {dialect.mark}"
    return _statement(groups, _DAY_SUMS, dialect.usage_day, where), [query.day or ""]


def _from_rows(query: UsageQuery, dialect: SqlDialect) -> tuple[str, list[str | int]]:
    groups, parameters = [], list[str | int]()
    for name in query.by:
        if name == "day":
            groups.append(dialect.day)
            parameters += [query.zone] if dialect.day_takes_zone else []
        elif name == "tag":
            groups.append(dialect.tags)
        else:
            groups.append(_COLUMNS[name])
    where = f"time >= {dialect.time}"
    parameters.append(query.since)
    if query.team is not None:
        where = f"team = {dialect.mark} AND {where}"
        parameters.insert(-1, query.team)
    return _statement(groups, _ROW_SUMS, dialect.request, where), parameters


def _statement(groups: Sequence[str], sums: str, table: str, where: str) -> str:
    chosen = "".join(f"{group}, " for group in groups)
    by = f" GROUP BY {', '.join(str(position + 1) for position in range(len(groups)))}" if groups else ""
    return f"SELECT {chosen}{sums} FROM {table} WHERE {where}{by}"  # noqa: S608 - only words of this file
