"""All limits of a process. A request takes from all its limits or from none. Time is an argument of all methods that do
not wait."""

import asyncio
import math
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.concurrency import LeasedSlots, Slots
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import UNLIMITED, Limits, Period, ScopeBudget, is_user_scope
from proxy.limits.limit_views import Exceeded, LimitView
from proxy.limits.reservation import NO_METERS, BoundMeter, HeaderFacts, Meters, Reservation, join_meters
from proxy.limits.scope_state import MeterMaker, ScopeState
from proxy.limits.shared_spending import SharedSpending
from proxy.limits.spending import SpendingCounter, SpendingNotes
from proxy.limits.waiting_lines import (
    LONGEST_FETCH,
    Leased,
    LeaseWaiter,
    Units,
    WaitingLine,
    WaitingLines,
    lacks_beside,
    would_overtake,
    would_overtake_earlier,
)
from proxy.shared_state.membership import MEMBERSHIP_KEY

CALENDAR: Final = (Period.HOUR, Period.DAY, Period.WEEK, Period.MONTH)

EXCHANGES_AT_ONCE: Final = 2
"""The most exchanges that a waiting request causes at once. Then it waits for regular ones."""

MAX_JOINED: Final = 4096
"""The most groups of scopes whose joined meters are cached."""

NOTHING_RESERVED: Final = Reservation(NO_METERS, 0, None)
"""The reservation of a request without limits."""


class LimitRegistry:
    """All limits of a process. `clock` is the event loop's time, `wall` the seconds since 1970. `leases` is `None` if
    this process counts by itself. `shares` is the division of limits before a restart. `maker` makes the meters, and
    `user` finds the state of an end user. `unread` returns whether the end user of a counter has sums that were not
    read from the ledger yet."""

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
        if leases is not None and (known := self.maker.shares.get(MEMBERSHIP_KEY)):
            leases.assume(known[1])
        self._scopes: dict[str, ScopeState] = {}
        self._former: dict[str, ScopeState] = {}
        self._patient: Counter[tuple[str, ...]] = Counter()
        self._joined: dict[tuple[str, ...], Meters] = {}
        self._lines = WaitingLines(clock)
        self._waiting: deque[LeaseWaiter] = deque()
        if leases is not None:
            leases.on_exchange = self._retry_waiting

    @property
    def lines(self) -> Mapping[str, WaitingLine]:
        """The waiting requests by scope: always the same object, empty if no request waits."""
        return self._lines.lines

    @property
    def alone(self) -> bool:
        """Whether this process counts by its share, because the coordinator does not respond or holds foreign data."""
        return self._leases is not None and self._leases.divided

    def use(
        self, limits: Mapping[str, Limits], budgets: Mapping[str, tuple[ScopeBudget, ...]], zone: tzinfo, now: float
    ) -> None:
        """Apply the limits of a configuration. Scopes that stay continue with the units they have counted. Removed
        scopes end with their last request, and still hold for requests that already wait for them."""
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
        """Take one request, its tokens and its cost from all limits of `scopes`, or from none. Return `None` if units
        have to be fetched: `admit_waiting` waits for them. No request overtakes one that waits for these scopes."""
        outcome = self.begin(scopes, tokens, cost, now, wall)
        return _reservation(outcome, tokens, cost) if isinstance(outcome, Meters) else outcome

    def begin(
        self, scopes: Sequence[str], tokens: int, cost: int | None, now: float, wall: float
    ) -> Meters | Exceeded | None:
        """Do as `admit`, and return the meters that the request was taken from. The caller makes and ends the
        reservation."""
        if self._lines.lines:
            for scope in scopes:
                if line := self._lines.lines.get(scope):
                    return line.last
        return self._take_from(scopes, (1, tokens, cost, 1), now, wall)

    async def admit_waiting(self, scopes: Sequence[str], tokens: int, cost: int | None) -> Reservation | Exceeded:
        """Take a request as `admit` does, and wait until units have been fetched, usually for one exchange below 1
        ms."""
        outcome = self.admit(scopes, tokens, cost, self._clock(), self._wall())
        return await self._fetch(scopes, (1, tokens, cost, 1)) if outcome is None else outcome

    async def admit_within(
        self, scopes: Sequence[str], tokens: int, cost: int | None, patience: float
    ) -> Reservation | Exceeded:
        """Do as `admit_waiting`, and also wait up to `patience` seconds for a limit that is used up. Requests pass in
        order of arrival. A request that cannot pass in that time is refused at once."""
        outcome = await self.admit_waiting(scopes, tokens, cost)
        if isinstance(outcome, Reservation) or outcome.hopeless(patience):
            return outcome
        units, named, slots = (1, tokens, cost, 1), tuple(scopes), self._slots(outcome.scope)
        self._patient[named] += 1
        try:
            return await self._lines.wait(outcome, patience, lambda: self._take_waiting(scopes, units), slots)
        finally:
            self._patient[named] -= 1
            if not self._patient[named]:
                del self._patient[named]
            self._end_former()

    def try_target(
        self, scopes: Sequence[str], tokens: int, cost: int | None, now: float, wall: float
    ) -> Reservation | Exceeded | None:
        """Take from the limits of a deployment, or return the limit that lacks units, so that another deployment is
        tried. Return `None` if units have to be fetched: `target_waiting` waits for them."""
        return self._take(scopes, (1, tokens, cost, 1), now, wall)

    async def target_waiting(self, scopes: Sequence[str], tokens: int, cost: int | None) -> Reservation | Exceeded:
        """Do as `try_target`, and wait until units have been fetched."""
        return await self._take_waiting(scopes, (1, tokens, cost, 1))

    def facts(self, scopes: Sequence[str], now: float, wall: float) -> HeaderFacts:
        """Return the tightest limits of requests and of tokens, for a request that holds nothing."""
        return self.meters(scopes, now).facts(now, wall)

    def route_of(self, scope: str, now: float, wall: float) -> str | None:
        """Return the model name that a team's budgets send requests to; `None` to keep the requested name."""
        state = self._scopes.get(scope)
        return None if state is None else state.route(now, wall)

    def periods(self, wall: float) -> Mapping[Period, tuple[int, int]]:
        """Return the current calendar periods, for which the ledger sums up the use."""
        for clock in self.maker.clocks.values():
            clock.move(wall)
        return {period: (clock.start, clock.end) for period, clock in self.maker.clocks.items()}

    def set_back(self, wall: float) -> bool:
        """Return whether the wall clock was set back to before the current periods."""
        return any(clock.ahead(wall) for clock in self.maker.clocks.values())

    def load(
        self, period: Period, start: int, sums: Mapping[str, tuple[int, int, int]], mark: int, touched: int = 0
    ) -> None:
        """Do as `load_some`, and note that the sums of all other scopes are unchanged."""
        self.load_some(period, start, sums, mark, touched)
        unloaded = self.notes.unloaded
        for counter in [each for each in unloaded if each.clock.period is period and not self.unread(each)]:
            if not counter.unchanged(start, mark, touched):
                unloaded.discard(counter)

    def load_some(
        self, period: Period, start: int, sums: Mapping[str, tuple[int, int, int]], mark: int, touched: int = 0
    ) -> None:
        """Load the ledger's sums of a period by scope: requests, tokens, billionths of a USD. The sums include all
        units settled by this process up to `mark`, and may include some units settled up to `touched`."""
        for scope, amounts in sums.items():
            state = self._scopes.get(scope) or self.user(scope)
            if state is None or not (state.limits.quotas or state.budgets):
                continue
            if not state.made:
                state.make(scope, self.maker, self._clock())
            state.load(period, start, amounts, mark, touched)

    def views(self, now: float, wall: float) -> Iterator[LimitView]:
        """Yield the current view of each limit and budget of the scopes that have been used."""
        # A copy, because metrics are rendered in a thread.
        for scope, state in list(self._scopes.items()):
            for _, meter in state:
                yield from meter.views(scope, now, wall)

    def shares(self) -> Mapping[str, tuple[float, int]]:
        """Return the division of rates and slots and the number of processes, to be used after a restart. Until the
        first reply, this is the division that was used before this start. Safe to call from any thread."""
        leases = self._leases
        if leases is None:
            return {}
        found = {} if leases.has_answered else dict(self.maker.shares)
        now = self._clock()
        for state in list(self._scopes.values()):
            found.update(state.divisions(now))
        if (processes := leases.division) is not None:
            found[MEMBERSHIP_KEY] = processes
        return found

    def _take(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Reservation | Exceeded | None:
        outcome = self._take_from(scopes, units, now, wall)
        return _reservation(outcome, units[1], units[2]) if isinstance(outcome, Meters) else outcome

    def _take_from(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Meters | Exceeded | None:
        """Take everything or nothing. Requests that wait for units come before new ones."""
        held = self.meters(scopes, now)
        if self._waiting and would_overtake(held, units, now, wall):
            return None
        return held if held.attempt(units[1], units[2], now, wall) else self._refusal(scopes, units, now, wall)

    def _of_scope(self, scope: str, now: float) -> Meters:
        """Return the meters of a scope, made when it is first used."""
        state = self._scopes.get(scope) or self._former.get(scope) or self.user(scope)
        if state is None:
            return NO_METERS
        if not state.made:
            state.make(scope, self.maker, now)
        return state

    def meters(self, scopes: Sequence[str], now: float) -> Meters:
        """Return the joined meters of all these scopes. They are cached until the next configuration."""
        if (known := self._joined.get(named := tuple(scopes))) is not None:
            return known
        every = [meters for scope in scopes if (meters := self._of_scope(scope, now)) is not NO_METERS]
        if len(every) > 1:
            if is_user_scope(named[0]):  # Not cached, because the number of users is unlimited.
                return join_meters(every)
            if len(self._joined) >= MAX_JOINED:
                self._joined.clear()
            both = self._joined[named] = join_meters(every)
            return both
        return every[0] if every else NO_METERS

    def _refusal(self, scopes: Sequence[str], units: Units, now: float, wall: float) -> Exceeded | None:
        """Return the limit that a request waits for longest, `None` if units may be fetched for all that lack any."""
        lacking = list(self._lacking(scopes, units, now, wall))
        final = [each for each in lacking if not each[1][1].fetchable(units[each[1][0]], now)]  # type: ignore[arg-type]
        return self._longest(final, units, now, wall) if final else None

    def _lacking(
        self, scopes: Sequence[str], units: Units, now: float, wall: float
    ) -> Iterator[tuple[str, BoundMeter]]:
        """Yield the meters with too few units and their scopes."""
        for scope in scopes:
            for bound in self._of_scope(scope, now):
                if bound[1].lacks(units[bound[0]], now, wall):  # type: ignore[arg-type]  # as above
                    yield scope, bound

    def _longest(self, lacking: Sequence[tuple[str, BoundMeter]], units: Units, now: float, wall: float) -> Exceeded:
        """Return the details of the limit that a request waits for longest, or of an unknown cost."""
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
        """Take the units of a request, and wait until they have been fetched, but not in a line."""
        outcome = self._take(scopes, units, self._clock(), self._wall())
        return await self._fetch(scopes, units) if outcome is None else outcome

    async def _fetch(self, scopes: Sequence[str], units: Units) -> Reservation | Exceeded:
        until = self._clock() + LONGEST_FETCH
        waiter = LeaseWaiter(scopes, units, asyncio.get_running_loop().create_future(), until)
        self._waiting.append(waiter)
        self._request_units(waiter)
        try:
            return await waiter.outcome
        except asyncio.CancelledError:
            if waiter.outcome.done() and not waiter.outcome.cancelled():
                outcome = waiter.outcome.result()
                if isinstance(outcome, Reservation):
                    outcome.release()
            raise
        finally:
            waiter.release_claims()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            self._end_former()

    def _waited_for(self) -> frozenset[str]:
        """Return the scopes that requests wait for now."""
        in_line = (scope for named in self._patient for scope in named)
        return frozenset([*in_line, *(scope for waiter in self._waiting for scope in waiter.scopes)])

    def _end_former(self) -> None:
        """End removed scopes that no request waits for any longer."""
        if not self._former:
            return
        waited = self._waited_for()
        for scope in [each for each in self._former if each not in waited]:
            self._former.pop(scope).end(self.maker)
            self._joined.clear()

    def _request_units(self, waiter: LeaseWaiter) -> None:
        """Make the leases fetch the lacking units, in addition to the units of earlier requests. They do so at once, or
        in the next round if others may return units or after EXCHANGES_AT_ONCE exchanges."""
        leases = self._leases
        if leases is None:
            return
        now, wall, meters = self._clock(), self._wall(), self.meters(waiter.scopes, self._clock())
        for index, meter in meters:
            units = waiter.units[index]
            if isinstance(meter, LeasedRate | LeasedSlots | SharedSpending) and (
                meter.lacks(units, now, wall)  # type: ignore[arg-type]  # as above
                or (meter not in waiter.claims and lacks_beside(meter, meter.waiting, units, now, wall))
            ):
                waiter.claim(meter, units or 0)
                if waiter.rounds >= EXCHANGES_AT_ONCE or (
                    isinstance(meter, SharedSpending) and meter.awaits_returns(now)
                ):
                    leases.mark_due(meter)
                else:
                    leases.wake(meter)

    def _retry_waiting(self) -> None:
        """Try the waiting requests again, in order of arrival. A request is refused if a reply reports too few units
        for it, or after LONGEST_FETCH seconds."""
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
                waiter.release_claims()
                waiter.outcome.set_result(outcome)
        self._waiting = still

    def _try_again(
        self, waiter: LeaseWaiter, ahead: dict[Leased, int], now: float, wall: float
    ) -> Reservation | Exceeded | None:
        """Take units for a waiting request, unless they were fetched for earlier requests."""
        scopes, units, late = waiter.scopes, waiter.units, now >= waiter.until
        if ahead and not late and would_overtake_earlier(ahead, self.meters(scopes, now), units, now, wall):
            return None
        outcome = self._take(scopes, units, now, wall)
        if outcome is not None:
            return outcome
        if late:
            return self._longest(list(self._lacking(scopes, units, now, wall)), units, now, wall)
        waiter.rounds += 1
        self._request_units(waiter)
        return None

    def _slots(self, scope: str) -> Slots | None:
        state = self._scopes.get(scope) or self.user(scope)
        return state.slots[0] if state is not None and state.slots else None


def _reservation(meters: Meters, tokens: int, cost: int | None) -> Reservation:
    return NOTHING_RESERVED if meters is NO_METERS else Reservation(meters, tokens, cost)
