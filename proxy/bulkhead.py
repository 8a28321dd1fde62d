"""How many requests one deployment has under way, and who waits for a place. Never knows why a place is wanted.

Nobody waits until the operator has said how many there may be, or the deployment that it has too much. What it says is
learned by AIMD on loss: the length of answers rules how long an LLM takes, so a limit that followed latency would take
long answers for congestion.
"""

import asyncio
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from providers.failure import Failure, FailureKind, UpstreamError

UNLIMITED: Final = sys.maxsize
"""More requests than there can be."""

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class BulkheadRules:
    """How a deployment's limit on requests at once is learned, and how long a place is waited for.

    When it says that it has too much, the limit is `shrink` times what it has under way, and after that `shrink` times
    itself: once in `shrink_every` seconds, for requests begun since, and never below `least`. With no more than that
    under way it is not their number, and nothing is learned. For each `grow_every` seconds in which requests went well
    the limit grows by the share `grow`, and by one at least. `forget` seconds after it was last lowered there is none.
    Who finds no place waits `wait` seconds, unless `queue` times the limit do so.
    """

    least: int = 4
    shrink: float = 0.9
    shrink_every: float = 1.0
    grow: float = 0.1
    grow_every: float = 10.0
    forget: float = 60.0
    wait: float = 1.0
    queue: int = 2


def has_too_much(failure: Failure, ejected: bool) -> bool:
    """Whether a failure says that a deployment has more under way than it can do: a 429, a 529, a 503 that says when to
    come again, or the timeout after which it is left alone. Any other 503 may as well say that it is not there."""
    match failure.kind:
        case FailureKind.RATE_LIMITED:
            return True
        case FailureKind.OVERLOADED:
            return failure.status != 503 or failure.retry_after is not None
        case FailureKind.TIMEOUT:
            return ejected and not failure.unsent
        case _:
            return False


class Limit:
    """How many requests at once a deployment takes: `bound` is the operator's word, and less is learned from its own.
    Pure: `now` and `began` are seconds of any monotonic clock.

    `lone` is the team that a learned limit binds alone, because no other has met what taught it.
    """

    __slots__ = ("_learned", "_lowered", "_moved", "_rules", "_well_at", "_why", "bound", "current", "lone")

    def __init__(self, rules: BulkheadRules, bound: int | None = None) -> None:
        self._rules = rules
        self._learned = UNLIMITED
        self._lowered = self._moved = self._well_at = NEVER
        self._why = FailureKind.RATE_LIMITED
        self.lone: str | None = None
        self.bind(bound)

    def bind(self, bound: int | None) -> None:
        """The operator's word from now on; None takes it back."""
        self.bound = bound or UNLIMITED
        self._set(self._learned)

    def won(self, now: float) -> None:
        """A request succeeded."""
        self._well_at = now
        if self._learned < UNLIMITED and now - self._moved >= self._rules.grow_every:
            self._moved = now
            self._set(self._learned + max(1, int(self._learned * self._rules.grow)))

    def lost(self, why: FailureKind, now: float, began: float, in_flight: int, lone: str | None = None) -> None:
        """A request that began then says that the deployment has too much, with so many under way, itself included;
        `lone` is its team where no other has met that.

        A timeout says so only if another request went well meanwhile: else the deployment may have been gone.
        """
        rules = self._rules
        if began < self._lowered or now - self._lowered < rules.shrink_every:
            return  # the answers of one moment are one sign, however many they are
        if in_flight <= rules.least or (why is FailureKind.TIMEOUT and self._well_at <= began):
            return
        self.lapse(now)
        known = self._learned < UNLIMITED
        if known and lone not in (None, self.lone):
            return  # it binds others too
        self.lone, self._why = lone, why
        self._lowered = self._moved = now
        self._set(max(rules.least, int((self.current if known else in_flight) * rules.shrink)))

    def lapse(self, now: float) -> None:
        """Forget what was learned, if that was long enough ago."""
        if self._lapsed(now):
            self.forget()

    def forget(self) -> None:
        """Forget what was learned."""
        self.lone = None
        self._set(UNLIMITED)

    def seen(self, now: float) -> tuple[int, str] | None:
        """The limit in force and whose word it is; None where there is none."""
        if self._learned < self.bound and not self._lapsed(now):
            return self._learned, f"learned after {self._why.value} {now - self._lowered:.0f} s ago"
        return (self.bound, "operator") if self.bound < UNLIMITED else None

    def _lapsed(self, now: float) -> bool:
        return now - self._lowered >= self._rules.forget

    def _set(self, learned: int) -> None:
        self._learned = learned
        self.current = min(self.bound, learned)


@dataclass(frozen=True, slots=True)
class Limited:
    """A deployment whose requests are limited: how many at once, by whose word, how many there are, and how many wait
    for a place."""

    limit: int
    why: str
    in_flight: int
    waiting: int

    def beside(self, other: "Limited") -> "Limited":
        """The same deployment in two processes; the words are the tighter one's."""
        tighter = min(self, other, key=lambda each: each.limit)
        ours, theirs = (self.limit, self.in_flight, self.waiting), (other.limit, other.in_flight, other.waiting)
        limit, in_flight, waiting = map(sum, zip(ours, theirs, strict=True))
        return Limited(limit, tighter.why, in_flight, waiting)

    def __str__(self) -> str:
        return f"{self.limit} at once ({self.why}), {self.in_flight} in flight, {self.waiting} waiting"


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
