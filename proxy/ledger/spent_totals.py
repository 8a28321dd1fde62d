"""What each scope has used since its calendar periods began, kept up to date by what changes each second.

Reading all of a month takes 0.1 s with thousands of teams; a second's changes are a few rows. So everything is read
when a period begins, and when something changes that lies back longer than RECENT: a journal that was away.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from proxy.ledger.ledger_store import Amounts, LedgerReader
from proxy.ledger.rollups import SLOT_MS, SlotSpend

RECENT: Final = 8
"""Slots whose present sums are known one by one."""

SLOT: Final = SLOT_MS // 1000
"""Seconds."""

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SpentNews(Generic[P]):
    """What has changed: for each period, the sums of scopes that are others than before. `loaded` is, for each process,
    the number of the last of its rows that is in these sums."""

    sums: Mapping[P, Mapping[str, Amounts]]
    loaded: Mapping[str, int]


@dataclass(slots=True, eq=False)
class SpentTotals(Generic[P]):
    """Reads for one process. Calls block and raise LedgerError, after which the next one goes on."""

    _starts: dict[P, int] = field(default_factory=dict)
    _totals: dict[P, dict[str, Amounts]] = field(default_factory=dict)
    _slots: dict[tuple[str, int], Amounts] = field(default_factory=dict)
    _first: int = 0
    _batch: int = 0

    def refresh(self, reader: LedgerReader, periods: Mapping[P, tuple[int, int]], now: int) -> SpentNews[P]:
        """Return what has changed since the last call, all sums of periods that have just begun included. `periods` are
        their beginnings and ends; all times are in seconds since 1970, and all beginnings are those of slots."""
        starts = {period: begin // SLOT for period, (begin, _) in periods.items()}
        if starts != self._starts or not self._batch:
            return self._read_all(reader, starts, now)
        changes = reader.spent_since(0, self._batch)
        oldest = min(starts.values(), default=0)
        if any(oldest <= each.slot < self._first for each in changes.spent):
            return self._read_all(reader, starts, now)
        changed: dict[P, dict[str, Amounts]] = {period: {} for period in starts}
        for each in changes.spent:
            if each.slot >= self._first:
                self._add(each, changed)
        self._batch = changes.batch
        self._forget(now)
        return SpentNews(changed, changes.loaded)

    def _read_all(self, reader: LedgerReader, starts: Mapping[P, int], now: int) -> SpentNews[P]:
        first = now // SLOT - RECENT
        base = reader.spent_from(list(starts.values()), first)
        self._totals = {period: dict(totals) for period, totals in zip(starts, base.totals, strict=True)}
        self._slots = {(each.scope, each.slot): _amounts(each) for each in base.recent}
        self._starts, self._first, self._batch = dict(starts), first, base.batch
        return SpentNews({period: dict(totals) for period, totals in self._totals.items()}, base.loaded)

    def _add(self, each: SlotSpend, changed: Mapping[P, dict[str, Amounts]]) -> None:
        """Add what a slot has more than before to the periods that it lies in."""
        key, present = (each.scope, each.slot), _amounts(each)
        before = self._slots.get(key, (0, 0, 0))
        self._slots[key] = present
        for period, start in self._starts.items():
            if each.slot >= start:
                totals = self._totals[period]
                old = totals.get(each.scope, (0, 0, 0))
                total = tuple(map(_plus_difference, old, present, before))
                totals[each.scope] = changed[period][each.scope] = (total[0], total[1], total[2])

    def _forget(self, now: int) -> None:
        """Keep few slots, and leave the rest to `_read_all`."""
        recent = now // SLOT - RECENT
        if recent - self._first >= RECENT:
            self._slots = {key: amounts for key, amounts in self._slots.items() if key[1] >= recent}
            self._first = recent


def _amounts(each: SlotSpend) -> Amounts:
    return each.requests, each.tokens, each.cost


def _plus_difference(old: int, present: int, before: int) -> int:
    return old + present - before
