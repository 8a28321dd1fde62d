"""A blocking connection to PostgreSQL that raises only LedgerError. No other module uses the driver.

Without a limit, a silent server would not be noticed, because a connection may look alive although no data arrives. So
each wait for a response has a limit here, after which the connection is closed without a message to the server.

The driver's messages may quote an address with its password, so only messages of the server are reported. Prepared
statements are off, because a pool in transaction mode such as PgBouncer's does not keep them.

Sources: psycopg 3.3.9; PgBouncer 1.18, whose refusals reach the driver without SQLSTATE; November 2026.
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from proxy.ledger.ledger_settings import LedgerError, LedgerRefusedError
from proxy.optional_libraries import POSTGRES, extra_hint, silence

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import PQGen

CONNECT_TIMEOUT: Final = 5
"""The most seconds to open a connection."""

STATEMENT_TIMEOUT: Final = 25
"""Seconds for which a statement of a transaction may run, unless the transaction sets another limit."""

LONG_STATEMENT_TIMEOUT: Final = 60
"""Seconds for which a statement may run that may read or drop many rows."""

RESPONSE_TIMEOUT: Final = 30.0
"""Seconds to wait for a response. It is more than STATEMENT_TIMEOUT, so that a live server reports a late statement
itself."""

_IDLE: Final = f"SET LOCAL idle_in_transaction_session_timeout = '{round(RESPONSE_TIMEOUT)}s'"
"""The statement that lets the server release the locks of a transaction whose end it does not receive."""

CHECK_EVERY: Final = 0.1
"""Seconds between two checks of the limit of a wait."""

LOCK_TIMEOUT: Final = 10
"""The most seconds for which a statement waits for a lock."""

Row = tuple[Any, ...]

Value = str | int | bytes | list[str] | None

T = TypeVar("T")


class PostgresConnection:
    """One connection, which is not reopened once it is lost. `place` names the database in messages. The connection
    counts as lost if a response does not arrive within `patience` seconds."""

    def __init__(self, url: str, place: str, patience: float = RESPONSE_TIMEOUT) -> None:
        if lack := extra_hint(POSTGRES, "a ledger in PostgreSQL needs"):
            raise LedgerRefusedError(lack)
        # Imported here, only if the configuration needs it: the import takes 0.3 s.
        import psycopg

        silence("psycopg")
        in_time = self._in_time

        class Bounded(psycopg.Connection[Row]):
            """A connection that waits for every response within `patience`."""

            def wait(self, gen: "PQGen[T]", interval: float = CHECK_EVERY, timeout: float | None = None) -> T:
                if timeout is None:  # Driver versions before 3.3 do not pass this argument.
                    return super().wait(in_time(gen), interval)
                return super().wait(in_time(gen), interval, timeout)

        self._place = place
        self._patience = patience
        self._silent = ""
        self._failures = (psycopg.Error,)
        self._late = psycopg.OperationalError
        with self.named():
            self._connection: Connection[Row] = Bounded.connect(
                url,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=min(CONNECT_TIMEOUT, math.ceil(patience)),
                application_name="dragoman ledger",
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=round(RESPONSE_TIMEOUT * 1000),
            )

    def _in_time(self, steps: "PQGen[T]") -> "PQGen[T]":
        """Pass on the events that the driver waits for, and close the connection if the driver does not finish in time.
        The driver resumes every CHECK_EVERY seconds, even if nothing happens."""
        patience = self._patience
        until = time.monotonic() + patience
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if time.monotonic() > until:
                    self._silent = f"no answer within {patience:g} s"
                    self._connection.close()  # This does not wait.
                    raise self._late
                wanted = steps.send(ready)
        except StopIteration as ended:
            found: T = ended.value
            return found

    @property
    def lost(self) -> bool:
        """Whether the connection can no longer be used."""
        return self._connection.closed or self._connection.broken

    @contextmanager
    def transaction(self, longest: int = STATEMENT_TIMEOUT) -> Iterator[None]:
        """Run the block in a transaction. Each of its statements may take `longest` seconds. An exception rolls it
        back."""
        with self.named(), self._connection.transaction(), self.allowing(longest):
            self._connection.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}s'; {_IDLE}")
            yield

    @contextmanager
    def allowing(self, longest: int) -> Iterator[None]:
        """Let each statement of the block take `longest` seconds. Use it in a transaction."""
        before = self._patience
        self._connection.execute(f"SET LOCAL statement_timeout = '{longest}s'")
        self._patience = before + longest - STATEMENT_TIMEOUT
        try:
            yield
        finally:
            self._patience = before

    def run(self, statement: str, parameters: Sequence[Value] = ()) -> None:
        """Run a statement that returns no rows."""
        with self.named():
            self._connection.execute(statement.encode(), parameters or None)

    def rows(self, statement: str, parameters: Sequence[Value] = ()) -> list[Row]:
        """Return the rows of a statement."""
        with self.named():
            return self._connection.execute(statement.encode(), parameters or None).fetchall()

    def run_each(self, statement: str, values: Sequence[Sequence[Value]]) -> None:
        """Run a statement for each of many parameters, in one round trip or few."""
        with self.named(), self._connection.cursor() as cursor:
            cursor.executemany(statement.encode(), values)

    def copy(self, statement: str, rows: Iterable[Sequence[object]]) -> None:
        """Send rows by COPY."""
        with self.named(), self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copying:
            for row in rows:
                copying.write_row(row)

    def interrupt(self) -> None:
        """Interrupt the statement of another thread. Blocks briefly."""
        with suppress(*self._failures):  # The connection is lost, or a second one cannot be opened.
            self._connection.cancel_safe(timeout=1.0)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def named(self) -> Iterator[None]:
        """Raise the driver's errors as LedgerError."""
        try:
            yield
        except self._failures as error:
            message = error.diag.message_primary if error.sqlstate else None
            why = self._silent or message or _plain(str(error))
            raise LedgerError(f"the ledger at {self._place} cannot be used: {why}") from None


_REASONS: Final = (
    ("password authentication failed", "the user or the password is wrong"),
    ("SASL authentication failed", "the user or the password is wrong"),
    ("query_wait_timeout", "the pool had no connection in time"),
    ("no password supplied", "the address has no password"),
    ("Connection refused", "connection refused"),
    ("timeout expired", "no connection in time"),
    ("could not translate host name", "the host is not known"),
    ("failed to resolve host", "the host is not known"),
    ("does not exist", "the database or the user does not exist"),
    ("starting up", "the server is starting"),
    ("shutting down", "the server is shutting down"),
    ("too many", "the server has too many connections"),
    ("SSL", "TLS could not be agreed on"),
    ("URI", "the address is malformed"),
    ("invalid port number", "the address is malformed"),
    ("percent-encoded", "the address is malformed"),
    ("sslmode value", "the address has an sslmode that is not known"),
)


def _plain(message: str) -> str:
    """Return the meaning of a message of the client library, in words that quote nothing."""
    return next((words for part, words in _REASONS if part in message), "the connection is lost")
