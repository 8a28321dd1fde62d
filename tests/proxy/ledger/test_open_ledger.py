"""The database that a URL selects."""

from pathlib import Path

import pytest

from proxy.ledger.ledger_settings import LedgerError, LedgerSettings
from proxy.ledger.open_ledger import open_reader, open_store
from proxy.ledger.postgres_store import PostgresReader, PostgresStore
from proxy.ledger.sqlite_store import SqliteReader, SqliteStore
from tests.proxy.ledger.kit import KEEP, ledger_at


def test_an_address_chooses_the_database(settings: LedgerSettings) -> None:
    store = open_store(settings)
    reader = open_reader(settings)
    kinds = (SqliteStore, SqliteReader) if settings.kind == "sqlite" else (PostgresStore, PostgresReader)
    assert (type(store), type(reader)) == kinds
    reader.close()
    store.close()


def test_a_ledger_that_nobody_made_yet_is_told_to_readers(settings: LedgerSettings) -> None:
    with pytest.raises(LedgerError, match="the gateway makes it when it starts"):
        open_reader(settings)


def test_without_the_driver_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.optional_libraries.find_spec", lambda name: None)
    with pytest.raises(LedgerError, match=r"pip install '\.\[postgres\]'"):
        open_store(ledger_at("postgresql://127.0.0.1/x", KEEP, "UTC", tmp_path))
