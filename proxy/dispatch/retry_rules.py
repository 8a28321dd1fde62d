"""The rules that decide whether another attempt follows a failed one, and after how many seconds. Pure: random numbers
are arguments.

The built-in rules of health and retries are combined in one value.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from providers.failure import VERDICTS, Failure, FailureKind
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.teams.retry_budget import BudgetRules

_FREE = frozenset({FailureKind.CONNECT, FailureKind.TLS, FailureKind.BUSY, FailureKind.UNSUPPORTED})

_REFUSED = frozenset({FailureKind.RATE_LIMITED, FailureKind.QUOTA})

_THROTTLED = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED})


@dataclass(frozen=True, slots=True)
class RetryRules:
    """The rules for waits between attempts, in seconds. Another deployment is called at once or after at most
    `elsewhere`. The same deployment is called again once: after its retry-after plus at most the share `spread` of it;
    if the retry-after is above `longest_asked`, it is not called again. Without a retry-after the wait is at most
    `first`, or `throttled` if it has too many requests. While there is another deployment, an attempt gets a `share` of
    the remaining time. It only begins if at least `useful` seconds, or a `useful_share` of the total, remain."""

    elsewhere: float = 0.05
    first: float = 0.25
    throttled: float = 1.0
    longest_asked: float = 10.0
    spread: float = 0.1
    useful: float = 2.0
    useful_share: float = 0.1
    share: float = 0.6
    budget: BudgetRules = field(default_factory=BudgetRules)


def may_repeat(failure: Failure, safety: Literal["safe", "strict", "off"]) -> bool:
    """Return whether the request may be sent again after this failure. Generating twice does no harm but costs money:
    `strict` permits no second payment, `off` no second attempt."""
    if failure.withheld or failure.kind is FailureKind.UNSUPPORTED:
        return True  # nothing has been generated, and only the choice of the target was wrong
    if safety == "strict":
        return not failure.maybe_executed
    return safety == "safe"


def is_free(failure: Failure) -> bool:
    """Return whether a failed attempt did not reach the vendor, or its model cannot take the request, so that the next
    attempt takes nothing from the retry budget."""
    return failure.unsent or failure.kind in _FREE


def wait_for_other(failure: Failure, rules: RetryRules, draw: Callable[[], float]) -> float:
    """Return the seconds until another deployment is called: 0 if this one was not reached or refused the request
    by its own limits, else a short random wait, so that requests which failed together do not arrive there together."""
    return 0.0 if is_free(failure) or failure.kind in _REFUSED else draw() * rules.elsewhere


def wait_for_same(failure: Failure, away: float, rules: RetryRules, draw: Callable[[], float]) -> float | None:
    """Return the seconds until the same deployment, which admits no request for `away` seconds, is called again; `None`
    if a repeat is useless or the wait is too long. After a connection that closed without a response a repeat is
    refused, because the request may have been executed."""
    unanswered = failure.kind is FailureKind.SERVER and failure.status is None
    if unanswered or not VERDICTS[failure.kind].retry_same:
        return None
    wait = max(away, failure.retry_after or 0.0)
    if wait > rules.longest_asked:
        return None
    if wait:
        return wait * (1 + rules.spread * draw())
    return draw() * (rules.throttled if failure.kind in _THROTTLED else rules.first)


def least_useful(usual: float | None, total: float, rules: RetryRules) -> float:
    """Return the least remaining seconds with which an attempt begins: the usual time to the first byte, if it is
    known."""
    return min(rules.useful, total * rules.useful_share) if usual is None else usual


@dataclass(frozen=True, slots=True)
class DeploymentRules:
    """The rules for the circuit breakers, the queues and the retries of all deployments."""

    health: HealthRules = field(default_factory=HealthRules)
    queue: ConcurrencyRules = field(default_factory=ConcurrencyRules)
    retries: RetryRules = field(default_factory=RetryRules)
