"""What the table says of the ledger, what its parts count, and the errors of its database.

The address of PostgreSQL may hold a password, which is in no text that these types make.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:  # the loader's process has no table, whose words take 15 MB
    from config.sections.ledger_section import LedgerLocation


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


def ledger_settings(place: "LedgerLocation", zone: str) -> LedgerSettings:
    """Return the settings of a table's ledger."""
    from providers.vendor_credential import reveal

    strict = place.unread == "reject"
    if place.postgres is not None:
        return LedgerSettings("postgresql", place.keep, zone, place.journals, None, reveal(place.postgres), strict)
    return LedgerSettings("sqlite", place.keep, zone, place.journals, place.file, refuses_unread=strict)


@dataclass(slots=True)
class LedgerState:
    """Counts of one process since it began, for metrics and the status page, and the present state.

    `written` rows are in a journal; `loaded` ones came into the database from here, `repeated` ones were there already
    and `expired` ones are older than the ledger keeps. `dropped` rows are lost: neither disk nor memory had room.
    `unreadable` lines were moved aside; `foreign` journals belong to another version and stay. `behind` is the age in
    seconds of the oldest row of a journal that waits to be loaded, `journal_bytes` the size of all journals. While the
    journal cannot be written, `unwritten` rows are only in memory, the oldest of unix time `oldest`. `loading` says
    that this process is the one that loads; `trouble` is why writing or loading does not work now, None when it does.
    """

    written: int = 0
    dropped: int = 0
    write_errors: int = 0
    loaded: int = 0
    repeated: int = 0
    expired: int = 0
    unreadable: int = 0
    foreign: int = 0
    load_errors: int = 0
    behind: float = 0.0
    journal_bytes: int = 0
    loading: bool = False
    trouble: str | None = None
    unwritten: int = 0
    oldest: float | None = None

    def lag(self, wall: float) -> float:
        """Return the age in seconds of the oldest row that is not loaded, in a journal or in memory."""
        return self.behind if self.oldest is None else max(self.behind, wall - self.oldest)

    def follow(self, report: "LedgerState", before: "LedgerState") -> None:
        """Take over what a loader in another process says of itself; `before` is what it had said the last time. Its
        counts begin with its process. Trouble of the journal, which is this process's, stays until that has another."""
        self.loaded += report.loaded - before.loaded
        self.repeated += report.repeated - before.repeated
        self.expired += report.expired - before.expired
        self.unreadable += report.unreadable - before.unreadable
        self.load_errors += report.load_errors - before.load_errors
        self.foreign, self.behind, self.journal_bytes = report.foreign, report.behind, report.journal_bytes
        self.loading = report.loading
        if report.trouble != before.trouble:
            self.trouble = report.trouble
