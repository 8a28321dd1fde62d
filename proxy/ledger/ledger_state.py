"""What the ledger's parts count, for metrics and the status page: one value for each process."""

from dataclasses import dataclass


@dataclass(slots=True)
class LedgerState:
    """Counts since the process began, and the present state.

    `written` rows are in a journal; `loaded` ones came into the database from here, `repeated` ones were there already
    and `expired` ones are older than the ledger keeps. `dropped` rows are lost: neither disk nor memory had room.
    `unreadable` lines were moved aside; `foreign` journals belong to another version and stay. `behind` is the age in
    seconds of the oldest row that waits to be loaded, `journal_bytes` the size of all journals. `loading` says that
    this process is the one that loads; `trouble` is why writing or loading does not work now, None when it does.
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
