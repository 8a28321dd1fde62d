"""The ledger in a file: SQLite of the standard library, with one writer in the loader's process.

Statements of many rows handle at most BATCH_ROWS of them, so that readers never wait long. Writing requires a lock file
beside the database, so a second gateway with the same file waits instead of competing.

Source: SQLite 3.40's documentation (sqlite.org/pragma.html, wal.html), November 2026. `auto_vacuum` must be set before
the first table is created. WAL works only on local file systems. With `synchronous = NORMAL` a power loss may lose the
last commits, but the database stays consistent.
"""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from proxy.ledger.journal_files import lock_file
from proxy.ledger.ledger_row import JournalRow, LedgerRow
from proxy.ledger.ledger_settings import LedgerError, LedgerRefusedError, LedgerSettings
from proxy.ledger.ledger_store import (
    MARGIN_MS,
    SPEND_SECONDS,
    VERSION,
    SpendBase,
    SpendChanges,
    UsageLine,
    last_of_each,
)
from proxy.ledger.rollups import SLOT_MS, UNPRICED, Days, SlotSpend, UsageSums, roll_up
from proxy.ledger.usage_query import SqlDialect, UsageQuery, usage_sql

BATCH_ROWS: Final = 500

ROWS_PER_WRITE: Final = 32
"""The rows that are written, in 0.2 ms, before waiting processes get the processor, as with `LINES_AT_ONCE`."""

BUSY_TIMEOUT: Final = 5.0
"""The most seconds for which a statement waits for another statement on the file."""

MAX_DROPPED: Final = 50_000
"""The most rows that one call of `tidy` drops. The next call continues."""

_DIALECT: Final = SqlDialect("?", "request", "usage_day", "day_of(time / 900000)", False, "?", "coalesce(tags, '')")


# The schema -----------------------------------------------------------------------------------------------------------

_OPENING: Final = (
    "PRAGMA auto_vacuum = INCREMENTAL",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -500",
)
"""A cache of 500 KB is as fast as one of 2 MB, because rows are added at the ends of the indexes."""

_SPENDING: Final = """
    CREATE TABLE {} (
        scope TEXT NOT NULL, slot INTEGER NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL,
        cost INTEGER NOT NULL, unpriced INTEGER NOT NULL, batch INTEGER NOT NULL,
        PRIMARY KEY (scope, slot)
    ) WITHOUT ROWID
    """

_FIRST: Final = (
    "CREATE TABLE meta (version INTEGER NOT NULL, zone TEXT NOT NULL, batch INTEGER NOT NULL)",
    "INSERT INTO meta VALUES (1, '', 0)",
    """
    CREATE TABLE request (
        id BLOB NOT NULL UNIQUE, time INTEGER NOT NULL, request_id TEXT NOT NULL,
        team TEXT NOT NULL, key_name TEXT NOT NULL, user_name TEXT, tags TEXT,
        surface TEXT NOT NULL, asked TEXT NOT NULL, model TEXT NOT NULL, deployment TEXT,
        tokens_in INTEGER, tokens_cached INTEGER, tokens_out INTEGER, tokens_reasoning INTEGER,
        estimated INTEGER NOT NULL, cost INTEGER,
        status INTEGER NOT NULL, outcome TEXT NOT NULL, ms INTEGER NOT NULL, attempts INTEGER NOT NULL,
        gateway TEXT NOT NULL
    )
    """,
    "CREATE INDEX request_team_time ON request (team, time)",
    "CREATE INDEX request_time ON request (time)",
    _SPENDING.format("spend"),
    "CREATE INDEX spend_batch ON spend (batch)",
    "CREATE INDEX spend_slot ON spend (slot)",
    """
    CREATE TABLE usage_day (
        day TEXT NOT NULL, team TEXT NOT NULL, key_name TEXT NOT NULL, model TEXT NOT NULL, deployment TEXT NOT NULL,
        requests INTEGER NOT NULL, errors INTEGER NOT NULL, tokens_in INTEGER NOT NULL, tokens_cached INTEGER NOT NULL,
        tokens_out INTEGER NOT NULL, tokens_reasoning INTEGER NOT NULL, cost INTEGER NOT NULL,
        unpriced INTEGER NOT NULL, ms INTEGER NOT NULL,
        PRIMARY KEY (day, team, key_name, model, deployment)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX usage_day_team ON usage_day (team, day)",
    "CREATE TABLE loaded (gateway TEXT PRIMARY KEY, sequence INTEGER NOT NULL, time INTEGER NOT NULL) WITHOUT ROWID",
)

_SECOND: Final = (
    _SPENDING.format("spend_user"),
    "CREATE INDEX spend_user_batch ON spend_user (batch)",
    "CREATE INDEX spend_user_slot ON spend_user (slot)",
    "UPDATE meta SET version = 2",
)

_MIGRATIONS: Final = (_FIRST, _SECOND)
"""The migrations. Step n changes the schema to version n + 1, in one transaction."""

_REQUEST_COLUMNS: Final = (
    "id, time, request_id, team, key_name, user_name, tags, surface, asked, model, deployment, tokens_in, "
    "tokens_cached, tokens_out, tokens_reasoning, estimated, cost, status, outcome, ms, attempts, gateway"
)
"""The columns of a request, in the order of the fields of a LedgerRow."""

_DAY_COLUMNS: Final = (
    "day, team, key_name, model, deployment, requests, errors, tokens_in, tokens_cached, tokens_out, "
    "tokens_reasoning, cost, unpriced, ms"
)

_ADD_REQUEST: Final = f"INSERT INTO request ({_REQUEST_COLUMNS}) VALUES ({', '.join('?' * 22)})"  # noqa: S608 - constant

_ADD_SPEND: Final = """
    INSERT INTO spend (scope, slot, requests, tokens, cost, unpriced, batch) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, tokens = tokens + excluded.tokens,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, batch = excluded.batch
"""

_ADD_USER_SPEND: Final = _ADD_SPEND.replace("INTO spend ", "INTO spend_user ")

_ADD_DAY: Final = f"""
    INSERT INTO usage_day ({_DAY_COLUMNS}) VALUES ({", ".join("?" * 14)})
    ON CONFLICT DO UPDATE SET requests = requests + excluded.requests, errors = errors + excluded.errors,
        tokens_in = tokens_in + excluded.tokens_in, tokens_cached = tokens_cached + excluded.tokens_cached,
        tokens_out = tokens_out + excluded.tokens_out, tokens_reasoning = tokens_reasoning + excluded.tokens_reasoning,
        cost = cost + excluded.cost, unpriced = unpriced + excluded.unpriced, ms = ms + excluded.ms
"""  # noqa: S608 - constant

_ADD_LOADED: Final = """
    INSERT INTO loaded (gateway, sequence, time) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET sequence = max(sequence, excluded.sequence), time = max(time, excluded.time)
"""

_REBUILD_DAYS: Final = f"""
    INSERT INTO usage_day ({_DAY_COLUMNS})
    SELECT day_of(time / 900000), team, key_name, model, coalesce(deployment, ''), count(*),
        sum(outcome <> 'ok'), coalesce(sum(tokens_in), 0), coalesce(sum(tokens_cached), 0),
        coalesce(sum(tokens_out), 0), coalesce(sum(tokens_reasoning), 0), coalesce(sum(cost), 0),
        sum({UNPRICED}), sum(ms)
    FROM request GROUP BY 1, 2, 3, 4, 5
"""  # noqa: S608 - constant
"""`day_of` is the day of a slot in the configured time zone."""

_TOTALS: Final = "SELECT scope, sum(requests), sum(tokens), sum(cost) FROM spend WHERE slot >= ? GROUP BY scope"

_OF_USERS: Final = "SELECT scope, sum(requests), sum(tokens), sum(cost) FROM spend_user WHERE slot >= ? AND scope IN"

_SPENT: Final = "SELECT scope, slot, requests, tokens, cost, unpriced FROM"

# The store ------------------------------------------------------------------------------------------------------------


class SqliteStore:
    """The write access to the file of a ledger. It creates the file, or migrates it to this version."""

    def __init__(self, settings: LedgerSettings) -> None:
        self._file = _file(settings)
        self._keep = settings.keep
        self._days = Days(settings.zone)
        with _named(self._file):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._lock = lock_file(self._file.with_name(f"{self._file.name}.lock"))
        if self._lock is None:
            raise LedgerError(f"another gateway writes to the ledger {self._file}")
        try:
            with _named(self._file):
                self._connection = self._opened(settings.zone)
        except LedgerError:
            os.close(self._lock)
            raise

    def _opened(self, zone: str) -> sqlite3.Connection:
        os.close(os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = sqlite3.connect(self._file, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False)
        try:
            version = _version(connection, self._file)
            for statement in _OPENING:
                connection.execute(statement)
            for step in _MIGRATIONS[version:]:
                with _transaction(connection):
                    for statement in step:
                        connection.execute(statement)
            connection.create_function("day_of", 1, self._days.of, deterministic=True)
            self._settle_zone(connection, zone)
        except (sqlite3.Error, LedgerError):
            connection.close()
            raise
        return connection

    @staticmethod
    def _settle_zone(connection: sqlite3.Connection, zone: str) -> None:
        """Rebuild the sums by day if the configured time zone has changed."""
        if connection.execute("SELECT zone FROM meta").fetchone() == (zone,):
            return
        with _transaction(connection):
            connection.execute("DELETE FROM usage_day")
            connection.execute(_REBUILD_DAYS)
            connection.execute("UPDATE meta SET zone = ?", (zone,))

    def add(self, rows: Sequence[JournalRow]) -> int:
        with _named(self._file), _transaction(self._connection):
            new = self._unknown(rows)
            if new:
                self._add_new(new)
            self._connection.executemany(_ADD_LOADED, last_of_each(rows))
        return len(new)

    def _unknown(self, rows: Sequence[JournalRow]) -> list[LedgerRow]:
        found = {each.row.id: each.row for each in rows}
        ids = list(found)
        for start in range(0, len(ids), BATCH_ROWS):
            some = ids[start : start + BATCH_ROWS]
            marks = ", ".join("?" * len(some))
            for (known,) in self._connection.execute(f"SELECT id FROM request WHERE id IN ({marks})", some):  # noqa: S608
                del found[known]
        return list(found.values())

    def _add_new(self, rows: Sequence[LedgerRow]) -> None:
        run = self._connection.executemany
        self._connection.execute("UPDATE meta SET batch = batch + 1")
        (batch,) = self._connection.execute("SELECT batch FROM meta").fetchone()
        os.sched_yield()
        sums = roll_up(rows, self._days.of)
        spent = [(*each, batch) for each in sums.spent()]
        users = [(*each, batch) for each in sums.spent_by_users()]
        os.sched_yield()
        spending = (_ADD_SPEND, spent), (_ADD_USER_SPEND, users)
        for statement, values in ((_ADD_REQUEST, rows), *spending, (_ADD_DAY, sums.used())):
            for start in range(0, len(values), ROWS_PER_WRITE):
                run(statement, values[start : start + ROWS_PER_WRITE])
                os.sched_yield()

    def tidy(self, now: int) -> None:
        """Drop rows and sums that are older than the settings allow, in small steps. `now` is in ms."""
        oldest = now - round(self._keep * 1000)
        run = self._connection.execute
        first_slot = (now - round(max(self._keep, SPEND_SECONDS) * 1000)) // SLOT_MS
        with _named(self._file):
            for _ in range(MAX_DROPPED // BATCH_ROWS):
                dropped = run(
                    "DELETE FROM request WHERE rowid IN (SELECT rowid FROM request WHERE time < ? LIMIT ?)",
                    (oldest - MARGIN_MS, BATCH_ROWS),
                )
                if dropped.rowcount < BATCH_ROWS:
                    break
                time.sleep(0.001)  # Lets waiting readers use the file.
            run("DELETE FROM usage_day WHERE day < ?", (self._days.of(max(0, oldest) // SLOT_MS),))
            for table in ("spend", "spend_user"):
                run(f"DELETE FROM {table} WHERE slot < ?", (first_slot,))  # noqa: S608 - constant
            run("DELETE FROM loaded WHERE time < ?", (oldest - MARGIN_MS,))
            self._connection.executescript("PRAGMA incremental_vacuum(2000)")  # `execute` ends after one page

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class SqliteReader:
    """The read access to the file of a ledger. It must not be closed while a thread reads, because Python's module
    crashes then (3.11)."""

    def __init__(self, settings: LedgerSettings) -> None:
        self._file = _file(settings)
        self._days = Days(settings.zone)
        if not self._file.exists():
            raise LedgerError(f"there is no ledger {self._file} yet: the gateway makes it when it starts")
        with _named(self._file):
            address = f"{self._file.absolute().as_uri()}?mode=ro"
            self._connection = sqlite3.connect(
                address, uri=True, timeout=BUSY_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            try:
                if not _version(self._connection, self._file):
                    raise LedgerError(f"the ledger {self._file} is empty: no gateway has opened it yet")
                self._connection.create_function("day_of", 1, self._days.of, deterministic=True)
            except (sqlite3.Error, LedgerError):
                self._connection.close()
                raise

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        with self._one_state() as batch:
            spent = self._spent("batch > ? AND +slot >= ?", after, slot) if after else self._spent("slot >= ?", slot)
            return SpendChanges(batch, spent, self._loaded(), self._users_since(users))

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        run = self._connection.execute
        with self._one_state() as batch:
            totals = [{row[0]: (row[1], row[2], row[3]) for row in run(_TOTALS, (slot,))} for slot in slots]
            spent = self._spent("slot >= ?", recent)
            return SpendBase(batch, totals, spent, self._loaded(), self._users_since(users))

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        run, named = self._connection.execute, f"({', '.join('?' * len(scopes))})"
        with self._one_state() as batch:
            found = [run(f"{_OF_USERS} {named} GROUP BY scope", (slot, *scopes)).fetchall() for slot in slots]
            totals = [{row[0]: (row[1], row[2], row[3]) for row in rows} for rows in found]
            spent = self._spent(f"slot >= ? AND scope IN {named}", recent, *scopes, table="spend_user")
            return SpendBase(batch, totals, spent, self._loaded())

    def _users_since(self, after: int | None) -> list[SlotSpend]:
        """Return the slots of end users that changed after a batch, or an empty list if `after` is `None`."""
        return [] if after is None else self._spent("batch > ?", after, table="spend_user")

    @contextmanager
    def _one_state(self) -> Iterator[int]:
        """Let the block read one snapshot of the file. Yield the number of its last batch."""
        with _named(self._file), _transaction(self._connection, "BEGIN"):
            (batch,) = self._connection.execute("SELECT batch FROM meta").fetchone()
            yield batch

    def _spent(self, where: str, *parameters: int | str, table: str = "spend") -> list[SlotSpend]:
        return [SlotSpend(*row) for row in self._connection.execute(f"{_SPENT} {table} WHERE {where}", parameters)]

    def _loaded(self) -> dict[str, int]:
        return dict(self._connection.execute("SELECT gateway, sequence FROM loaded").fetchall())

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        statement, parameters = usage_sql(query, _DIALECT)
        width = len(query.by)
        with _named(self._file):
            found = self._connection.execute(statement, parameters).fetchall()
        return [UsageLine(tuple(row[:width]), UsageSums(*row[width:])) for row in found]

    def newest(self) -> int | None:
        with _named(self._file):
            row = self._connection.execute("SELECT max(time) FROM request").fetchone()
        return None if row is None else row[0]

    def writers(self, since: int) -> int:
        """Return how many processes have written rows since `since`, in ms."""
        with _named(self._file):
            count: int = self._connection.execute("SELECT count(*) FROM loaded WHERE time >= ?", (since,)).fetchone()[0]
        return count

    def interrupt(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # It was closed in the meantime.
            self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


def _file(settings: LedgerSettings) -> Path:
    if settings.file is None:
        raise ValueError("not a ledger of SQLite")
    return settings.file


def _version(connection: sqlite3.Connection, file: Path) -> int:
    """Return the version of the schema, 0 for an empty file. Raises LedgerRefusedError if it is newer than this
    version."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        return 0
    if "meta" not in tables or "request" not in tables:
        raise LedgerRefusedError(f"{file} is a database of something else: name another file")
    (version,) = connection.execute("SELECT version FROM meta").fetchone()
    if not isinstance(version, int) or version > VERSION:
        raise LedgerRefusedError(
            f"the ledger {file} has version {version}, and this gateway knows versions up to {VERSION}: "
            "start a newer gateway, or name another file"
        )
    return version


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _named(file: Path) -> Iterator[None]:
    """Raise SQLite's errors as LedgerError."""
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        if getattr(error, "sqlite_errorname", "") == "SQLITE_NOTADB":
            raise LedgerRefusedError(f"{file} is no database of SQLite: name another file") from None
        raise LedgerError(f"the ledger {file} cannot be used: {error}") from None
    except OSError as error:
        raise LedgerError(f"the ledger {file} cannot be used: {error.strerror}") from None
