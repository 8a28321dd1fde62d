"""The end users of teams, each with its own limits. The number of scopes is bounded, and each is made when a user is
first seen.

Clients may name any number of users, so a process counts only the last MAX_USERS. If there are more, the process
forgets, among the oldest users, the one that has used the least, but never a user with a request in flight. The
spending of a forgotten user is read from the ledger when the user comes back. Without a ledger it begins at zero, so
users with high use are forgotten last.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from itertools import islice
from typing import Final

from proxy.limits.calendar_period import PeriodClock
from proxy.limits.limit import EachUser, Period, is_user_scope
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.limit_views import LimitView
from proxy.limits.scope_state import ScopeState
from proxy.limits.spending import SpendingCounter

MAX_USERS: Final = 10_000
"""The most users that a process counts at a time. Each takes about 2 KB."""

OLDEST_COMPARED: Final = 16
"""The number of oldest users that are compared. The one that has used the least is forgotten, and the others become the
newest."""

NO_RULE: Final = EachUser()


class UserState(ScopeState):
    """The meters of one end user, with their rule and calendar."""

    __slots__ = ("clock", "rule")

    def __init__(self, rule: EachUser, clock: PeriodClock) -> None:
        super().__init__(rule.limits, rule.budgets)
        self.rule = rule
        self.clock = clock

    @property
    def busy(self) -> bool:
        """Whether a request in flight holds any unit."""
        return any([slots.used for slots in self.slots]) or any([each.reserved for each in self.counters])

    def used(self, now: float, wall: float) -> float:
        """Return the largest used part of a limit, plus 1 while the ledger may not include all of its use."""
        parts = [0.0]
        for rate in self.rates:
            parts.append(1 - rate.remaining(now, wall) / max(1, rate.rule.rate.burst))
        for counter in self.counters:
            if wall < counter.ends:
                parts.append(counter.settled / counter.rules.limits[0].amount + (1 if counter.own else 0))
        return max(parts)


class UserScopes:
    """The scopes of end users, in which the registry looks up a user.

    - `known` returns whether the ledger's sums of a scope have been read.
    - `learn` waits until the sums are read, for at most the given number of seconds, and returns whether they were
      read. Without a ledger there is nothing to read.
    - `gone` is called with a scope that is forgotten, or whose counters changed.
    - `refuses_unread`: requests under calendar limits are refused until the sums have been read.
    """

    def __init__(
        self, registry: LimitRegistry, now: Callable[[], float], wall: Callable[[], float], most: int = MAX_USERS
    ) -> None:
        self.rules: dict[str, EachUser] = {}
        self.known: Callable[[str], bool] = lambda scope: True
        self.learn: Callable[[str, float], Awaitable[bool]] = _nothing_to_learn
        self.gone: Callable[[str], None] = lambda scope: None
        self.refuses_unread = False
        self._registry = registry
        self._now = now
        self._wall = wall
        self._most = most
        self._states: OrderedDict[str, UserState] = OrderedDict()
        self._passed_unknown: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._states)

    def use(self, rules: Mapping[str, EachUser]) -> None:
        """Apply the rules of a configuration, by team. Users whose rule changed keep their counts."""
        before, self._registry.user, self._registry.unread = self.rules, self.find, self._unread
        self.rules = {team: known if (known := before.get(team)) == rule else rule for team, rule in rules.items()}
        ended = [scope for scope in self._states if _team_of(scope) not in self.rules]
        for scope in ended:
            self._forget(scope)
        leases = self._registry.maker.leases
        if self.rules and leases is not None:
            leases.join()

    def find(self, scope: str) -> UserState | None:
        """Return the state of a user; `None` if the user has no limits or the scope belongs to no user."""
        state = self._states.get(scope)
        if state is None and self.rules and (rule := self.rules.get(_team_of(scope))) is not None:
            state = self.touch(scope, rule)
        return state

    def touch(self, scope: str, rule: EachUser) -> UserState:
        """Return the state of a user by a rule, and make it the newest."""
        clock, state = self._registry.maker.clocks[Period.DAY], self._states.get(scope)
        if state is not None and state.rule is rule and state.clock is clock:
            self._states.move_to_end(scope)
            return state
        if state is None:
            self._make_room()
        made = UserState(rule, clock)
        made.make(scope, self._registry.maker, self._now(), state)
        self._states[scope] = made
        self._states.move_to_end(scope)
        if state is not None and (state.clock is not clock or not set(made.counters) <= set(state.counters)):
            self.gone(scope)  # The ledger's sums that were read belong to other periods.
        return made

    async def learned(self, scope: str, longest: float) -> bool:
        """Call `learn`, and note a user whose sums could not be read, because its requests may be admitted without
        them."""
        known = await self.learn(scope, longest)
        if not known and scope in self._states:
            self._passed_unknown[scope] = None
        return known

    def unknown(self, most: int) -> list[str]:
        """Return the users that were admitted without their sums and whose sums have not been read since."""
        for scope in [each for each in self._passed_unknown if each not in self._states or self.known(each)]:
            del self._passed_unknown[scope]
        return list(islice(self._passed_unknown, most))

    def views(self, now: float, wall: float) -> Iterator[LimitView]:
        """Yield each limit and budget of the counted users, with the remaining amount."""
        # The loop runs over a copy, because reports are made in a thread.
        for scope, state in list(self._states.items()):
            for _, meter in state:
                yield from meter.views(scope, now, wall)

    def _unread(self, counter: SpendingCounter) -> bool:
        """Return whether a counter belongs to a user whose sums have not been read."""
        state = self._states.get(counter.scope)
        return state is not None and counter in state.counters and not self.known(counter.scope)

    def _make_room(self) -> None:
        """Forget one user if there are too many. More users than the limit stay only while they have requests in
        flight."""
        if len(self._states) < self._most:
            return
        now, wall, waited = self._now(), self._wall(), self._registry.lines
        oldest = list(islice(self._states.items(), OLDEST_COMPARED))
        idle = [(scope, state) for scope, state in oldest if not state.busy and scope not in waited]
        least = min(idle, key=lambda each: each[1].used(now, wall), default=None)
        for scope, _ in oldest:
            self._states.move_to_end(scope)
        if least is not None:
            self._forget(least[0])

    def _forget(self, scope: str) -> None:
        self._states.pop(scope).end(self._registry.maker)
        self._passed_unknown.pop(scope, None)
        self.gone(scope)


def _team_of(scope: str) -> str:
    """Return the team of a user's scope, empty for another scope."""
    return scope.partition(" ")[2].rpartition("/")[0] if is_user_scope(scope) else ""


async def _nothing_to_learn(scope: str, longest: float) -> bool:
    await asyncio.sleep(0)
    return True
