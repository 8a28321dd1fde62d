"""The settings of the ledger, the counts of its components, and the errors of its database.

The address of PostgreSQL may contain a password. No text that these types make contains it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:  # The loader's process has no configuration, whose modules take 15 MB.
    from config.sections.ledger_section import LedgerLocation


class LedgerError(Exception):
    """The error if the ledger's database cannot be used. The message is one line for the operator, without a secret."""


class LedgerRefusedError(LedgerError):
    """The error if waiting does not help, because the database belongs to another version, or is not a ledger."""


@dataclass(frozen=True, slots=True)
class LedgerSettings:
    """The settings of a ledger. `keep` is the number of seconds for which the ledger stores rows. `zone` is the time
    zone of its days.

    `url` is the whole address of PostgreSQL. `file` is the database of SQLite. `journals` is the folder into which each
    process of the gateway writes, and from which one of them loads. If `refuses_unread` is set, budgets that could not
    be read yet refuse requests.
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
        """The name of the database for operators."""
        if self.file is not None:
            return str(self.file)
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"


def ledger_settings(place: "LedgerLocation", zone: str) -> LedgerSettings:
    """Return the settings of a configuration's ledger."""
    from providers.vendor_credential import reveal

    strict = place.unread == "reject"
    if place.postgres is not None:
        return LedgerSettings("postgresql", place.keep, zone, place.journals, None, reveal(place.postgres), strict)
    return LedgerSettings("sqlite", place.keep, zone, place.journals, place.file, refuses_unread=strict)


@dataclass(slots=True)
class LedgerState:
    """The counts of one process since its start, for metrics and the status page, and its current state.

    - `written` rows are in a journal. `loaded` rows were stored by this process. `repeated` ones were already stored,
      and `expired` ones are older than the ledger stores.
    - `dropped` rows are lost, because neither disk nor memory had room.
    - `unreadable` lines were moved away. `foreign` journals belong to another version and stay.
    - `behind` is the age in seconds of the oldest journal row that waits to be loaded. `journal_bytes` is the size of
      all journals.
    - While the journal cannot be written, `unwritten` rows are only in memory. `oldest` is the unix time of the oldest
      one.
    - `loading` is whether this process loads. `trouble` is the reason why writing or loading fails now, `None` if both
      work.
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
        """Add the report of a loader in another process. `before` is its previous report. The loader's counts begin
        when its process starts. The `trouble` of this process's journal stays until the loader reports another
        trouble."""
        self.loaded += report.loaded - before.loaded
        self.repeated += report.repeated - before.repeated
        self.expired += report.expired - before.expired
        self.unreadable += report.unreadable - before.unreadable
        self.load_errors += report.load_errors - before.load_errors
        self.foreign, self.behind, self.journal_bytes = report.foreign, report.behind, report.journal_bytes
        self.loading = report.loading
        if report.trouble != before.trouble:
            self.trouble = report.trouble
