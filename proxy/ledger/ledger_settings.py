"""What the table says of the ledger, and the errors of its database.

The address of PostgreSQL may hold a password, which is in no text that these types make.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from config.sections.ledger_section import LedgerPlace
from providers.vendor_credential import reveal


class LedgerError(Exception):
    """The ledger's database cannot be used. The text is one line for the operator, without a secret."""


class LedgerRefusedError(LedgerError):
    """Waiting does not help: the database is another version's, or not a ledger."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """Where the ledger is, for how many seconds it keeps rows, and the table's time zone, in which its days begin.

    `url` is the whole address for PostgreSQL; `file` the database for SQLite. `journals` is the folder into which every
    process of the gateway writes, and from which one of them loads. `refuses_unread` says that budgets which could not
    be read yet refuse.
    """

    kind: Literal["sqlite", "postgresql"]
    keep: float
    zone: str
    journals: Path
    file: Path | None = None
    url: str = field(default="", repr=False)
    refuses_unread: bool = False

    @property
    def place(self) -> str:
        """The database in the operator's words."""
        if self.file is not None:
            return str(self.file)
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def ledger_settings(place: LedgerPlace, zone: str) -> LedgerSettings:
    """Return the settings of a table's ledger."""
    strict = place.unread == "reject"
    if place.postgres is not None:
        return LedgerSettings("postgresql", place.keep, zone, place.journals, None, reveal(place.postgres), strict)
    return LedgerSettings("sqlite", place.keep, zone, place.journals, place.file, refuses_unread=strict)
