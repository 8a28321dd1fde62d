"""What a scope has spent in a calendar period, for quotas and budgets alike. Time is an argument.

Spent is what all processes have settled, and what requests in flight reserve. Of the first there is one total. It grows
by what this process settles, and two sources tell at least how much it is: the ledger's sum with what this process
settled beside it, and the other processes' last exchange with what this process settled since they were asked. The
sources hold the same units, so the total follows the higher one and never adds them. Neither says more than is true,
whichever of ledger, journal and exchange is ahead; so a step that the total reaches was reached. Both are stated anew
each second with a highest value, to which the total falls back, so an error of one cannot stay.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from proxy.limits.calendar_period import PeriodClock, bounds
from proxy.limits.limit import INDEX, Quota, ScopeBudget, Unit
from proxy.limits.limit_views import Exceeded, LimitKind, LimitView, Shown, spending_view

OTHERS_HOLD: Final = 10.0
"""Seconds for which the word of other processes holds."""

MARKS: Final = 64
"""Parts of what is settled and not in the ledger yet that are told apart."""

NOTES: Final = 1024
"""Steps reached that wait to be read; the oldest are forgotten."""

UNBOUNDED: Final = 1e18
"""What is left where nothing refuses."""

UNTOLD: Final = (-(1 << 62), 0, 0)
"""The statement of the others while there is none: less than the ledger says in any case."""

NOTHING_MORE: Final = (0, 0, 0)
"""The statement of others who have settled and reserved nothing."""


@dataclass(frozen=True, slots=True)
class SpendingRules:
    """The quotas and budgets on one counter. `most` is where requests are refused, by `refuses`; the `steps` are where
    something else happens, in rising order. `needs_price` is a budget that refuses requests without a price. `told` is
    the amount of a quota for headers, `None` for a budget; `index` is the place of its unit's amount."""

    limits: tuple[Quota | ScopeBudget, ...]
    unit: Unit
    most: float
    refuses: Quota | ScopeBudget | None
    steps: tuple[tuple[float, ScopeBudget], ...]
    needs_price: ScopeBudget | None
    told: int | None
    index: int


def rules_of(limits: Sequence[Quota | ScopeBudget]) -> SpendingRules:
    """Return the rules of limits of one unit and period; the lowest that refuses does. Kept, because many teams have
    the same limits."""
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
    told = refuses.amount if isinstance(refuses, Quota) else None
    unit = limits[0].unit
    return SpendingRules(limits, unit, most, refuses, rising, priced, told, INDEX[unit])


@dataclass(slots=True, eq=False)
class SpendingNotes:
    """What all counters of a process share. `mark` numbers what is settled from now on (a file of the journal, say):
    the ledger answers with the mark up to which it holds everything. It holds until `until`, by the loop's clock: who
    gives marks gives another one then. `reached` are steps that nobody has read yet, `unloaded` the counters that may
    have settled what the ledger did not hold yet when it was read."""

    mark: int = 0
    until: float = math.inf
    reached: deque[tuple[str, ScopeBudget]] = field(default_factory=lambda: deque(maxlen=NOTES))
    unloaded: set["SpendingCounter"] = field(default_factory=set)


class SpendingCounter:
    """What one scope spends of one unit in one kind of period. Steps that were reached stay so for the period, so that
    answers do not change models back and forth: only what is settled reaches them, since a reservation may come back.
    Refusals follow what is spent.

    `settled` is what all have settled at least, and `spent` also what they reserved, as far as this process knows. The
    next step is at `_next_step`. The period ends at `ends`, and the statement of the others holds until `others_until`.
    `_base` is the ledger's sum, which may hold `_doubtful` of what this process counts as unloaded. `_jumped` is what
    `settled` has beside what this process has settled in this period, and `_others` the statement of the others: what
    all had settled beside the same, up to how much more, and what they reserve. It is one object for all teams that
    others do not use: a table may have ten thousand of them."""

    __slots__ = (
        *("_base", "_doubtful", "_jumped", "_mark", "_newest", "_next_step", "_notes", "_older", "_others", "_start"),
        *("clock", "ends", "others_until", "reached", "reserved", "rules", "scope", "settled", "spent"),
    )

    def __init__(self, scope: str, rules: SpendingRules, clock: PeriodClock, notes: SpendingNotes) -> None:
        self.scope = scope
        self.rules = rules
        self.clock = clock
        self.reserved = self.settled = self.spent = 0
        self.reached: tuple[ScopeBudget, ...] = ()
        self._notes = notes
        self._start = clock.start
        self._others: tuple[int, int, int] = UNTOLD
        self._base = self._doubtful = self._jumped = self._mark = self._newest = 0
        self._older: list[tuple[int, int]] | None = None
        self._begin()

    @property
    def own(self) -> int:
        """What the ledger may not hold of this process, and what its requests in flight reserve."""
        return self._unloaded() + self.reserved

    @property
    def used(self) -> int:
        """What this process has settled in this period."""
        return self.settled - self._jumped

    def lacks(self, units: int | None, now: float, wall: float) -> bool:
        """Return whether so many units are too many now. More than all pass where nothing is spent; None is a cost that
        nobody knows."""
        if wall >= self.ends or now > self.others_until:
            self._keep_time(now, wall)
        rules = self.rules
        if units is None:
            if rules.needs_price:
                return True
            units = 0
        most = rules.most
        return self.spent + (units if units < most else most) > most

    def take(self, units: int | None, now: float, wall: float) -> None:
        """Reserve units, after a test at the same time."""
        if units:
            self.reserved += units
            self.spent += units

    def settle(self, reserved: int | None, used: int | None) -> None:
        """Count what was used instead of what was reserved. What ends after its period began counts in the next one,
        as the rows of the ledger do."""
        if reserved:
            self.reserved -= reserved
            self.spent -= reserved
        if used:
            self.spent += used
            self.settled += used
            if self._notes.mark == self._mark:  # mostly there is one mark at a time
                self._newest += used
            else:
                self._begin_mark(used)
            if self.settled >= self._next_step:
                self._reach()

    def load(self, start: int, amount: int, mark: int, touched: int = 0) -> None:
        """Take the ledger's sum of the period that begins at `start`. It holds all that was settled up to `mark`, and
        may hold some of what was settled after that up to `touched`."""
        if self._start != self.clock.start:
            self._begin()
        if start != self._start:
            return
        self._base = amount
        self._leave_to_ledger(mark, touched)

    def unchanged(self, start: int, mark: int, touched: int = 0) -> bool:
        """Note that the ledger's sum of the period that begins at `start` is what it was, with all that was settled up
        to `mark` and maybe some up to `touched`: a sum that was read may have held more than was known then. Returns
        whether anything may be settled that is not in the ledger."""
        if start != self._start:
            return start < self._start  # of a period that is over, nothing counts any more
        self._leave_to_ledger(mark, touched)
        return self._mark > mark or self._older is not None

    def _leave_to_ledger(self, mark: int, touched: int) -> None:
        """Count no more by itself what was settled up to `mark`."""
        older = [entry for entry in self._older or () if entry[0] > mark]
        self._older = older or None
        if self._mark <= mark:
            self._newest = 0
        self._doubtful = sum(used for at, used in (*older, (self._mark, self._newest)) if at <= touched)
        self._add_up()

    def hear(self, known: int, loose: int, reserved: int, now: float) -> None:
        """Take what the other processes say: all have settled `known` and up to `loose` more beside what this process
        has settled in this period, and the others reserve `reserved`."""
        heard = known, loose, reserved
        self._others = NOTHING_MORE if heard == NOTHING_MORE else heard
        self.others_until = now + OTHERS_HOLD
        self._add_up()

    def follow(self, rules: SpendingRules, clock: PeriodClock) -> None:
        """Count by other limits from now on, or in another time zone. What is spent stays spent; steps that a raised
        budget no longer reaches are not reached."""
        self.rules = rules
        self.clock = clock
        if clock.start != self._start:
            self._others = UNTOLD  # of units that may be no part of this period
        self._start, self.ends = clock.start, clock.end
        before, self.reached = self.reached, ()
        self._reach(silent=before)

    def refused(self, units: int | None, now: float) -> None:
        """Note a request that was refused."""

    def fetchable(self, units: int | None, now: float) -> bool:
        """Return whether more units could be fetched from somewhere."""
        return False

    def wait(self, units: int | None, now: float, wall: float) -> float:
        """Return the seconds until so many units pass: until the period's end, if they do not now."""
        return self.full_in(now, wall) if self.lacks(units, now, wall) else 0.0

    def remaining(self, now: float, wall: float) -> int:
        """Return the units that are left until requests are refused."""
        self._keep_time(now, wall)
        return max(0, math.floor(min(self.rules.most, UNBOUNDED) - self.spent))

    def shown(self, now: float, wall: float) -> Shown | None:
        """Return what headers show of a quota; None of a budget."""
        amount = self.rules.told
        if amount is None:
            return None
        if wall >= self.ends or now > self.others_until:
            self._keep_time(now, wall)
        left, ends = amount - self.spent, self.ends - wall
        return left if left > 0 else 0, amount, ends if ends > 0 else 0.0

    def full_in(self, now: float, wall: float) -> float:
        """Return the seconds until the period's end."""
        self._keep_time(now, wall)
        return max(0.0, self.clock.end - wall)

    def views(self, scope: str, now: float, wall: float) -> Iterator[LimitView]:
        """Yield each quota and budget as it stands. Changes nothing: metrics are rendered in a thread."""
        reached, ends = self.reached, self.ends
        spent = self.spent if now <= self.others_until else self._total(UNTOLD[0], 0) + self.reserved
        if wall >= ends:
            spent, reached, ends = self.reserved, (), bounds(self.clock.period, self.clock.zone, wall)[1]
        for limit in self.rules.limits:
            yield spending_view(scope, limit, spent, ends, latched=limit in reached)

    def exceeded(self, scope: str, units: int | None, now: float, wall: float) -> Exceeded:
        """Return what is told of lacking so many units."""
        rules, ends = self.rules, self.clock.end
        limit = rules.refuses
        kind = LimitKind.QUOTA if isinstance(limit, Quota) else LimitKind.BUDGET
        most, wait = 0 if limit is None else math.floor(rules.most), max(0.0, ends - wall)
        if units is None and (strict := rules.needs_price) is not None:
            kind, most = LimitKind.UNPRICED, strict.amount
        period, reserved = self.clock.period, self.reserved
        return Exceeded(scope, kind, rules.unit, period, most, self.spent, units or 0, wait, ends, reserved)

    def routes(self, now: float, wall: float) -> Sequence[ScopeBudget]:
        """Return the budgets reached by which requests go to another name."""
        self._keep_time(now, wall)
        return [each for each in self.reached if each.then == "route"] if self.reached else ()

    def _keep_time(self, now: float, wall: float) -> None:
        """Go on to the period that is now, and forget what others have not said again."""
        if wall >= self.ends:
            self.clock.move(wall)
            if self.clock.start != self._start:
                self._begin()
        if now > self.others_until:
            self._others = UNTOLD
            self.others_until = math.inf
            self._add_up()

    def _begin(self) -> None:
        """Begin a period: what is reserved goes on."""
        self._start, self.ends = self.clock.start, self.clock.end
        self._base = self._doubtful = self._jumped = self._newest = self.settled = 0
        self._others = UNTOLD
        self.others_until = math.inf
        self._older = None
        self.reached = ()
        self._next_step = self._step_after(0)
        self._add_up()

    def _total(self, by_others: int, loose: int) -> int:
        """Return the total as it is, or the nearest that the ledger and the word of the others allow."""
        by_ledger = self._base + self._unloaded()
        most = max(by_ledger, by_others + loose)
        return max(by_ledger - self._doubtful, by_others, min(self.settled, most))

    def _unloaded(self) -> int:
        """Return what this process has settled and the ledger may not hold."""
        older = self._older
        return self._newest + (sum([used for _, used in older]) if older else 0)

    def _add_up(self) -> None:
        """Follow the sources."""
        known, loose, reserved = self._others
        by_others = known + self.used
        total = self._total(by_others, loose)
        self._jumped += total - self.settled
        self.settled = total
        # What the others reserved may be settled and loaded since: it never counts beside what the ledger gained.
        self.spent = max(total, by_others + reserved) + self.reserved
        if total >= self._next_step:
            self._reach()

    def _begin_mark(self, used: int) -> None:
        """Note an amount that will be in the ledger by another mark than the one before."""
        self._notes.unloaded.add(self)
        if self._newest:
            older = self._older = self._older or []
            older.append((self._mark, self._newest))
            if len(older) > MARKS:  # counted by the later mark, so for a little too long
                older[:2] = [(older[1][0], older[0][1] + older[1][1])]
        self._mark, self._newest = self._notes.mark, used

    def _step_after(self, count: int) -> float:
        steps = self.rules.steps
        return steps[count][0] if count < len(steps) else math.inf

    def _reach(self, silent: Sequence[ScopeBudget] = ()) -> None:
        """Note the steps that are reached now; `silent` were reported before."""
        settled = self.settled
        count = sum(1 for at, _ in self.rules.steps if at <= settled)
        for _, budget in self.rules.steps[len(self.reached) : count]:
            self.reached = (*self.reached, budget)
            if budget not in silent:
                self._notes.reached.append((self.scope, budget))
        self._next_step = self._step_after(len(self.reached))
