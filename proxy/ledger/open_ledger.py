"""Opens the database that the settings name."""

from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.ledger_store import LedgerReader, LedgerStore
from proxy.ledger.postgres_store import PostgresReader, PostgresStore
from proxy.ledger.sqlite_store import SqliteReader, SqliteStore


def open_store(settings: LedgerSettings) -> LedgerStore:
    """Open the database to write. Create it or migrate it to this version. Blocks. Raises LedgerError."""
    return SqliteStore(settings) if settings.kind == "sqlite" else PostgresStore(settings)


def open_reader(settings: LedgerSettings) -> LedgerReader:
    """Open the database to read. Blocks. Raises LedgerError."""
    return SqliteReader(settings) if settings.kind == "sqlite" else PostgresReader(settings)
