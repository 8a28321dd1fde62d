"""Who has a request under way at one deployment, and who waits for a place where there is a limit. Never knows why a
place is wanted, or how the limit came about.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from providers.failure import Failure, FailureKind, UpstreamError
from proxy.concurrency_limit import BulkheadRules, Limit, Limited


class Line:
    """Who waits for a place, by team, each team's in the order they came. What a waiter waits for is True with a place
    and False at the end of its patience."""

    __slots__ = ("_came", "_teams", "length")

    def __init__(self) -> None:
        self._teams: dict[str, OrderedDict[asyncio.Future[bool], int]] = {}
        self._came = 0
        self.length = 0

    def add(self, team: str, waiter: asyncio.Future[bool]) -> None:
        """Another one, behind all others."""
        self._came += 1
        self.length += 1
        self._teams.setdefault(team, OrderedDict())[waiter] = self._came

    def remove(self, team: str, waiter: asyncio.Future[bool]) -> None:
        """It waits no longer; nothing happens where it did not."""
        waiters = self._teams.get(team)
        if waiters is None or waiters.pop(waiter, None) is None:
            return
        self.length -= 1
        if not waiters:
            del self._teams[team]

    def first(self, crowds: Callable[[str], bool]) -> tuple[str, asyncio.Future[bool]]:
        """Who waits longest, of the teams that do not crowd the others out while there is one."""
        polite = [team for team in self._teams if not crowds(team)]
        _, team = min((next(iter(self._teams[team].values())), team) for team in polite or self._teams)
        return team, next(iter(self._teams[team]))

    def last_of_longest(self, team: str) -> tuple[str, asyncio.Future[bool]] | None:
        """Who came last of the team with the most waiters, unless this one would have as many with another."""
        longest = max(self._teams, key=lambda each: len(self._teams[each]), default=team)
        if len(self._teams.get(longest, ())) <= len(self._teams.get(team, ())) + 1:
            return None
        return longest, next(reversed(self._teams[longest]))


class Bulkhead:
    """The places of one deployment, of which the operator may have set a bound. Each `take` that returns is followed by
    exactly one `release`, for the same team.

    A place is handed from its holder to the one who waits longest and is never free in between, so nobody overtakes,
    but for this: while others wait, no team gets more than half of the places, nor keeps others out of the line.
    """

    __slots__ = ("_held", "_line", "_rules", "in_flight", "limit")

    def __init__(self, rules: BulkheadRules, bound: int | None = None) -> None:
        self.limit = Limit(rules, bound)
        self.in_flight = 0
        self._rules = rules
        self._held: dict[str, int] = {}
        self._line = Line()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._line.length

    def limited(self, now: float) -> Limited | None:
        """What there is to say of its limit; None where it has none."""
        seen = self.limit.seen(now)
        return None if seen is None else Limited(*seen, self.in_flight, self.waiting)

    def bind(self, bound: int | None) -> None:
        """The operator's word from now on; None takes it back."""
        self.limit.bind(bound)
        self._hand_out()

    async def take(self, team: str) -> None:
        """Take a place, or wait for one. Raises UpstreamError BUSY when too many wait or none came in time."""
        if self.in_flight < self.limit.current and not self._line.length:
            self._enter(team)
            return
        if self.limit.lone not in (None, team):
            self.limit.forget()
        self._reconsider()
        if self._below_share(team):
            self._enter(team)
            return
        await self._wait(team)

    def _reconsider(self) -> None:
        """The limit may have risen since the last place came back, or hold no longer."""
        self.limit.lapse(asyncio.get_running_loop().time())
        self._hand_out()

    def _below_share(self, team: str) -> bool:
        """Whether a team may have one of the places beyond a learned limit, of which there is one for every four within
        it: those who hold all the others keep them for as long as their answers take."""
        teams = len(self._held) + (team not in self._held)
        limit = self.limit
        most = min(limit.current * 5 // 4, limit.bound)
        return teams > 1 and self._held.get(team, 0) < limit.current // teams and self.in_flight < most

    def release(self, team: str) -> None:
        """Give the place back."""
        self.in_flight -= 1
        left = self._held[team] - 1
        if left:
            self._held[team] = left
        else:
            del self._held[team]
        if self._line.length:
            self._hand_out()

    def _enter(self, team: str) -> None:
        self.in_flight += 1
        self._held[team] = self._held.get(team, 0) + 1

    async def _wait(self, team: str) -> None:
        if self.in_flight < self.limit.current:
            self._enter(team)
            return
        self._make_room(team)
        loop = asyncio.get_running_loop()
        place: asyncio.Future[bool] = loop.create_future()
        self._line.add(team, place)
        patience = loop.call_later(self._rules.wait, self._lose_patience, team, place)
        try:
            if not await place:
                raise _full()
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.result():
                self.release(team)  # it came in the moment in which its taker was cancelled
            raise
        finally:
            patience.cancel()
            self._line.remove(team, place)

    def _make_room(self, team: str) -> None:
        """Raises UpstreamError BUSY where the line is full, unless one who waits is of a team that has filled it."""
        if self._line.length < self._rules.queue * self.limit.current:
            return
        found = self._line.last_of_longest(team)
        if found is None:
            raise _full()
        self._give_up(*found)

    def _lose_patience(self, team: str, place: asyncio.Future[bool]) -> None:
        self._reconsider()
        self._give_up(team, place)

    def _give_up(self, team: str, place: asyncio.Future[bool]) -> None:
        if not place.done():
            self._line.remove(team, place)
            place.set_result(False)

    def _crowds(self, team: str) -> bool:
        return 2 * (self._held.get(team, 0) + 1) > self.limit.current

    def _hand_out(self) -> None:
        """Give what is free to those who wait longest."""
        while self._line.length and self.in_flight < self.limit.current:
            team, place = self._line.first(self._crowds)
            self._line.remove(team, place)
            if not place.done():
                self._enter(team)
                place.set_result(True)


def _full() -> UpstreamError:
    message = "The deployment has as many requests under way as it takes."
    return UpstreamError(Failure(FailureKind.BUSY, message, retry_after=1.0, unsent=True))
