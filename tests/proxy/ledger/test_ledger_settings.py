"""The locations of ledgers, whose printed form contains no password."""

from pathlib import Path

from config.sections.ledger_section import LedgerSection
from proxy.ledger.ledger_settings import ledger_settings
from tests.proxy.ledger.kit import KEEP, ledger_at


def test_a_relative_file_lies_beside_the_table_with_its_journals() -> None:
    found = ledger_at("sqlite:ledger.db", KEEP, "UTC", Path("/etc/dragoman"))
    assert found.file == Path("/etc/dragoman/ledger.db")
    assert found.journals == Path("/etc/dragoman/ledger.db.journal")
    assert found.place == "/etc/dragoman/ledger.db"
    absolute = ledger_at("sqlite:/var/lib/ledger.db", KEEP, "UTC", Path("/etc/dragoman"))
    assert absolute.file == Path("/var/lib/ledger.db")


def test_the_journals_may_lie_elsewhere() -> None:
    place = LedgerSection(journal="/var/journal").place(Path("/etc/table.yaml"))
    assert place is not None
    assert ledger_settings(place, "UTC").journals == Path("/var/journal")


def test_a_password_is_in_no_text() -> None:
    found = ledger_at("postgresql://me:secret@db:5432/usage?sslmode=require", KEEP, "UTC", Path("/etc"))
    assert found.kind == "postgresql"
    assert found.place == "db:5432/usage"
    assert found.journals == Path("/etc/ledger.journal")
    assert "secret" not in repr(found) + str(found)
