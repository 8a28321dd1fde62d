"""Addresses of ledgers, and that no password is in what is shown."""

from pathlib import Path

import pytest

from proxy.ledger.ledger_settings import LedgerAddressError, ledger_settings
from tests.proxy.ledger.kit import KEEP


def test_a_relative_file_lies_beside_the_table_with_its_journals() -> None:
    found = ledger_settings("sqlite:ledger.db", KEEP, "UTC", Path("/etc/dragoman"))
    assert found.file == Path("/etc/dragoman/ledger.db")
    assert found.journals == Path("/etc/dragoman/ledger.db.journal")
    assert found.place == "/etc/dragoman/ledger.db"
    absolute = ledger_settings("sqlite:/var/lib/ledger.db", KEEP, "UTC", Path("/etc/dragoman"))
    assert absolute.file == Path("/var/lib/ledger.db")


def test_the_journals_may_lie_elsewhere() -> None:
    found = ledger_settings("sqlite:ledger.db", KEEP, "UTC", Path("/etc"), Path("/var/journal"))
    assert found.journals == Path("/var/journal")


def test_a_password_is_in_no_text() -> None:
    found = ledger_settings("postgresql://me:secret@db:5432/usage?sslmode=require", KEEP, "UTC", Path("/etc"))
    assert found.kind == "postgresql"
    assert found.place == "db:5432/usage"
    assert "secret" not in repr(found) + str(found)


@pytest.mark.parametrize(
    "url", ["ledger.db", "mysql://x", "sqlite:", "sqlite::memory:", "sqlite:///x.db", "sqlite:a\0"]
)
def test_what_names_no_database_is_refused(url: str) -> None:
    with pytest.raises(LedgerAddressError, match="must"):
        ledger_settings(url, KEEP, "UTC", Path("/etc"))
