"""The connection to PostgreSQL: its error messages, which contain no password."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxy.ledger.ledger_settings import LedgerError
from proxy.ledger.postgres_connection import STATEMENT_TIMEOUT, PostgresConnection, _plain
from tests.proxy.ledger.kit import KEEP, ledger_at
from tests.support.gateway import free_ports
from tests.support.looped import looped
from tests.support.postgres import PASSWORD, RealPostgres

pytestmark = pytest.mark.smoke


def connected(url: str) -> PostgresConnection:
    return PostgresConnection(url, ledger_at(url, KEEP, "UTC", Path()).place)


def test_what_the_server_refuses_is_said_in_its_words(postgres: RealPostgres) -> None:
    link = connected(postgres.url())
    with pytest.raises(LedgerError, match='relation "nowhere" does not exist'):
        link.rows("SELECT * FROM nowhere")
    assert link.rows("SELECT %s::int", (3,)) == [(3,)]
    link.close()
    assert link.lost


def test_a_transaction_that_fails_leaves_nothing(postgres: RealPostgres) -> None:
    link = connected(postgres.fresh_database())
    link.run("CREATE TABLE t (n int)")

    def fill() -> None:
        with link.transaction():
            link.run_each("INSERT INTO t VALUES (%s)", [(1,), (2,)])
            link.copy("COPY t FROM STDIN", [(3,), ("x",)])

    with pytest.raises(LedgerError, match="invalid input syntax"):
        fill()
    assert link.rows("SELECT * FROM t") == []
    with link.transaction():
        link.copy("COPY t FROM STDIN", [(3,)])
    assert link.rows("SELECT n FROM t") == [(3,)]
    link.close()


def test_a_statement_of_another_thread_is_ended_and_the_connection_stays(postgres: RealPostgres) -> None:
    link = connected(postgres.url())
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(link.rows, "SELECT pg_sleep(60)")
        while not running.done():
            link.interrupt()
        with pytest.raises(LedgerError, match="canceling statement"):
            running.result()
    assert link.rows("SELECT 1") == [(1,)]
    link.close()
    link.interrupt()


def test_a_server_that_accepts_and_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        with pytest.raises(LedgerError, match="no connection in time"):
            PostgresConnection(f"postgresql://me:{PASSWORD}@127.0.0.1:{port}/x", "the database", 0.1)


def test_no_answer_in_time_loses_the_connection_and_a_transaction_may_allow_more(postgres: RealPostgres) -> None:
    link = PostgresConnection(postgres.url(), "the database", 1.0)
    with link.transaction(STATEMENT_TIMEOUT + 60):
        assert link.rows("SELECT pg_sleep(1.5), current_setting('idle_in_transaction_session_timeout')")[0][1] == "30s"
    with pytest.raises(LedgerError, match="no answer within 1 s"), link.transaction():
        link.run("SELECT pg_sleep(60)")
    assert link.lost
    with pytest.raises(LedgerError, match="no answer within 1 s"):
        link.rows("SELECT 1")
    link.close()


@looped("part", ["password", "database", "option", "host", "port", "form"])
def test_an_address_that_does_not_work_is_told_why_and_its_password_is_not(postgres: RealPostgres, part: str) -> None:
    (closed,) = free_ports(1)
    url, said = {
        "password": (postgres.url().replace(PASSWORD, f"{PASSWORD}-wrong"), "the user or the password is wrong"),
        "database": (postgres.url("nowhere"), "the database or the user does not exist"),
        "option": (f"{postgres.url()}?colour={PASSWORD}", "malformed"),
        "host": (f"postgresql://me:{PASSWORD}@no-such-host.invalid/x", "the host is not known"),
        "port": (f"postgresql://me:{PASSWORD}@127.0.0.1:{closed}/x", "connection refused"),
        "form": (f"postgresql://me:{PASSWORD}@[::1/x", "malformed"),
    }[part]
    with pytest.raises(LedgerError, match=said) as failed:
        PostgresConnection(url, "the database")
    error: BaseException | None = failed.value
    assert PASSWORD not in str(error)
    assert failed.value.__suppress_context__


@looped(
    ("refusal", "said"),
    [
        ("SASL authentication failed", "the user or the password is wrong"),
        ('database "nodb" does not exist', "the database or the user does not exist"),
        ("query_wait_timeout", "the pool had no connection in time"),
        ("a refusal of the year 2030", "the connection is lost"),
    ],
)
def test_what_a_pool_refuses_is_said_in_plain_words(refusal: str, said: str) -> None:
    # These are the texts of PgBouncer 1.18 and of the driver.
    assert _plain(f'connection failed: connection to server at "10.0.0.1", port 6432 failed: FATAL:  {refusal}') == said
