"""R44: while the journals' disk is full and the database is healthy, no ledger row is lost: whether the rows of the
gateway or another program fill the disk, while the gateway serves and at SIGTERM."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg
import pytest

from proxy.ledger.journal_files import journal_files, spare_folder
from tests.faults.fault_rig import TABLE, rig
from tests.proxy.ledger.kit import FullDisk
from tests.support.postgres import RealPostgres, real_postgres
from tests.support.waiting import until

REQUESTS: Final = 600
CAPACITY: Final = 32 * 1024
"""Bytes of the disk, enough for a quarter of the rows."""


@pytest.fixture(scope="module")
def postgres() -> Iterator[RealPostgres]:
    with real_postgres() as server:
        yield server


def rows(database: str) -> int:
    with psycopg.connect(database) as connection:
        (count,) = connection.execute("SELECT count(*) FROM dragoman.request").fetchone() or (0,)
    return int(count)


def has_tables(database: str) -> bool:
    """Return whether the loader has reached the database."""
    with psycopg.connect(database) as connection:
        return connection.execute("SELECT to_regclass('dragoman.request')").fetchone() != (None,)


@pytest.mark.parametrize("others", [0, CAPACITY])
async def test_no_row_is_lost_that_the_database_could_take(
    postgres: RealPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    database, journals = postgres.fresh_database(), tmp_path / "j"
    journals.mkdir()
    disk = FullDisk(journals, CAPACITY)
    monkeypatch.setattr(os, "write", disk.write)
    ledger = f"ledger: {{url: '{database}', journal: '{journals}'}}"
    table = TABLE.replace("watch: false,", f"watch: false, {ledger},")
    async with rig(tmp_path, table=table) as made:
        await until(lambda: has_tables(database))  # a loader that starts too late would load no row
        for number in range(REQUESTS):
            if number == REQUESTS // 3:
                disk.held = others
            assert (await made.ask()).status == 200
        state = made.app.front.limits.ledger_state
    assert state is not None
    assert state.write_errors > 0
    assert state.dropped == 0
    assert rows(database) == REQUESTS
    assert journal_files(journals) == []
    assert not spare_folder(journals).exists()
