"""The spending of a scope in a calendar period, for quotas and budgets. Time is an argument.

Spending is the units that all processes have settled, and the units that requests in flight reserve. The settled units
are one total, `settled`. It grows with each request that this process settles, and it has two lower bounds. The first
is the ledger's sum, plus the units that this process settled after it. The second is the last exchange with the other
processes, plus the units that this process settled after it. Both count the same units, so the total follows the higher
bound and never adds the two. Neither bound is above the true total, in any order of ledger, journal and exchange. So if
the total reaches a step, the true spending has reached it too. Both bounds are computed anew each second together with
an upper bound, to which the total falls back. So an error of one of them is corrected.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from proxy.limits.calendar_period import PeriodClock, bounds
from proxy.limits.limit import INDEX, Quota, ScopeBudget, Unit
from proxy.limits.limit_views import Exceeded, HeaderLimit, LimitKind, LimitView, spending_view

STATEMENT_HOLDS: Final = 10.0
"""Seconds for which the statement about the spending of the other processes holds."""

MAX_MARKS: Final = 64
"""The most marks for which settled units are counted separately until the ledger holds them."""

MAX_NOTES: Final = 1024
"""The most reached steps that wait to be read. The oldest are dropped."""

UNBOUNDED: Final = 1e18
"""The number of remaining units if no limit refuses requests."""

NO_STATEMENT: Final = (-(1 << 62), 0, 0)
"""The statement of the others while there is none. It is below any sum of the ledger."""

NOTHING_ELSEWHERE: Final = (0, 0, 0)
"""The statement of others that have settled and reserved nothing."""


@dataclass(frozen=True, slots=True)
class SpendingRules:
    """The quotas and budgets of one counter. From `most` on requests are refused, by the limit `refuses`. `steps` are
    the amounts with another action, in rising order. `needs_price` is a budget that refuses requests without a price.
    `quota_amount` is the amount of a quota for headers, `None` for a budget. `index` is the index of the unit's amount.
    """

    limits: tuple[Quota | ScopeBudget, ...]
    unit: Unit
    most: float
    refuses: Quota | ScopeBudget | None
    steps: tuple[tuple[float, ScopeBudget], ...]
    needs_price: ScopeBudget | None
    quota_amount: int | None
    index: int


def rules_of(limits: Sequence[Quota | ScopeBudget]) -> SpendingRules:
    """Return the rules of limits of one unit and period. The lowest limit that refuses applies. They are cached because
    many teams have the same limits."""
    return _rules_of(tuple(limits))


@lru_cache(maxsize=4096)
def _rules_of(limits: tuple[Quota | ScopeBudget, ...]) -> SpendingRules:
    most, refuses = math.inf, None
    steps = []
    for each in limits:
        at = float(each.amount) if isinstance(each, Quota) else each.amount * each.at
        if isinstance(each, ScopeBudget) and each.then != "reject":
            steps.append((at, each))
        elif at < most:
            most, refuses = at, each
    budgets = [each for each in limits if isinstance(each, ScopeBudget)]
    priced = next((each for each in budgets if each.unpriced == "reject"), None)
    rising = tuple(sorted(steps, key=lambda step: step[0]))
    quota = refuses.amount if isinstance(refuses, Quota) else None
    unit = limits[0].unit
    return SpendingRules(limits, unit, most, refuses, rising, priced, quota, INDEX[unit])


@dataclass(slots=True, eq=False)
class SpendingNotes:
    """The state that all counters of a process share.

    - `mark` is the number given to units that are settled from now on, for example the number of the journal's file.
      The ledger returns the mark up to which it holds all settled units.
    - `until` is the event loop's time at which the mark ends. The component that sets marks sets the next one then.
    - `reached` are the reached steps that have not been read yet.
    - `unloaded` are the counters with settled units that the ledger may not have held at its last reading.
    """

    mark: int = 0
    until: float = math.inf
    reached: deque[tuple[str, ScopeBudget]] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))
    unloaded: set["SpendingCounter"] = field(default_factory=set)


class SpendingCounter:
    """The spending of one scope, of one unit, in one kind of period. A reached step stays reached for the period, so
    that requests do not switch models back and forth. Only settled units reach steps, because a reservation may be
    given back. Refusals follow `spent`.

    - `settled` is a lower bound of the units that all processes have settled. `spent` adds the units that they reserve.
    - `_next_step` is the amount of the next step. The period ends at `ends`.
    - `_base` is the ledger's sum. The sum may include `_doubtful` units that this process still counts as not loaded.
    - `_beyond_own` is `settled` without the units that this process has settled in this period.
    - `_others` is the statement of the others, which holds until `others_until`. It has three numbers: the units that
      all have settled besides this process's own, how many more there may be, and the units that the others reserve.
      Teams without use by others share one object, because a configuration may have ten thousand teams.
    """

    __slots__ = (
        *("_base", "_beyond_own", "_doubtful", "_mark", "_newest", "_next_step", "_notes", "_older", "_others"),
        *("_start", "clock", "ends", "others_until", "reached", "reserved", "rules", "scope", "settled", "spent"),
    )

    def __init__(self, scope: str, rules: SpendingRules, clock: PeriodClock, notes: SpendingNotes) -> None:
        self.scope = scope
        self.rules = rules
        self.clock = clock
        self.reserved = self.settled = self.spent = 0
        self.reached: tuple[ScopeBudget, ...] = ()
        self._notes = notes
        self._start = clock.start
        self._others: tuple[int, int, int] = NO_STATEMENT
        self._base = self._doubtful = self._beyond_own = self._mark = self._newest = 0
        self._older: list[tuple[int, int]] | None = None
        self._begin()

    @property
    def own(self) -> int:
        """The units of this process that the ledger may not hold, and the units that its requests in flight reserve."""
        return self._unloaded() + self.reserved

    @property
    def used(self) -> int:
        """The units that this process has settled in this period."""
        return self.settled - self._beyond_own

    def lacks(self, units: int | None, now: float, wall: float) -> bool:
        """Return whether these units are too many now. A request for more units than the limit passes if nothing is
        spent. `None` is an unknown cost."""
        if wall >= self.ends or now > self.others_until:
            self._update_period(now, wall)
        rules = self.rules
        if units is None:
            if rules.needs_price:
                return True
            units = 0
        most = rules.most
        return self.spent + (units if units < most else most) > most

    def take(self, units: int | None, now: float, wall: float) -> None:
        """Reserve units after a test at the same `now`."""
        if units:
            self.reserved += units
            self.spent += units

    def settle(self, reserved: int | None, used: int | None) -> None:
        """Count the used units in place of the reserved ones. A request that ends in a later period than it began
        counts in the later one, as its row in the ledger does."""
        if reserved:
            self.reserved -= reserved
            self.spent -= reserved
        if used:
            self.spent += used
            self.settled += used
            if self._notes.mark == self._mark:  # Usually there is one mark at a time.
                self._newest += used
            else:
                self._begin_mark(used)
            if self.settled >= self._next_step:
                self._reach()

    def load(self, start: int, amount: int, mark: int, touched: int = 0) -> None:
        """Load the ledger's sum of the period that begins at `start`. It includes all units settled up to `mark`, and
        may include some that were settled up to `touched`."""
        if self._start != self.clock.start:
            self._begin()
        if start != self._start:
            return
        self._base = amount
        self._drop_loaded(mark, touched)

    def unchanged(self, start: int, mark: int, touched: int = 0) -> bool:
        """Note that the ledger's sum of the period that begins at `start` is unchanged. It includes all units settled
        up to `mark`, and may include some up to `touched`. The marks may have moved, because the sum may have included
        more units when it was read than was known then. Return whether this process may have settled units that the
        ledger does not hold."""
        if start != self._start:
            return start < self._start  # A period that is over counts nothing.
        self._drop_loaded(mark, touched)
        return self._mark > mark or self._older is not None

    def _drop_loaded(self, mark: int, touched: int) -> None:
        """Stop counting units settled up to `mark`, because the ledger's sum includes them."""
        older = [entry for entry in self._older or () if entry[0] > mark]
        self._older = older or None
        if self._mark <= mark:
            self._newest = 0
        self._doubtful = sum(used for at, used in (*older, (self._mark, self._newest)) if at <= touched)
        self._add_up()

    def apply_others(self, known: int, loose: int, reserved: int, now: float) -> None:
        """Apply the statement of the other processes. All have settled `known` and up to `loose` more units, besides
        the ones of this process in this period. The others reserve `reserved`."""
        statement = known, loose, reserved
        self._others = NOTHING_ELSEWHERE if statement == NOTHING_ELSEWHERE else statement
        self.others_until = now + STATEMENT_HOLDS
        self._add_up()

    def follow(self, rules: SpendingRules, clock: PeriodClock) -> None:
        """Count by other limits or in another time zone from now on. Spent units stay spent. Steps that a raised budget
        no longer reaches are no longer reached."""
        self.rules = rules
        self.clock = clock
        if clock.start != self._start:
            self._others = NO_STATEMENT  # The statement's units may not belong to this period.
        self._start, self.ends = clock.start, clock.end
        before, self.reached = self.reached, ()
        self._reach(silent=before)

    def refused(self, units: int | None, now: float) -> None:
        """Ignore a refused request."""

    def fetchable(self, units: int | None, now: float) -> bool:
        """Return that no more units can be fetched."""
        return False

    def wait(self, units: int | None, now: float, wall: float) -> float:
        """Return the seconds until these units pass: until the end of the period if they do not pass now."""
        return self.full_in(now, wall) if self.lacks(units, now, wall) else 0.0

    def remaining(self, now: float, wall: float) -> int:
        """Return the units that are left until requests are refused."""
        self._update_period(now, wall)
        return max(0, math.floor(min(self.rules.most, UNBOUNDED) - self.spent))

    def for_headers(self, now: float, wall: float) -> HeaderLimit | None:
        """Return the values of a quota for headers, `None` for a budget."""
        amount = self.rules.quota_amount
        if amount is None:
            return None
        if wall >= self.ends or now > self.others_until:
            self._update_period(now, wall)
        left, ends = amount - self.spent, self.ends - wall
        return left if left > 0 else 0, amount, ends if ends > 0 else 0.0

    def full_in(self, now: float, wall: float) -> float:
        """Return the seconds until the end of the period."""
        self._update_period(now, wall)
        return max(0.0, self.clock.end - wall)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the current view of each quota and budget. This changes nothing, because metrics are rendered in a
        thread."""
        reached, ends = self.reached, self.ends
        spent = self.spent if now <= self.others_until else self._total(NO_STATEMENT[0], 0) + self.reserved
        if wall >= ends:
            spent, reached, ends = self.reserved, (), bounds(self.clock.period, self.clock.zone, wall)[1]
        for limit in self.rules.limits:
            yield spending_view(scope, limit, spent, ends, latched=limit in reached)

    def exceeded(self, scope: str, units: int | None, now: float, wall: float) -> Exceeded:
        """Return the details of a refusal of these units."""
        rules, ends = self.rules, self.clock.end
        limit = rules.refuses
        kind = LimitKind.QUOTA if isinstance(limit, Quota) else LimitKind.BUDGET
        most, wait = 0 if limit is None else math.floor(rules.most), max(0.0, ends - wall)
        if units is None and (strict := rules.needs_price) is not None:
            kind, most = LimitKind.UNPRICED, strict.amount
        period, reserved = self.clock.period, self.reserved
        return Exceeded(scope, kind, rules.unit, period, most, self.spent, units or 0, wait, ends, reserved)

    def routes(self, now: float, wall: float) -> Sequence[ScopeBudget]:
        """Return the reached budgets that send requests to another model name."""
        self._update_period(now, wall)
        return [each for each in self.reached if each.then == "route"] if self.reached else ()

    def _update_period(self, now: float, wall: float) -> None:
        """Move to the current period, and drop a statement of the others that was not renewed."""
        if wall >= self.ends:
            self.clock.move(wall)
            if self.clock.start != self._start:
                self._begin()
        if now > self.others_until:
            self._others = NO_STATEMENT
            self.others_until = math.inf
            self._add_up()

    def _begin(self) -> None:
        """Begin a period. Reserved units stay reserved."""
        self._start, self.ends = self.clock.start, self.clock.end
        self._base = self._doubtful = self._beyond_own = self._newest = self.settled = 0
        self._others = NO_STATEMENT
        self.others_until = math.inf
        self._older = None
        self.reached = ()
        self._next_step = self._step_after(0)
        self._add_up()

    def _total(self, by_others: int, loose: int) -> int:
        """Return the current total, or the nearest value between the bounds of the ledger and of the others."""
        by_ledger = self._base + self._unloaded()
        most = max(by_ledger, by_others + loose)
        return max(by_ledger - self._doubtful, by_others, min(self.settled, most))

    def _unloaded(self) -> int:
        """Return the units that this process has settled and that the ledger may not hold."""
        older = self._older
        return self._newest + (sum([used for _, used in older]) if older else 0)

    def _add_up(self) -> None:
        """Compute the total from the ledger's sum and the statement of the others."""
        known, loose, reserved = self._others
        by_others = known + self.used
        total = self._total(by_others, loose)
        self._beyond_own += total - self.settled
        self.settled = total
        # The reservations of the others may have been settled and loaded since, so they never count beside the ledger's
        # gain.
        self.spent = max(total, by_others + reserved) + self.reserved
        if total >= self._next_step:
            self._reach()

    def _begin_mark(self, used: int) -> None:
        """Begin to count units of a new mark."""
        self._notes.unloaded.add(self)
        if self._newest:
            older = self._older = self._older or []
            older.append((self._mark, self._newest))
            if len(older) > MAX_MARKS:  # The units of both marks count by the later mark, so slightly too long.
                older[:2] = [(older[1][0], older[0][1] + older[1][1])]
        self._mark, self._newest = self._notes.mark, used

    def _step_after(self, count: int) -> float:
        steps = self.rules.steps
        return steps[count][0] if count < len(steps) else math.inf

    def _reach(self, silent: Sequence[ScopeBudget] = ()) -> None:
        """Report the newly reached steps, except the ones in `silent`, which were reported before."""
        settled = self.settled
        count = sum(1 for at, _ in self.rules.steps if at <= settled)
        for _, budget in self.rules.steps[len(self.reached) : count]:
            self.reached = (*self.reached, budget)
            if budget not in silent:
                self._notes.reached.append((self.scope, budget))
        self._next_step = self._step_after(len(self.reached))
