"""How many requests at once one deployment takes: as many as come, until the operator has said how many there may be or
the deployment that it has too much.

AIMD on loss: the length of answers rules how long an LLM takes, so a limit that followed latency would take long
answers for congestion. Never who has a place, or waits for one.
"""

import sys
from dataclasses import dataclass
from typing import Final

from providers.failure import Failure, FailureKind

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
    grow: float = 0.05
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
