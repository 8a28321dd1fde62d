"""What each scope has used since its calendar periods began, kept up to date by what changes each second.

Reading all of a month takes 0.1 s with thousands of teams; a second's changes are a few rows. So everything is read
when a period begins, and when something changes that lies back longer than RECENT: a journal that was away.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from proxy.ledger.ledger_store import Amounts, LedgerReader, SpendBase
from proxy.ledger.rollups import SLOT_MS, SlotSpend

RECENT: Final = 8
"""Slots whose present sums are known one by one."""

SLOT: Final = SLOT_MS // 1000
"""Seconds."""

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class SpentNews(Generic[P]):
    """What has changed: for each period, the sums of scopes that are others than before. `loaded` is, for each process,
    the number of the last of its rows that is in these sums. `batch` is the last one that was read, `users` are the
    present sums of changed slots of end users, if they were asked for."""

    sums: Mapping[P, Mapping[str, Amounts]]
    loaded: Mapping[str, int]
    batch: int
    users: Sequence[SlotSpend] = ()


@dataclass(slots=True, eq=False)
class SpentTotals(Generic[P]):
    """Reads for one process. Calls block and raise LedgerError, after which the next one goes on."""

    _starts: dict[P, int] = field(default_factory=dict)
    _totals: dict[P, dict[str, Amounts]] = field(default_factory=dict)
    _slots: dict[tuple[str, int], Amounts] = field(default_factory=dict)
    _first: int = 0
    _batch: int = 0

    def refresh(
        self, reader: LedgerReader, periods: Mapping[P, tuple[int, int]], now: int, users: int | None = None
    ) -> SpentNews[P]:
        """Return what has changed since the last call, all sums of periods that have just begun included. `periods` are
        their beginnings and ends; all times are in seconds since 1970, and each begins with a slot. Changes of end
        users are read from after the batch `users`, or not at all (`None`)."""
        starts = {period: begin // SLOT for period, (begin, _) in periods.items()}
        if starts != self._starts or not self._batch:
            return self._read_all(reader, starts, now, users)
        changes = reader.spent_since(0, self._batch, users)
        oldest = min(starts.values(), default=0)
        if any(oldest <= each.slot < self._first for each in changes.spent):
            return self._read_all(reader, starts, now, users)
        changed: dict[P, dict[str, Amounts]] = {period: {} for period in starts}
        for each in changes.spent:
            if each.slot >= self._first:
                self._add(each, changed)
        self._batch = changes.batch
        self._forget(now)
        return SpentNews(changed, changes.loaded, changes.batch, changes.users)

    def _read_all(self, reader: LedgerReader, starts: Mapping[P, int], now: int, users: int | None) -> SpentNews[P]:
        first = recent_slot(now)
        base = reader.spent_from(list(starts.values()), first, users)
        self._totals = {period: dict(totals) for period, totals in zip(starts, base.totals, strict=True)}
        self._slots = {(each.scope, each.slot): _amounts(each) for each in base.recent}
        self._starts, self._first, self._batch = dict(starts), first, base.batch
        every = {period: dict(totals) for period, totals in self._totals.items()}
        return SpentNews(every, base.loaded, base.batch, base.users)

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
        recent = recent_slot(now)
        if recent - self._first >= RECENT:
            self._slots = {key: amounts for key, amounts in self._slots.items() if key[1] >= recent}
            self._first = recent


@dataclass(slots=True, eq=False)
class _UserSums(Generic[P]):
    """The ledger's sums of one end user: of each period, with the slot in which it begins, and of each slot from
    `first` on."""

    first: int
    totals: dict[P, tuple[int, Amounts]]
    slots: dict[int, Amounts]

    def follow(self, slot: int, present: Amounts) -> bool:
        """Take the present sum of a slot; return whether that was possible."""
        if slot < self.first:
            return all(slot < start for start, _ in self.totals.values())
        before = self.slots.get(slot, (0, 0, 0))
        self.slots[slot] = present
        for period, (start, old) in self.totals.items():
            if slot >= start:
                total = tuple(map(_plus_difference, old, present, before))
                self.totals[period] = start, (total[0], total[1], total[2])
        return True

    def begin(self, period: P, start: int) -> bool:
        """Add up a period from its present beginning; return whether that was possible."""
        known = self.totals.get(period)
        if known is not None and known[0] == start:
            return True
        if start < self.first:
            return False
        requests = tokens = cost = 0
        for slot, amounts in self.slots.items():
            if slot >= start:
                requests, tokens, cost = requests + amounts[0], tokens + amounts[1], cost + amounts[2]
        self.totals[period] = start, (requests, tokens, cost)
        return True

    def forget(self, recent: int) -> None:
        """Keep few slots."""
        if recent - self.first >= RECENT:
            self.slots = {slot: amounts for slot, amounts in self.slots.items() if slot >= recent}
            self.first = recent


@dataclass(slots=True, eq=False)
class UserTotals(Generic[P]):
    """The sums of the end users that a process limits: few of many, each read when it is first seen, and kept until it
    is forgotten. `batch` is the last batch whose changes were followed."""

    batch: int = 0
    _users: dict[str, _UserSums[P]] = field(default_factory=dict)

    def __contains__(self, scope: str) -> bool:
        return scope in self._users

    def __len__(self) -> int:
        return len(self._users)

    def forget(self, scopes: Collection[str]) -> None:
        """Forget these users."""
        for scope in scopes:
            self._users.pop(scope, None)

    def begin(
        self, scopes: Collection[str], base: SpendBase, starts: Mapping[P, int], now: int
    ) -> dict[P, dict[str, Amounts]]:
        """Take the result of `users_from` for these scopes and the slots `starts`; return all sums."""
        if not self._users:
            self.batch = base.batch
        slots: dict[str, dict[int, Amounts]] = {}
        for each in base.recent:
            slots.setdefault(each.scope, {})[each.slot] = _amounts(each)
        found: dict[P, dict[str, Amounts]] = {period: {} for period in starts}
        for scope in scopes:
            totals: dict[P, tuple[int, Amounts]] = {}
            for (period, start), sums in zip(starts.items(), base.totals, strict=True):
                amounts = found[period][scope] = sums.get(scope, (0, 0, 0))
                totals[period] = start, amounts
            self._users[scope] = _UserSums(recent_slot(now), totals, slots.get(scope, {}))
        return found

    def follow(
        self, changed: Sequence[SlotSpend], batch: int, starts: Mapping[P, int], now: int
    ) -> tuple[dict[P, dict[str, Amounts]], set[str]]:
        """Take slots that changed up to a batch; return the sums of their users, and the users that have to be read
        anew."""
        self.batch = batch
        touched: set[str] = set()
        stale: set[str] = set()
        for each in changed:
            user = self._users.get(each.scope)
            if user is None:
                continue
            touched.add(each.scope)
            if not user.follow(each.slot, _amounts(each)):
                stale.add(each.scope)
        found: dict[P, dict[str, Amounts]] = {period: {} for period in starts}
        for scope in touched - stale:
            user = self._users[scope]
            if not all([user.begin(period, start) for period, start in starts.items()]):
                stale.add(scope)
                continue
            for period in starts:
                found[period][scope] = user.totals[period][1]
            user.forget(recent_slot(now))
        return found, stale


def recent_slot(now: int) -> int:
    """Return the first of the slots whose sums are known one by one, at `now` in seconds since 1970."""
    return now // SLOT - RECENT


def _amounts(each: SlotSpend) -> Amounts:
    return each.requests, each.tokens, each.cost


def _plus_difference(old: int, present: int, before: int) -> int:
    return old + present - before
