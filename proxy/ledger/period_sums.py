"""What each scope spent in the calendar periods that are now, kept up from what the ledger says has changed.

A slot's new sum replaces its old one, so that the old one must be known: only for slots that may still change. Where an
older one has changed, as after hours in which the database was away, everything is read anew. Pure: time is an
argument.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from proxy.ledger.ledger_store import SpendChanges
from proxy.ledger.rollups import SLOT_MS, SlotSpend
from proxy.limits.limit import Period

SLOT: Final = SLOT_MS // 1000
"""Seconds."""

OPEN: Final = 12
"""Slots whose sums are remembered, the present one included: three hours."""

Amounts = tuple[int, int, int]
"""Requests, tokens, billionths of a USD."""

NOTHING: Final = (0, 0, 0)


@dataclass(slots=True, eq=False)
class PeriodSums:
    """The sums of the scopes that `wanted` names. `batch` is up to where the ledger has been read."""

    wanted: frozenset[str]
    batch: int = 0
    _sums: dict[tuple[Period, int], dict[str, Amounts]] = field(default_factory=dict)
    _open: dict[tuple[str, int], Amounts] = field(default_factory=dict)
    _oldest_open: int = 0

    def first_slot(self, periods: Mapping[Period, tuple[int, int]]) -> int:
        """Return the slot from which on the ledger has to be read."""
        earliest = min(start for start, _ in periods.values()) // SLOT
        return earliest if not self.batch else min(earliest, self._oldest_open)

    def add(
        self, changes: SpendChanges, periods: Mapping[Period, tuple[int, int]], now: float
    ) -> dict[tuple[Period, int], dict[str, Amounts]] | None:
        """Take what has changed, and return the new sums by period and its start, of the scopes whose sums have; None
        where everything has to be read anew."""
        begins = {(period, start): (start, end) for period, (start, end) in periods.items()}
        whole = not self.batch
        self._sums = {key: self._sums.get(key, {}) for key in begins}
        found: dict[tuple[Period, int], dict[str, Amounts]] = {key: {} for key in begins}
        for spent in changes.spent:
            if spent.scope not in self.wanted:
                continue
            if not whole and spent.slot < self._oldest_open:
                self.batch = 0
                self._sums.clear()
                self._open.clear()
                return None
            self._add_slot(spent, begins, found)
        self.batch = changes.batch
        self._close(now)
        return found

    def _add_slot(
        self,
        spent: SlotSpend,
        begins: Mapping[tuple[Period, int], tuple[int, int]],
        found: dict[tuple[Period, int], dict[str, Amounts]],
    ) -> None:
        slot = (spent.scope, spent.slot)
        before, after = self._open.get(slot, NOTHING), (spent.requests, spent.tokens, spent.cost)
        self._open[slot] = after
        at = spent.slot * SLOT
        for key, (start, end) in begins.items():
            if start <= at < end:
                sums = self._sums[key]
                sums[spent.scope] = found[key][spent.scope] = _moved(sums.get(spent.scope, NOTHING), before, after)

    def _close(self, now: float) -> None:
        """Forget the sums of slots that hardly change any more."""
        oldest = int(now // SLOT) - OPEN + 1
        if oldest > self._oldest_open:
            self._oldest_open = oldest
            for slot in [slot for slot in self._open if slot[1] < oldest]:
                del self._open[slot]


def _moved(sums: Amounts, before: Amounts, after: Amounts) -> Amounts:
    requests, tokens, cost = (held - old + new for held, old, new in zip(sums, before, after, strict=True))
    return requests, tokens, cost
