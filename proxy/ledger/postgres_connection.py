"""A connection to PostgreSQL that blocks, with errors of our own: the only user of the driver.

Nothing else notices a server that falls silent: a connection may look alive although no data arrives. So each wait for
a response has a limit here, after which the connection is closed without a message to the server.

The driver's messages may quote an address with its password, so none is passed on that does not come from the server.
Prepared statements are off, which a pool in transaction mode, such as PgBouncer's, cannot keep.

Sources: psycopg 3.3.9; PgBouncer 1.18, whose refusals have no SQLSTATE at the driver; November 2026.
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

CONNECT: Final = 5
"""Seconds for a connection."""

ANSWER: Final = 25
"""Seconds for which a statement of a transaction may run, unless the transaction says otherwise."""

LONG_ANSWER: Final = 60
"""The same for statements that may read or drop much."""

SILENCE: Final = 30.0
"""Seconds to wait for a response; more than ANSWER, so that a live server reports a late statement itself."""

_IDLE: Final = f"SET LOCAL idle_in_transaction_session_timeout = '{round(SILENCE)}s'"
"""Lets the server release the locks of a transaction whose end it does not receive."""

LOOK_EVERY: Final = 0.1
"""Seconds between two looks at the limit of a wait."""

WAIT: Final = 10
"""Seconds for which a statement waits for a lock."""

Row = tuple[Any, ...]

Value = str | int | bytes | list[str] | None

T = TypeVar("T")


class PostgresConnection:
    """One connection, which does not come back once it is lost. `place` names the database in messages. The connection
    is lost if a response does not arrive within `patience` seconds."""

    def __init__(self, url: str, place: str, patience: float = SILENCE) -> None:
        if lack := extra_hint(POSTGRES, "a ledger in PostgreSQL needs"):
            raise LedgerRefusedError(lack)
        # Loaded here, where a table asks for it: it takes 0.3 s.
        import psycopg

        silence("psycopg")
        in_time = self._in_time

        class Bounded(psycopg.Connection[Row]):
            """Waits for every response within the limit of this connection."""

            def wait(self, gen: "PQGen[T]", interval: float = LOOK_EVERY, timeout: float | None = None) -> T:
                if timeout is None:  # the driver has had the argument since 3.3
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
                connect_timeout=min(CONNECT, math.ceil(patience)),
                application_name="dragoman ledger",
                keepalives_idle=10,
                keepalives_interval=5,
                keepalives_count=3,
                tcp_user_timeout=round(SILENCE * 1000),
            )

    def _in_time(self, steps: "PQGen[T]") -> "PQGen[T]":
        """Pass on the events that the driver waits for, and close the connection if it does not finish in time. The
        driver resumes every LOOK_EVERY seconds, also if nothing happens."""
        patience = self._patience
        until = time.monotonic() + patience
        try:
            wanted = next(steps)
            while True:
                ready = yield wanted
                if time.monotonic() > until:
                    self._silent = f"no answer within {patience:g} s"
                    self._connection.close()  # which waits for nothing
                    raise self._late
                wanted = steps.send(ready)
        except StopIteration as ended:
            found: T = ended.value
            return found

    @property
    def lost(self) -> bool:
        """Whether it is of no more use."""
        return self._connection.closed or self._connection.broken

    @contextmanager
    def transaction(self, longest: int = ANSWER) -> Iterator[None]:
        """Run the block in a transaction, each of whose statements may take `longest` seconds, and which an exception
        undoes."""
        with self.named(), self._connection.transaction(), self.allowing(longest):
            self._connection.execute(f"SET LOCAL lock_timeout = '{WAIT}s'; {_IDLE}")
            yield

    @contextmanager
    def allowing(self, longest: int) -> Iterator[None]:
        """Let each statement of the block take `longest` seconds; to be used in a transaction."""
        before = self._patience
        self._connection.execute(f"SET LOCAL statement_timeout = '{longest}s'")
        self._patience = before + longest - ANSWER
        try:
            yield
        finally:
            self._patience = before

    def run(self, statement: str, parameters: Sequence[Value] = ()) -> None:
        """Run a statement without rows."""
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
        """End the statement that another thread runs. Blocks shortly."""
        with suppress(*self._failures):  # the connection is lost, or a second one is not to be had
            self._connection.cancel_safe(timeout=1.0)

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    @contextmanager
    def named(self) -> Iterator[None]:
        """Raise the driver's errors as LedgerError."""
        try:
            yield
        except self._failures as error:
            said = error.diag.message_primary if error.sqlstate else None
            why = self._silent or said or _plain(str(error))
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
    """Return what a message of the client library means, in words that quote nothing."""
    return next((words for part, words in _REASONS if part in message), "the connection is lost")
