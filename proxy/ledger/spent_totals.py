"""The use of each scope since its calendar periods began, updated each second by the changes in the database.

Reading a whole month takes 0.1 s with thousands of teams, while the changes of a second are a few rows. So everything
is read only if a period begins, or if a slot older than RECENT_SLOTS changes, for example because a journal was loaded
late.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from proxy.ledger.ledger_store import Amounts, LedgerReader, SpendBase
from proxy.ledger.rollups import SLOT_MS, SlotSpend

RECENT_SLOTS: Final = 8
"""The number of slots whose current sums are stored singly."""

SLOT_SECONDS: Final = SLOT_MS // 1000
"""The length of a slot in seconds."""

P = TypeVar("P", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TotalsUpdate(Generic[P]):
    """The changes since the last reading. `sums` are the changed sums of scopes for each period. `loaded` is the number
    of the last row of each process in these sums. `batch` is the last batch that was read. `users` are the current sums
    of changed slots of end users, if requested."""

    sums: Mapping[P, Mapping[str, Amounts]]
    loaded: Mapping[str, int]
    batch: int
    users: Sequence[SlotSpend] = ()


@dataclass(slots=True, eq=False)
class SpentTotals(Generic[P]):
    """The totals of one process. Calls block and raise LedgerError. After an error, the next call continues."""

    _starts: dict[P, int] = field(default_factory=dict)
    _totals: dict[P, dict[str, Amounts]] = field(default_factory=dict)
    _slots: dict[tuple[str, int], Amounts] = field(default_factory=dict)
    _first: int = 0
    _batch: int = 0

    def refresh(
        self, reader: LedgerReader, periods: Mapping[P, tuple[int, int]], now: int, users: int | None = None
    ) -> TotalsUpdate[P]:
        """Return the changes since the last call, including all sums of periods that have just begun. `periods` maps
        each period to its begin and end, in seconds since 1970 like all times. Each period begins with a slot. Changes
        of end users are read from after the batch `users` on, or not at all if it is `None`."""
        starts = {period: begin // SLOT_SECONDS for period, (begin, _) in periods.items()}
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
        return TotalsUpdate(changed, changes.loaded, changes.batch, changes.users)

    def _read_all(self, reader: LedgerReader, starts: Mapping[P, int], now: int, users: int | None) -> TotalsUpdate[P]:
        first = recent_slot(now)
        base = reader.spent_from(list(starts.values()), first, users)
        self._totals = {period: dict(totals) for period, totals in zip(starts, base.totals, strict=True)}
        self._slots = {(each.scope, each.slot): _amounts(each) for each in base.recent}
        self._starts, self._first, self._batch = dict(starts), first, base.batch
        every = {period: dict(totals) for period, totals in self._totals.items()}
        return TotalsUpdate(every, base.loaded, base.batch, base.users)

    def _add(self, each: SlotSpend, changed: Mapping[P, dict[str, Amounts]]) -> None:
        """Add the change of a slot to the periods that contain it."""
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
        """Drop all slots except the recent ones. `_read_all` reads the others again."""
        recent = recent_slot(now)
        if recent - self._first >= RECENT_SLOTS:
            self._slots = {key: amounts for key, amounts in self._slots.items() if key[1] >= recent}
            self._first = recent


@dataclass(slots=True, eq=False)
class _UserSums(Generic[P]):
    """The ledger's sums of one end user: the sum of each period and the first slot of the period, and the sum of each
    slot from `first` on."""

    first: int
    totals: dict[P, tuple[int, Amounts]]
    slots: dict[int, Amounts]

    def follow(self, slot: int, present: Amounts) -> bool:
        """Apply the current sum of a slot, and return whether that was possible."""
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
        """Add up a period from its current begin, and return whether that was possible."""
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
        """Drop all but the recent slots."""
        if recent - self.first >= RECENT_SLOTS:
            self.slots = {slot: amounts for slot, amounts in self.slots.items() if slot >= recent}
            self.first = recent


@dataclass(slots=True, eq=False)
class UserTotals(Generic[P]):
    """The sums of the end users that a process limits, which are few of all end users. Each user is read when it is
    first seen, and stored until it is forgotten. `batch` is the last batch whose changes were applied."""

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
        """Store the result of `users_from` for these scopes and the slots `starts`. Return all sums."""
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
        """Apply the slots that changed up to a batch. Return the sums of their users, and the users that must be read
        again."""
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
    """Return the first of the slots whose sums are stored singly, at `now` in seconds since 1970."""
    return now // SLOT_SECONDS - RECENT_SLOTS


def _amounts(each: SlotSpend) -> Amounts:
    return each.requests, each.tokens, each.cost


def _plus_difference(old: int, present: int, before: int) -> int:
    return old + present - before
