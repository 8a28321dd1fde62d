"""What the loader, the budgets and the reports need of a database. SQLite and PostgreSQL are the implementations.

All calls block and raise LedgerError; each object belongs to one thread at a time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

from proxy.ledger.ledger_row import Journaled
from proxy.ledger.rollups import SlotSpend, UsageSums
from proxy.ledger.usage_query import UsageQuery

VERSION: Final = 2
"""Of the schema. A database of a higher one is refused."""

SPEND_KEPT: Final = 40 * 86400.0
"""Seconds for which spending is kept at least: the longest period of a budget is a month."""

MARGIN_MS: Final = 86_400_000
"""Rows are dropped so much later than the loader stops to take them: what is dropped never comes in again."""


@dataclass(frozen=True, slots=True)
class SpendChanges:
    """What `spent_since` found: the present sums of slots that changed, and `batch`, from which to ask the next time.

    `loaded` is, for each process, the number of the last of its rows that is in the database. `users` are the changed
    slots of end users, if they were asked for.
    """

    batch: int
    spent: Sequence[SlotSpend]
    loaded: Mapping[str, int]
    users: Sequence[SlotSpend] = ()


Amounts: TypeAlias = tuple[int, int, int]
"""Requests, tokens, and billionths of a USD."""


@dataclass(frozen=True, slots=True)
class SpendBase:
    """What `spent_from` found at batch `batch`: for each slot asked for, what each scope used from it on; and the slots
    from the recent one on, one by one. For `users` see SpendChanges."""

    batch: int
    totals: Sequence[Mapping[str, Amounts]]
    recent: Sequence[SlotSpend]
    loaded: Mapping[str, int]
    users: Sequence[SlotSpend] = ()


@dataclass(frozen=True, slots=True)
class UsageLine:
    """One line of a report: the values of its dimensions, in the query's order, and the sums."""

    group: tuple[str, ...]
    sums: UsageSums


def last_of_each(rows: Sequence[Journaled]) -> list[tuple[str, int, int]]:
    """Return, for each process, its name and the number and the time of its last row."""
    last: dict[str, tuple[str, int, int]] = {}
    for sequence, row in rows:
        _, number, at = last.get(row.gateway, ("", 0, 0))
        last[row.gateway] = row.gateway, max(sequence, number), max(row.time, at)
    return sorted(last.values())


class LedgerStore(Protocol):
    """Writes. One process of a gateway holds one."""

    def add(self, rows: Sequence[Journaled]) -> int:
        """Store the rows that are not there yet, with their sums, in one transaction; return how many were new."""

    def tidy(self, now: int) -> None:
        """Drop what is older than is kept, and prepare for what comes; `now` in ms."""

    def close(self) -> None:
        """Let go of the database."""


class LedgerReader(Protocol):
    """Reads, beside the process that writes."""

    def spent_since(self, slot: int, after: int = 0, users: int | None = None) -> SpendChanges:
        """Return the sums of all slots from `slot` on that changed after batch `after`; with 0 all of them. `users` is
        the batch after which changes of end users are returned too; `None` if they are not needed."""

    def spent_from(self, slots: Sequence[int], recent: int, users: int | None = None) -> SpendBase:
        """Return the sums of each scope from each of these slots on, and the slots from `recent` on. For `users` see
        `spent_since`."""

    def users_from(self, scopes: Sequence[str], slots: Sequence[int], recent: int) -> SpendBase:
        """Do as `spent_from` for the scopes of some end users."""

    def usage(self, query: UsageQuery) -> list[UsageLine]:
        """Return the lines of a report, unordered."""

    def newest(self) -> int | None:
        """Return the time of the newest row, in ms; None without rows."""

    def writers(self, since: int) -> int:
        """Return how many processes, of all gateways, have written rows since then, in ms."""

    def interrupt(self) -> None:
        """End what another thread reads, which then raises LedgerError; nothing between two statements."""

    def close(self) -> None:
        """Let go of the database."""
