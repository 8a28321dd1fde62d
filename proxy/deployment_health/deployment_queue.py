"""The running requests of one deployment, and the queue for a slot if its concurrency is limited."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from providers.failure import Failure, FailureKind, UpstreamError
from proxy.deployment_health.concurrency_limit import ConcurrencyRules, Limit, Limited


@dataclass(slots=True, eq=False)
class FairQueue:
    """The requests that wait for a slot, by team; each team's requests in order of arrival. A waiter's future gets True
    for a slot, and False if it has waited too long."""

    length: int = 0
    _came: int = 0
    _teams: dict[str, OrderedDict[asyncio.Future[bool], int]] = field(default_factory=dict)

    def add(self, team: str, waiter: asyncio.Future[bool]) -> None:
        """Add a waiter behind all others."""
        self._came += 1
        self.length += 1
        self._teams.setdefault(team, OrderedDict())[waiter] = self._came

    def remove(self, team: str, waiter: asyncio.Future[bool]) -> None:
        """Remove a waiter, if it is there."""
        waiters = self._teams.get(team)
        if waiters is None or waiters.pop(waiter, None) is None:
            return
        self.length -= 1
        if not waiters:
            del self._teams[team]

    def first(self, crowds: Callable[[str], bool]) -> tuple[str, asyncio.Future[bool]]:
        """Return the waiter that has waited longest, preferring teams that do not crowd out others."""
        polite = [team for team in self._teams if not crowds(team)]
        _, team = min((next(iter(self._teams[team].values())), team) for team in polite or self._teams)
        return team, next(iter(self._teams[team]))

    def last_of_longest(self, team: str) -> tuple[str, asyncio.Future[bool]] | None:
        """Return the last waiter of the team with the most waiters; `None` if `team` would have as many after adding
        one."""
        longest = max(self._teams, key=lambda each: len(self._teams[each]), default=team)
        if len(self._teams.get(longest, ())) <= len(self._teams.get(team, ())) + 1:
            return None
        return longest, next(reversed(self._teams[longest]))


class DeploymentQueue:
    """The slots of one deployment. Each `take` that returns must be followed by exactly one `release`, for the same
    team.

    A slot passes from its holder directly to the waiter that has waited longest, so that no later request can take it.
    But while other teams wait, no team gets more than half of the slots or fills the queue.
    """

    __slots__ = ("_held", "_queue", "_rules", "in_flight", "limit")

    def __init__(self, rules: ConcurrencyRules, bound: int | None = None) -> None:
        self.limit = Limit(rules, bound)
        self.in_flight = 0
        self._rules = rules
        self._held: dict[str, int] = {}
        self._queue = FairQueue()

    @property
    def waiting(self) -> int:
        """The number of requests that wait for a slot."""
        return self._queue.length

    def limited(self, now: float) -> Limited | None:
        """Return the limit and its use; `None` if there is no limit."""
        seen = self.limit.seen(now)
        return None if seen is None else Limited(*seen, self.in_flight, self.waiting)

    def bind(self, bound: int | None) -> None:
        """Set the operator's limit; `None` removes it."""
        self.limit.bind(bound)
        self._give_slots()

    def take_free(self, team: str) -> bool:
        """Take a slot if one is free and no request waits for it. Return whether a slot was taken."""
        if self.in_flight >= self.limit.current or self._queue.length:
            return False
        self.in_flight += 1  # the same as `_enter`, without the call
        self._held[team] = self._held.get(team, 0) + 1
        return True

    async def take(self, team: str) -> None:
        """Take a slot, or wait for one. Raises UpstreamError BUSY if too many requests wait, or if no slot came in
        time."""
        if self.take_free(team):
            return
        if self.limit.only_team not in (None, team):
            self.limit.forget()
        self._reconsider()
        if self._below_share(team):
            self._enter(team)
            return
        await self._wait(team)

    def _reconsider(self) -> None:
        """Give out the slots that became free because the limit has risen or lapsed."""
        self.limit.lapse(asyncio.get_running_loop().time())
        self._give_slots()

    def _below_share(self, team: str) -> bool:
        """Return whether a team may have one of the slots beyond a learned limit. There is one such slot for every four
        within the limit, because the teams that hold all other slots hold them until their responses end."""
        teams = len(self._held) + (team not in self._held)
        limit = self.limit
        most = min(limit.current * 5 // 4, limit.bound)
        return teams > 1 and self._held.get(team, 0) < limit.current // teams and self.in_flight < most

    def release(self, team: str) -> None:
        """Give a slot back."""
        self.in_flight -= 1
        left = self._held[team] - 1
        if left:
            self._held[team] = left
        else:
            del self._held[team]
        if self._queue.length:
            self._give_slots()

    def _enter(self, team: str) -> None:
        self.in_flight += 1
        self._held[team] = self._held.get(team, 0) + 1

    async def _wait(self, team: str) -> None:
        if self.in_flight < self.limit.current:
            self._enter(team)
            return
        self._make_room(team)
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._queue.add(team, waiter)
        timer = loop.call_later(self._rules.wait, self._time_out, team, waiter)
        try:
            if not await waiter:
                raise _full()
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.result():
                self.release(team)  # the slot came just when the task was cancelled
            raise
        finally:
            timer.cancel()
            self._queue.remove(team, waiter)

    def _make_room(self, team: str) -> None:
        """Remove a waiter of the team that fills the queue, if the queue is full. Raises UpstreamError BUSY if there is
        no such waiter."""
        if self._queue.length < self._rules.queue * self.limit.current:
            return
        found = self._queue.last_of_longest(team)
        if found is None:
            raise _full()
        self._refuse_waiter(*found)

    def _time_out(self, team: str, waiter: asyncio.Future[bool]) -> None:
        self._reconsider()
        self._refuse_waiter(team, waiter)

    def _refuse_waiter(self, team: str, waiter: asyncio.Future[bool]) -> None:
        if not waiter.done():
            self._queue.remove(team, waiter)
            waiter.set_result(False)

    def _crowds_out(self, team: str) -> bool:
        return 2 * (self._held.get(team, 0) + 1) > self.limit.current

    def _give_slots(self) -> None:
        while self._queue.length and self.in_flight < self.limit.current:
            team, waiter = self._queue.first(self._crowds_out)
            self._queue.remove(team, waiter)
            if not waiter.done():
                self._enter(team)
                waiter.set_result(True)


def _full() -> UpstreamError:
    message = "The deployment has reached its limit of concurrent requests."
    return UpstreamError(Failure(FailureKind.BUSY, message, retry_after=1.0, unsent=True))
