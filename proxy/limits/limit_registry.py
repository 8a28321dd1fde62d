"""All limits of a process: one object that outlives the tables. A request asks here for everything it is limited to,
and gets all of it or nothing.

Time is an argument wherever nothing is waited for.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedPlaces, Places
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import UNLIMITED, Limits, Period, ScopeBudget, is_user_scope
from proxy.limits.limit_views import Exceeded, LimitView
from proxy.limits.reservation import NOTHING, BoundMeter, Facts, Meters, Reservation, joined
from proxy.limits.scope_state import MeterMaker, ScopeState
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes
from proxy.limits.waiting_lines import (
    LONGEST,
    Leased,
    LeaseWaiter,
    Units,
    WaitingLine,
    WaitingLines,
    is_after,
    is_behind,
    lacks_beside,
)
from proxy.shared_state.membership import ROLL_CALL

CALENDAR: Final = (Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH)

ROUNDS: Final = 2
"""Exchanges that a request asks for at once; after as many in vain it waits for those that come anyway."""

JOINED: Final = 4096
"""Scopes that limit one request together, of which it is kept what counts for them."""

FREE: Final = Reservation(NOTHING, 0, None)
"""What a request without limits holds."""


class LimitRegistry:
    """`clock` is the loop's, `wall` the seconds since 1970. Without `leases` this process counts by itself. `shares` is
    how limits were divided before a restart. `maker` makes the meters, `user` finds the state of an end user, and
    `unread` returns whether a counter belongs to a user whose sums have not been read from the ledger."""

    def __init__(
        self,
        clock: Callable[[], float],
        wall: Callable[[], float],
        leases: LeaseRegistry | None = None,
        shares: Mapping[str, tuple[float, int]] | None = None,
    ) -> None:
        self.notes = SpendingNotes()
        self.user: Callable[[str], ScopeState | None] = lambda scope: None
        self.unread: Callable[[SpendingCounter], bool] = lambda counter: False
        self._clock = clock
        self._wall = wall
        self._leases = leases
        self.maker = MeterMaker(leases, self.notes, shares=dict(shares or {}))
        if leases is not None and (known := self.maker.shares.get(ROLL_CALL)):
            leases.assume(known[1])
        self._scopes: dict[str, ScopeState] = {}
        self._former: dict[str, ScopeState] = {}
        self._patient: Counter[tuple[str, ...]] = Counter()
        self._joined: dict[tuple[str, ...], Meters] = {}
        self._lines = WaitingLines(clock)
        self._waiting: deque[LeaseWaiter] = deque()
        if leases is not None:
            leases.answered = self._answered

    @property
    def lines(self) -> Mapping[str, WaitingLine]:
        """Who waits, by scope: one object for good, empty while nobody does."""
        return self._lines.lines

    @property
    def alone(self) -> bool:
        """Whether this process goes on with its share, since Redis or the coordinator does not answer, or of some
        limits since something else was found in their place."""
        return self._leases is not None and self._leases.divided

    def use(
        self, limits: Mapping[str, Limits], budgets: Mapping[str, tuple[ScopeBudget, ...]], zone: tzinfo, now: float
    ) -> None:
        """Put a table's limits in force. Scopes that stay go on with what they have counted, whatever their limits are
        now; those that are gone end with their last request, and hold for who waits for them already."""
        wall = self._wall()
        clocks = self.maker.clocks
        moved = bool(clocks) and clocks[Period.DAY].zone != zone
        if not clocks or moved:
            clocks.update({period: PeriodClock(period, zone, wall) for period in CALENDAR})
        before, self._scopes = {**self._former, **self._scopes}, {}
        self._former = {}
        self._joined.clear()
        for scope in {**limits, **budgets}:
            own, spend = limits.get(scope, UNLIMITED), budgets.get(scope, ())
            if not own and not spend:
                continue
            state = before.pop(scope, None)
            if state is None or state.limits != own or state.budgets != spend or moved:
                former, state = state, ScopeState(own, spend)
                if former is not None and former.made:
                    state.make(scope, self.maker, now, former)
            self._scopes[scope] = state
        waited = self._waited_for() if before else ()
        for scope, state in before.items():
            if scope in waited:
                self._former[scope] = state
            else:
                state.end(self.maker)
        if self._scopes and self._leases is not None:
            self._leases.join()

    def admit(
        self, scopes: Sequence[str], tokens: int, cost: int | None, now: float, wall: float
    ) -> Reservation | Exceeded | None:
        """Take a request, so many tokens and their cost from all limits of `scopes`, or nothing. None: units have to be
        fetched, which `admit_waiting` waits for. Nobody overtakes who waits for one of these scopes."""
        outcome = self.begin(scopes, tokens, cost, now, wall)
        return _reservation(outcome, tokens, cost) if isinstance(outcome, Meters) else outcome

    def begin(
        self, scopes: Sequence[str], tokens: int, cost: int | None, now: float, wall: float
    ) -> Meters | Exceeded | None:
        """Do as `admit`, and return what it was taken from: the caller ends the reservation that it makes of that."""
        if self._lines.lines:
            for scope in scopes:
                if line := self._lines.lines.get(scope):
                    return line.last
        return self._take_from(scopes, (1, tokens, cost, 1), now, wall)

    async def admit_waiting(self, scopes: Sequence[str], tokens: int, cost: int | None) -> Reservation | Exceeded:
        """Do as `admit`, and wait for units to be fetched: for one exchange, ordinarily below 1 ms."""
        outcome = self.admit(scopes, tokens, cost, self._clock(), self._wall())
        return await self._fetch(scopes, (1, tokens, cost, 1)) if outcome is None else outcome

    async def admit_within(
        self, scopes: Sequence[str], tokens: int, cost: int | None, patience: float
    ) -> Reservation | Exceeded:
        """Do as `admit_waiting`, and wait `patience` seconds at most where a limit is used up, in order of arrival.
        What cannot pass in that time is refused at once."""
        outcome = await self.admit_waiting(scopes, tokens, cost)
        if isinstance(outcome, Reservation) or outcome.hopeless(patience):
            return outcome
        units, named, places = (1, tokens, cost, 1), tuple(scopes), self._places(outcome.scope)
        self._patient[named] += 1
        try:
            return await self._lines.wait(outcome, patience, lambda: self._take_waiting(scopes, units), places)
        finally:
            self._patient[named] -= 1
            if not self._patient[named]:
                del self._patient[named]
            self._let_go()

    def try_target(
        self, scopes: Sequence[str], tokens: int, cost: int | None, now: float, wall: float
    ) -> Reservation | Exceeded | None:
        """Take from a deployment's limits, or return the one that has too little: another deployment may be asked
        instead. None: units have to be fetched, which `target_waiting` waits for."""
        return self._take(scopes, (1, tokens, cost, 1), now, wall)

    async def target_waiting(self, scopes: Sequence[str], tokens: int, cost: int | None) -> Reservation | Exceeded:
        """Do as `try_target`, and wait for units to be fetched."""
        return await self._take_waiting(scopes, (1, tokens, cost, 1))

    def facts(self, scopes: Sequence[str], now: float, wall: float) -> Facts:
        """Return the tightest limits of requests and of tokens, for a request that holds nothing."""
        return self.meters(scopes, now).facts(now, wall)

    def route_of(self, scope: str, now: float, wall: float) -> str | None:
        """Return the name by which a team's requests are answered by what it has spent, None for the one asked for."""
        state = self._scopes.get(scope)
        return None if state is None else state.route(now, wall)

    def periods(self, wall: float) -> Mapping[Period, tuple[int, int]]:
        """Return the calendar periods that are now, for the ledger to add up."""
        for clock in self.maker.clocks.values():
            clock.move(wall)
        return {period: (clock.start, clock.end) for period, clock in self.maker.clocks.items()}

    def set_back(self, wall: float) -> bool:
        """Return whether the wall clock is before the periods that are in force."""
        return any(clock.ahead(wall) for clock in self.maker.clocks.values())

    def load(
        self, period: Period, start: int, sums: Mapping[str, tuple[int, int, int]], mark: int, touched: int = 0
    ) -> None:
        """Do as `load_some`. The sums of all other scopes have not changed."""
        self.load_some(period, start, sums, mark, touched)
        unloaded = self.notes.unloaded
        for counter in [each for each in unloaded if each.clock.period is period and not self.unread(each)]:
            if not counter.unchanged(start, mark, touched):
                unloaded.discard(counter)

    def load_some(
        self, period: Period, start: int, sums: Mapping[str, tuple[int, int, int]], mark: int, touched: int = 0
    ) -> None:
        """Take the ledger's sums of a period by scope: requests, tokens, billionths of a USD. They hold all that this
        process settled up to `mark`, and maybe some of what it settled up to `touched`."""
        for scope, amounts in sums.items():
            state = self._scopes.get(scope) or self.user(scope)
            if state is None or not (state.limits.quotas or state.budgets):
                continue
            if not state.made:
                state.make(scope, self.maker, self._clock())
            state.load(period, start, amounts, mark, touched)

    def views(self, now: float, wall: float) -> Iterator[LimitView]:
        """Yield each limit and budget of the scopes that have been in use, with what is left."""
        # A copy: metrics are rendered in a thread.
        for scope, state in list(self._scopes.items()):
            for _, meter in state:
                yield from meter.views(scope, now, wall)

    def shares(self) -> Mapping[str, tuple[float, int]]:
        """Return how rates and places are divided, and among how many processes, to be assumed after a restart. As long
        as nobody answered, what was assumed at the start stays known. May be asked from any thread."""
        leases = self._leases
        if leases is None:
            return {}
        found = {} if leases.met else dict(self.maker.shares)
        now = self._clock()
        for state in list(self._scopes.values()):
            found.update(state.divisions(now))
        if (processes := leases.division) is not None:
            found[ROLL_CALL] = processes
        return found

    def _take(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Reservation | Exceeded | None:
        outcome = self._take_from(scopes, units, now, wall)
        return _reservation(outcome, units[1], units[2]) if isinstance(outcome, Meters) else outcome

    def _take_from(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Meters | Exceeded | None:
        """Take everything or nothing. Who waits for units comes before who asks now."""
        held = self.meters(scopes, now)
        if self._waiting and is_behind(held, units, now, wall):
            return None
        return held if held.attempt(units[1], units[2], now, wall) else self._refusal(scopes, units, now, wall)

    def _of_scope(self, scope: str, now: float) -> Meters:
        """Return what counts for a scope, made when it is first asked for."""
        state = self._scopes.get(scope) or self._former.get(scope) or self.user(scope)
        if state is None:
            return NOTHING
        if not state.made:
            state.make(scope, self.maker, now)
        return state

    def meters(self, scopes: Sequence[str], now: float) -> Meters:
        """Return what counts for all of these scopes, as long as the table is in force. Several are joined once for a
        table, not for each request."""
        if (known := self._joined.get(named := tuple(scopes))) is not None:
            return known
        every = [meters for scope in scopes if (meters := self._of_scope(scope, now)) is not NOTHING]
        if len(every) > 1:
            if is_user_scope(named[0]):  # there may be any number
                return joined(every)
            if len(self._joined) >= JOINED:
                self._joined.clear()
            both = self._joined[named] = joined(every)
            return both
        return every[0] if every else NOTHING

    def _refusal(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Exceeded | None:
        """Return the limit that a request waits for longest; None if units may yet be fetched for all that lack any."""
        lacking = list(self._lacking(scopes, units, now, wall))
        final = [each for each in lacking if not each[1][1].fetchable(units[each[1][0]], now)]  # type: ignore[arg-type]
        return self._longest(final, units, now, wall) if final else None

    def _lacking(
        self, scopes: Sequence[str], units: Units, now: float, wall: float
    ) -> Iterator[tuple[str, BoundMeter]]:
        """Yield what has too few units, with its scope."""
        for scope in scopes:
            for bound in self._of_scope(scope, now):
                if bound[1].lacks(units[bound[0]], now, wall):  # type: ignore[arg-type]  # as above
                    yield scope, bound

    def _longest(self, lacking: Sequence[tuple[str, BoundMeter]], units: Units, now: float, wall: float) -> Exceeded:
        """Return what is told of the limit that a request waits for longest, or of a cost that nobody knows."""
        longest, least = lacking[0], -1.0
        for each in lacking:
            _, (index, meter) = each
            meter.refused(units[index] or 0, now)
            wait = math.inf if units[index] is None else meter.wait(units[index], now, wall)  # type: ignore[arg-type]
            if wait > least:
                longest, least = each, wait
        scope, (index, meter) = longest
        return meter.exceeded(scope, units[index], now, wall)  # type: ignore[arg-type]  # as above

    async def _take_waiting(self, scopes: Sequence[str], units: Units) -> Reservation | Exceeded:
        """Take, waiting for units to be fetched but not in line."""
        outcome = self._take(scopes, units, self._clock(), self._wall())
        return await self._fetch(scopes, units) if outcome is None else outcome

    async def _fetch(self, scopes: Sequence[str], units: Units) -> Reservation | Exceeded:
        until = self._clock() + LONGEST
        waiter = LeaseWaiter(scopes, units, asyncio.get_running_loop().create_future(), until)
        self._waiting.append(waiter)
        self._ask_for(waiter)
        try:
            return await waiter.outcome
        except asyncio.CancelledError:
            if waiter.outcome.done() and not waiter.outcome.cancelled():
                outcome = waiter.outcome.result()
                if isinstance(outcome, Reservation):
                    outcome.release()
            raise
        finally:
            waiter.let_go()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            self._let_go()

    def _waited_for(self) -> frozenset[str]:
        """Return the scopes that requests wait for now."""
        in_line = (scope for named in self._patient for scope in named)
        return frozenset([*in_line, *(scope for waiter in self._waiting for scope in waiter.scopes)])

    def _let_go(self) -> None:
        """Forget the scopes that the table no longer has and nobody waits for any more."""
        if not self._former:
            return
        waited = self._waited_for()
        for scope in [each for each in self._former if each not in waited]:
            self._former.pop(scope).end(self.maker)
            self._joined.clear()

    def _ask_for(self, waiter: LeaseWaiter) -> None:
        """Have the leases fetch what a request lacks, also beside what is fetched for those before it: at once, or at
        the next turn what others have to give back, and what was asked for in vain."""
        leases = self._leases
        if leases is None:
            return
        now, wall, meters = self._clock(), self._wall(), self.meters(waiter.scopes, self._clock())
        for index, meter in meters:
            units = waiter.units[index]
            if isinstance(meter, LeasedRate | LeasedPlaces | SharedSpending) and (
                meter.lacks(units, now, wall)  # type: ignore[arg-type]  # as above
                or (meter not in waiter.claims and lacks_beside(meter, meter.waiting, units, now, wall))
            ):
                waiter.claim(meter, units or 0)
                if waiter.rounds >= ROUNDS or (isinstance(meter, SharedSpending) and meter.hopes(now)):
                    leases.due(meter)
                else:
                    leases.wake(meter)

    def _answered(self) -> None:
        """Try those who wait again, in order of arrival. One is refused if an answer says that there is too little of a
        limit for it, or after LONGEST."""
        if not self._waiting:
            return
        now, wall = self._clock(), self._wall()
        waiting, self._waiting = self._waiting, deque()
        ahead: dict[Leased, int] = {}
        still: deque[LeaseWaiter] = deque()
        for waiter in waiting:
            if waiter.outcome.done():
                continue
            outcome = self._try_again(waiter, ahead, now, wall)
            if outcome is None:
                still.append(waiter)
                for lease, units in waiter.claims.items():
                    ahead[lease] = ahead.get(lease, 0) + units
            else:
                waiter.let_go()
                waiter.outcome.set_result(outcome)
        self._waiting = still

    def _try_again(
        self, waiter: LeaseWaiter, ahead: dict[Leased, int], now: float, wall: float
    ) -> Reservation | Exceeded | None:
        """Take for one who waits, unless that would take what is fetched for those ahead of it."""
        scopes, units, late = waiter.scopes, waiter.units, now >= waiter.until
        if ahead and not late and is_after(ahead, self.meters(scopes, now), units, now, wall):
            return None
        outcome = self._take(scopes, units, now, wall)
        if outcome is not None:
            return outcome
        if late:
            return self._longest(list(self._lacking(scopes, units, now, wall)), units, now, wall)
        waiter.rounds += 1
        self._ask_for(waiter)
        return None

    def _places(self, scope: str) -> Places | None:
        state = self._scopes.get(scope) or self.user(scope)
        return state.places[0] if state is not None and state.places else None


def _reservation(meters: Meters, tokens: int, cost: int | None) -> Reservation:
    return FREE if meters is NOTHING else Reservation(meters, tokens, cost)
