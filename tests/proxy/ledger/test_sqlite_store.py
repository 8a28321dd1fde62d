"""Features of the file only: one writer, versions, disks, and readers beside the writer."""

import shutil
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from proxy.ledger.ledger_settings import LedgerError, LedgerRefusedError
from proxy.ledger.ledger_store import VERSION
from proxy.ledger.sqlite_store import SqliteReader, SqliteStore
from proxy.ledger.usage_query import usage_query
from tests.proxy.ledger.kit import NOON, journaled, small_disk, sqlite


def count(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "ledger.db")) as connection:
        found: int = connection.execute("SELECT count(*) FROM request").fetchone()[0]
    return found


def test_the_file_is_private_and_shrinks_when_rows_go(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path, keep=86400.0))
    assert stat.S_IMODE((tmp_path / "ledger.db").stat().st_mode) == 0o600
    store.add([journaled(number) for number in range(1, 5001)])
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store.tidy(NOON + 3 * 86_400_000)
    assert store._connection.execute("PRAGMA page_count").fetchone()[0] < pages / 2
    store.close()
    assert count(tmp_path) == 0


def test_a_second_gateway_is_refused_and_may_write_when_the_first_has_ended(tmp_path: Path) -> None:
    first = SqliteStore(sqlite(tmp_path))
    with pytest.raises(LedgerError, match="another gateway writes to the ledger"):
        SqliteStore(sqlite(tmp_path))
    first.close()
    SqliteStore(sqlite(tmp_path)).close()


def test_a_newer_version_is_refused_naming_both_and_left_as_it_is(tmp_path: Path) -> None:
    SqliteStore(sqlite(tmp_path)).close()
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("UPDATE meta SET version = 7")
        connection.commit()
    for opened in (SqliteStore, SqliteReader):
        with pytest.raises(LedgerRefusedError, match=f"has version 7, and this gateway knows versions up to {VERSION}"):
            opened(sqlite(tmp_path))
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as connection:
        connection.execute("UPDATE meta SET version = ?", (VERSION,))
        connection.commit()
    SqliteStore(sqlite(tmp_path)).close()


def test_what_is_no_ledger_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "ledger.db"
    file.write_bytes(b"not a database at all, but some other file of the operator" * 20)
    before = file.read_bytes()
    with pytest.raises(LedgerRefusedError, match="no database of SQLite"):
        SqliteStore(sqlite(tmp_path))
    assert file.read_bytes() == before
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE customers (name)")
        connection.commit()
    with pytest.raises(LedgerRefusedError, match="a database of something else"):
        SqliteStore(sqlite(tmp_path))


def test_a_schema_that_was_interrupted_is_made_when_it_is_opened_again(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"")
    with pytest.raises(LedgerError, match="is empty"):
        SqliteReader(sqlite(tmp_path))
    store = SqliteStore(sqlite(tmp_path))
    assert store.add([journaled()]) == 1
    store.close()


def test_a_batch_that_a_full_disk_refuses_comes_in_whole_later(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path))
    rows = [journaled(number) for number in range(1, 3001)]
    with small_disk(300_000), pytest.raises(LedgerError, match=r"ledger\.db cannot be used"):
        store.add(rows)
    assert store.add(rows) == 3000
    store.close()
    assert count(tmp_path) == 3000


def test_a_folder_that_nobody_may_write_is_said() -> None:
    with pytest.raises(LedgerError, match=r"/proc/self/fdinfo/ledger\.db cannot be used"):
        SqliteStore(sqlite(Path("/proc/self/fdinfo")))


def test_a_folder_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"")
    with pytest.raises(LedgerError, match="cannot be used"):
        SqliteStore(sqlite(tmp_path / "data"))


def test_a_reader_changes_nothing_and_sees_what_is_committed(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path))
    reader = SqliteReader(sqlite(tmp_path))
    query = usage_query(["team"], "30d", None, "UTC", NOON)
    assert reader.usage(query) == []
    store.add([journaled()])
    assert [line.group for line in reader.usage(query)] == [("search",)]
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._connection.execute("DELETE FROM request")
    store.close()
    reader.close()


def test_a_gateway_that_ended_leaves_a_file_that_can_be_read_and_copied(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path))
    store.add([journaled()])
    store.close()
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "ledger.db", tmp_path / "copy" / "ledger.db")
    reader = SqliteReader(sqlite(tmp_path / "copy"))
    assert reader.newest() == NOON
    reader.close()


def test_a_failure_after_the_file_is_gone_is_a_ledger_error(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path))
    store._connection.close()
    for use in (lambda: store.add([journaled()]), lambda: store.tidy(NOON)):
        with pytest.raises(LedgerError):
            use()
    store.close()


def test_changes_are_found_by_their_batch_and_not_by_reading_all(tmp_path: Path) -> None:
    store = SqliteStore(sqlite(tmp_path))
    store.add([journaled()])
    reader = SqliteReader(sqlite(tmp_path))
    asked: list[str] = []
    reader._connection.set_trace_callback(asked.append)
    reader.spent_since(0, 1)
    reader._connection.set_trace_callback(None)
    (statement,) = [each for each in asked if "FROM spend" in each]
    plan = reader._connection.execute(f"EXPLAIN QUERY PLAN {statement}").fetchall()
    assert [step[3] for step in plan] == ["SEARCH spend USING INDEX spend_batch (batch>?)"]
    reader.close()
    store.close()
