"""The number of concurrent requests that one deployment gets. It is unlimited until the operator sets a limit or the
deployment refuses requests because it is overloaded.

The limit follows refusals (AIMD), not latency: the length of responses determines how long an LLM takes, so a limit
that followed latency would mistake long responses for congestion.
"""

import sys
from dataclasses import dataclass
from typing import Final

from config.sections.limits_section import CONCURRENT_WAIT
from providers.failure import Failure, FailureKind

UNLIMITED: Final = sys.maxsize
"""The value of a limit that does not limit."""

NEVER: Final = float("-inf")


@dataclass(frozen=True, slots=True)
class ConcurrencyRules:
    """How a deployment's concurrency limit is learned, and how long a request waits for a slot.

    At the first sign of overload, the limit becomes `shrink` times the number of running requests; at later signs it
    becomes `shrink` times itself. It shrinks at most once in `shrink_every` seconds, only because of requests that
    began after it last shrank, and never below `least`. If at most `least` requests are running, their number is not
    the cause, and the limit does not change. For each `grow_every` seconds in which requests succeed, the limit grows
    by the share `grow`, and by at least one. It is forgotten `forget` seconds after it was last lowered. A request
    waits `wait` seconds for a slot. It does not wait if `queue` times the limit of requests are already waiting.
    """

    least: int = 4
    shrink: float = 0.9
    shrink_every: float = 1.0
    grow: float = 0.05
    grow_every: float = 10.0
    forget: float = 60.0
    wait: float = CONCURRENT_WAIT
    queue: int = 2


def shows_overload(failure: Failure, opened: bool) -> bool:
    """Return whether a failure means that a deployment has more requests than it can handle: a 429, a 529, a 503 with a
    retry-after, or the timeout that opened its circuit breaker. Any other 503 may mean that the deployment is down."""
    match failure.kind:
        case FailureKind.RATE_LIMITED:
            return True
        case FailureKind.OVERLOADED:
            return failure.status != 503 or failure.retry_after is not None
        case FailureKind.TIMEOUT:
            return opened and not failure.unsent
        case _:
            return False


class Limit:
    """The number of concurrent requests that a deployment gets. `bound` is the operator's limit; a lower limit is
    learned from refusals. Pure: `now` and `began` are seconds of any monotonic clock.

    `only_team` is the one team to which a learned limit applies, because no other team had the refusals or timeouts
    that caused it.
    """

    __slots__ = (
        "_changed_at",
        "_learned",
        "_lowered_at",
        "_rules",
        "_succeeded_at",
        "_why",
        "bound",
        "current",
        "only_team",
    )

    def __init__(self, rules: ConcurrencyRules, bound: int | None = None) -> None:
        self._rules = rules
        self._learned = UNLIMITED
        self._lowered_at = self._changed_at = self._succeeded_at = NEVER
        self._why = FailureKind.RATE_LIMITED
        self.only_team: str | None = None
        self.bind(bound)

    def bind(self, bound: int | None) -> None:
        """Set the operator's limit; `None` removes it."""
        self.bound = bound or UNLIMITED
        self._set(self._learned)

    def won(self, now: float) -> None:
        """Note a successful request."""
        self._succeeded_at = now
        if self._learned < UNLIMITED and now - self._changed_at >= self._rules.grow_every:
            self._changed_at = now
            self._set(self._learned + max(1, int(self._learned * self._rules.grow)))

    def lost(self, why: FailureKind, now: float, began: float, in_flight: int, only_team: str | None = None) -> None:
        """Note that a request that began at `began` was refused or timed out while `in_flight` requests ran, including
        itself. `only_team` is the request's team if no other team had such a failure.

        A timeout counts only if another request succeeded meanwhile: otherwise the deployment may have been down.
        """
        rules = self._rules
        if began < self._lowered_at or now - self._lowered_at < rules.shrink_every:
            return  # refusals of requests from the same period are one sign of overload
        if in_flight <= rules.least or (why is FailureKind.TIMEOUT and self._succeeded_at <= began):
            return
        self.lapse(now)
        known = self._learned < UNLIMITED
        if known and only_team not in (None, self.only_team):
            return  # the current limit applies to other teams too
        self.only_team, self._why = only_team, why
        self._lowered_at = self._changed_at = now
        self._set(max(rules.least, int((self.current if known else in_flight) * rules.shrink)))

    def lapse(self, now: float) -> None:
        """Forget the learned limit if it is old enough."""
        if self._lapsed(now):
            self.forget()

    def forget(self) -> None:
        """Forget the learned limit."""
        self.only_team = None
        self._set(UNLIMITED)

    def seen(self, now: float) -> tuple[int, str] | None:
        """Return the current limit and its origin; `None` if there is no limit."""
        if self._learned < self.bound and not self._lapsed(now):
            return self._learned, f"learned after {self._why.value} {now - self._lowered_at:.0f} s ago"
        return (self.bound, "operator") if self.bound < UNLIMITED else None

    def _lapsed(self, now: float) -> bool:
        return now - self._lowered_at >= self._rules.forget

    def _set(self, learned: int) -> None:
        self._learned = learned
        self.current = min(self.bound, learned)


@dataclass(frozen=True, slots=True)
class Limited:
    """A deployment with a concurrency limit: the limit, its origin, and the numbers of running and of waiting
    requests."""

    limit: int
    why: str
    in_flight: int
    waiting: int

    def beside(self, other: "Limited") -> "Limited":
        """Return the sums for the same deployment in two processes. The origin is the origin of the lower limit."""
        tighter = min(self, other, key=lambda each: each.limit)
        ours, theirs = (self.limit, self.in_flight, self.waiting), (other.limit, other.in_flight, other.waiting)
        limit, in_flight, waiting = map(sum, zip(ours, theirs, strict=True))
        return Limited(limit, tighter.why, in_flight, waiting)

    def __str__(self) -> str:
        return f"{self.limit} at once ({self.why}), {self.in_flight} in flight, {self.waiting} waiting"
