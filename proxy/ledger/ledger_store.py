"""The interfaces of the database for the loader, the budgets and the reports. SQLite and PostgreSQL implement them.

All calls block and raise LedgerError. Each object belongs to one thread at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from proxy.ledger.ledger_row import JournalRow
from proxy.ledger.rollups import SlotSpend, UsageSums
from proxy.ledger.usage_query import UsageQuery

VERSION: Final = 2
"""The version of the schema. A database with a higher one is refused."""

SPEND_SECONDS: Final = 40 * 86400.0
"""The least seconds for which spending is stored: the longest period of a budget is a month."""

MARGIN_MS: Final = 86_400_000
"""Rows are dropped only when they are older, by this many ms, than the oldest rows that are still loaded. So a dropped
row is never loaded again."""


@dataclass(frozen=True, slots=True)
class SpendChanges:
    """The result of `spent_since`: the current sums of the changed slots. `batch` is the start of the next call.

    `loaded` is the number of the last stored row of each process. `users` are the changed slots of end users, if
    requested.
    """

    batch: int
    spent: Sequence[SlotSpend]
    loaded: Mapping[str, int]
    users: Sequence[SlotSpend] = ()


Amounts: TypeAlias = tuple[int, int, int]
"""Requests, tokens, and billionths of a USD."""


@dataclass(frozen=True, slots=True)
class SpendBase:
    """The result of `spent_from` at batch `batch`. `totals` are the sums of each scope from each requested slot on.
    `recent` are the single slots from the recent one on. `users` is as in SpendChanges."""

    batch: int
    totals: Sequence[Mapping[str, Amounts]]
    recent: Sequence[SlotSpend]
    loaded: Mapping[str, int]
    users: Sequence[SlotSpend] = ()


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One line of a report: the values of its dimensions, in the order of the query, and the sums."""

    group: tuple[str, ...]
    sums: UsageSums


def last_of_each(rows: Sequence[JournalRow]) -> list[tuple[str, int, int]]:
    """Return the name of each process, with the number and the time of its last row."""
    last: dict[str, tuple[str, int, int]] = {}
    for sequence, row in rows:
        _, number, at = last.get(row.gateway, ("", 0, 0))
        last[row.gateway] = row.gateway, max(sequence, number), max(row.time, at)
    return sorted(last.values())


class LedgerStore(Protocol):
    """The write access. One process of a gateway holds one."""

    def add(self, rows: Sequence[JournalRow]) -> int:
        """Store the rows that are not stored yet, with their sums, in one transaction. Return how many were new."""

    def tidy(self, now: int) -> None:
        """Drop rows and sums that are older than the settings allow, and prepare for new ones. `now` is in ms."""

    def close(self) -> None:
        """Close the database."""


class LedgerReader(Protocol):
    """The read access, beside the process that writes."""

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        """Return the sums of all slots from `slot` on that changed after batch `after`, or of all of these slots if
        `after` is 0. `users` is the batch after which changes of end users are returned too, `None` if they are not
        needed."""

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        """Return the sums of each scope from each of these slots on, and the single slots from `recent` on. `users` is
        as in `spent_since`."""

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        """Do as `spent_from` for the scopes of some end users."""

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        """Return the lines of a report, unordered."""

    def newest(self) -> int | None:
        """Return the time of the newest row in ms, `None` if there are no rows."""

    def writers(self, since: int) -> int:
        """Return how many processes of all gateways have written rows since `since`, in ms."""

    def interrupt(self) -> None:
        """Interrupt a statement of another thread, which then raises LedgerError. Do nothing between two statements."""

    def close(self) -> None:
        """Close the database."""
