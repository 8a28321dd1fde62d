"""A PostgreSQL server for all tests of the folder, and an empty ledger of either kind for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.ledger.ledger_settings import LedgerSettings
from tests.proxy.ledger.kit import KEEP, ledger_at, sqlite
from tests.support.postgres import RealPostgres, real_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[RealPostgres]:
    with real_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerSettings:
    if request.param == "sqlite":
        return sqlite(tmp_path)
    server: RealPostgres = request.getfixturevalue("postgres")
    return ledger_at(server.fresh_database(), KEEP, "UTC", tmp_path)
