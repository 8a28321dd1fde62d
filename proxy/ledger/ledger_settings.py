"""What the table says of the ledger, and the errors of its database.

Addresses are `sqlite:FILE`, where a relative file lies beside the table, and `postgresql://…`, which may hold a
password: it is in no text that these types make.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

SQLITE: Final = "sqlite:"
POSTGRES: Final = ("postgresql://", "postgres://")


class LedgerError(Exception):
    """The ledger's database cannot be used. The text is one line for the operator, without a secret."""


class LedgerRefusedError(LedgerError):
    """Waiting does not help: the database is another version's, or not a ledger."""


class LedgerAddressError(ValueError):
    """An address that names no database of a kind we know; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where the ledger is, for how many seconds it keeps rows, and the table's time zone, in which its days begin.

    `url` is the whole address for PostgreSQL; `file` the database for SQLite. `journals` is the folder into which every
    process of the gateway writes, and from which one of them loads.
    """

    kind: Literal["sqlite", "postgresql"]
    keep: float
    zone: str
    journals: Path
    file: Path | None = None
    url: str = field(default="", repr=False)

    @property
    def place(self) -> str:
        """The database in the operator's words."""
        if self.file is not None:
            return str(self.file)
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def ledger_settings(url: str, keep: float, zone: str, folder: Path, journals: Path | None = None) -> LedgerSettings:
    """Return the settings of an address as written; `folder` is the table's. Raises LedgerAddressError."""
    if url.startswith(POSTGRES):
        return LedgerSettings("postgresql", keep, zone, journals or folder / "ledger.journal", None, url)
    if not url.startswith(SQLITE):
        raise LedgerAddressError("must be sqlite:FILE or postgresql://…")
    name = url.removeprefix(SQLITE)
    if not name or name.startswith("//") or ":memory:" in name or "\0" in name:
        raise LedgerAddressError("must name a file, such as sqlite:ledger.db")
    file = folder / name
    return LedgerSettings("sqlite", keep, zone, journals or file.with_name(f"{file.name}.journal"), file)
