"""The ledger in PostgreSQL, for one or several gateways. Each gateway has its own loader.

Each transaction begins by incrementing the number of the batch, and only one loader can hold the lock of that number's
row. So batches are committed in the order of their numbers, on which readers rely, and two loaders cannot deadlock.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from proxy.ledger import postgres_schema as sql
from proxy.ledger.ledger_row import LATEST_MS, JournalRow, LedgerRow
from proxy.ledger.ledger_settings import LedgerError, LedgerRefusedError, LedgerSettings
from proxy.ledger.ledger_store import (
    MARGIN_MS,
    SPEND_SECONDS,
    VERSION,
    Amounts,
    SpendBase,
    SpendChanges,
    UsageLine,
    last_of_each,
)
from proxy.ledger.postgres_connection import LONG_STATEMENT_TIMEOUT, RESPONSE_TIMEOUT, PostgresConnection
from proxy.ledger.rollups import SLOT_MS, Days, SlotSpend, UsageSums, roll_up
from proxy.ledger.usage_query import SqlDialect, UsageQuery, usage_sql

MONTHS_AHEAD: Final = 2

REBUILD_TIMEOUT: Final = 3600
"""The most seconds of a statement that reads every row."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_LAST_MONTH: Final = sql.month_of(LATEST_MS)

_DIALECT: Final = SqlDialect(
    mark="%s",
    request="dragoman.request",
    usage_day="dragoman.usage_day",
    day="to_char(time AT TIME ZONE %s, 'YYYY-MM-DD')",
    day_takes_zone=True,
    time="to_timestamp(%s / 1000.0)",
    tags="coalesce(tags::text, '')",
)


class PostgresStore:
    """The write access to the ledger of a database. It creates the tables, or migrates them to this version. `patience`
    is as in PostgresConnection."""

    def __init__(self, settings: LedgerSettings, patience: float = RESPONSE_TIMEOUT) -> None:
        self._settings = settings
        self._patience = patience
        self._days = Days(settings.zone)
        self._months: set[str] = set()
        self._connection = PostgresConnection(settings.url, settings.place, patience)
        try:
            self._migrate()
        except LedgerError:
            self._connection.close()
            raise

    def _migrate(self) -> None:
        """Migrate the schema to this version, and rebuild the sums by day if the configured time zone has changed."""
        run, zone = self._connection.run, self._settings.zone
        with self._connection.transaction():
            self._connection.rows("SELECT pg_advisory_xact_lock(%s)", (sql.LOCK,))
            version = _version(self._connection, self._settings.place)
            if not self._connection.rows("SELECT 1 FROM pg_namespace WHERE nspname = 'dragoman'"):
                run("CREATE SCHEMA dragoman")
            for step in sql.MIGRATIONS[version:]:
                for statement in step:
                    run(statement)
            ((known,),) = self._connection.rows("SELECT zone FROM dragoman.meta FOR UPDATE")
            if known != zone:
                with self._connection.allowing(REBUILD_TIMEOUT):
                    run("DELETE FROM dragoman.usage_day")
                    run(sql.REBUILD_DAYS, (zone,))
                    run("UPDATE dragoman.meta SET zone = %s", (zone,))

    def add(self, rows: Sequence[JournalRow]) -> int:
        self._reconnect()
        found = {each.row.id: each.row for each in rows}
        link = self._connection
        made: set[str] = set()
        with link.transaction():
            ((batch,),) = link.rows("UPDATE dragoman.meta SET batch = batch + 1 RETURNING batch")
            made = self._make_months({sql.month_of(row.time) for row in found.values()})
            link.run(sql.INCOMING)
            link.copy(sql.COPY, (_copied(row) for row in found.values()))
            new = [found[each.bytes] for (each,) in link.rows(sql.ADD_INCOMING)]
            sums = roll_up(new, self._days.of)
            link.run_each(sql.ADD_SPEND, [(*each, batch) for each in sums.spent()])
            link.run_each(sql.ADD_USER_SPEND, [(*each, batch) for each in sums.spent_by_users()])
            link.run_each(sql.ADD_DAY, sums.used())
            link.run_each(sql.ADD_LOADED, last_of_each(rows))
        self._months |= made
        return len(new)

    def _make_months(self, months: set[tuple[int, int]]) -> set[str]:
        """Make the partitions of these months that are not known to exist, and return the names of these partitions."""
        missing = {sql.partition(month): month for month in months}
        for name in missing.keys() & self._months:
            del missing[name]
        for month in missing.values():
            self._connection.run(sql.create_partition(min(month, _LAST_MONTH)))
        return set(missing)

    def _reconnect(self) -> None:
        if self._connection.lost:
            self._connection.close()
            self._connection = PostgresConnection(self._settings.url, self._settings.place, self._patience)
            self._months.clear()
            _require_ours(self._connection, self._settings.place)

    def tidy(self, now: int) -> None:
        """Drop rows and sums that are older than the settings allow, and make the partitions of the next months. `now`
        is in ms."""
        self._reconnect()
        keep = self._settings.keep
        oldest = max(0, now - round(keep * 1000))
        month = sql.month_of(now)
        ahead = [month]
        for _ in range(MONTHS_AHEAD):
            ahead.append(month := sql.month_after(month))
        link = self._connection
        with link.transaction(LONG_STATEMENT_TIMEOUT):
            link.rows("SELECT batch FROM dragoman.meta FOR UPDATE")
            self._months |= self._make_months(set(ahead))
            first = sql.partition(sql.month_of(max(0, oldest - MARGIN_MS)))
            for (name,) in link.rows(sql.MONTHS):
                if name < first:
                    link.run(f"DROP TABLE dragoman.{name}")
                    self._months.discard(name)
            link.run("DELETE FROM dragoman.usage_day WHERE day < %s", (self._days.of(oldest // SLOT_MS),))
            first_slot = (now - round(max(keep, SPEND_SECONDS) * 1000)) // SLOT_MS
            link.run("DELETE FROM dragoman.spend WHERE slot < %s", (first_slot,))
            link.run("DELETE FROM dragoman.spend_user WHERE slot < %s", (first_slot,))
            link.run("DELETE FROM dragoman.loaded WHERE time < to_timestamp(%s / 1000.0)", (oldest - MARGIN_MS,))

    def close(self) -> None:
        self._connection.close()


class PostgresReader:
    """The read access to the ledger of a database."""

    def __init__(self, settings: LedgerSettings) -> None:
        self._settings = settings
        self._connection = PostgresConnection(settings.url, settings.place)
        try:
            _require_ours(self._connection, settings.place)
        except LedgerError:
            self._connection.close()
            raise

    def _link(self) -> PostgresConnection:
        if self._connection.lost:
            self._connection.close()
            self._connection = PostgresConnection(self._settings.url, self._settings.place)
        return self._connection

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        with self._one_state() as (link, batch):
            if after:
                spent = _spent(link, "batch > %s AND slot >= %s", after, slot)
            else:
                spent = _spent(link, "slot >= %s", slot)
            return SpendChanges(batch, spent, _loaded(link), _users_since(link, users))

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        with self._one_state() as (link, batch):
            totals = [_totals(link.rows(sql.TOTALS, (slot,))) for slot in slots]
            spent = _spent(link, "slot >= %s", recent)
            return SpendBase(batch, totals, spent, _loaded(link), _users_since(link, users))

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        named = list(scopes)
        with self._one_state() as (link, batch):
            totals = [_totals(link.rows(sql.USER_TOTALS, (named, slot))) for slot in slots]
            spent = _spent(link, "scope = ANY(%s) AND slot >= %s", named, recent, table="spend_user")
            return SpendBase(batch, totals, spent, _loaded(link))

    @contextmanager
    def _one_state(self) -> Iterator[tuple[PostgresConnection, int]]:
        """Let all statements of the block read one snapshot of the database. Yield the connection and the number of the
        last batch."""
        link = self._link()
        with link.transaction():
            link.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            ((batch,),) = link.rows("SELECT batch FROM dragoman.meta")
            yield link, batch

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        statement, parameters = usage_sql(query, _DIALECT)
        width = len(query.by)
        link = self._link()
        with link.transaction(LONG_STATEMENT_TIMEOUT):
            found = link.rows(statement, parameters)
        return [UsageLine(tuple(row[:width]), UsageSums(*(int(number) for number in row[width:]))) for row in found]

    def newest(self) -> int | None:
        ((newest,),) = self._link().rows("SELECT max(time) FROM dragoman.loaded")
        return None if newest is None else round((newest - _EPOCH) / timedelta(milliseconds=1))

    def writers(self, since: int) -> int:
        statement = "SELECT count(*) FROM dragoman.loaded WHERE time >= to_timestamp(%s / 1000.0)"
        ((count,),) = self._link().rows(statement, (since,))
        return int(count)

    def interrupt(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


def _spent(link: PostgresConnection, where: str, *parameters: int | list[str], table: str = "spend") -> list[SlotSpend]:
    return [SlotSpend(*row) for row in link.rows(f"{sql.SPENT} dragoman.{table} WHERE {where}", parameters)]


def _totals(rows: Sequence[tuple[Any, ...]]) -> dict[str, Amounts]:
    return {row[0]: (int(row[1]), int(row[2]), int(row[3])) for row in rows}


def _users_since(link: PostgresConnection, after: int | None) -> list[SlotSpend]:
    """Return the slots of end users that changed after a batch, or an empty list if `after` is `None`."""
    return [] if after is None else _spent(link, "batch > %s", after, table="spend_user")


def _loaded(link: PostgresConnection) -> dict[str, int]:
    return {gateway: number for gateway, number in link.rows("SELECT gateway, sequence FROM dragoman.loaded")}


def _version(link: PostgresConnection, place: str) -> int:
    """Return the version of the schema, 0 if there is no schema. Raises LedgerRefusedError if it is newer than this
    version."""
    if link.rows("SELECT to_regclass('dragoman.meta')") == [(None,)]:
        return 0
    ((version,),) = link.rows("SELECT version FROM dragoman.meta")
    if version > VERSION:
        raise LedgerRefusedError(
            f"the ledger at {place} has version {version}, and this gateway knows versions up to {VERSION}: "
            "start a newer gateway, or name another database"
        )
    return int(version)


def _require_ours(link: PostgresConnection, place: str) -> None:
    if not _version(link, place):
        raise LedgerError(f"there is no ledger at {place} yet: the gateway makes it when it starts")


def _copied(row: LedgerRow) -> tuple[object, ...]:
    """Return a row in the form for COPY."""
    return UUID(bytes=row.id), _EPOCH + timedelta(milliseconds=row.time), *row[2:]
