"""Circuit breakers on a virtual clock, and attempts that succeed or fail on them."""

from collections.abc import Callable

from providers.failure import Failure, FailureKind
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker
from proxy.deployment_health.circuit_breaker_rules import HealthRules

RULES = HealthRules()
SERVER = Failure(FailureKind.SERVER, "broken", 500)


def middle() -> float:
    """Return a draw in the middle, which cancels the jitter."""
    return 0.5


def fresh(rules: HealthRules = RULES, draw: Callable[[], float] = middle) -> Breaker:
    """Return the breaker of a deployment without any history."""
    return Breaker(rules, draw)


def succeed(health: Breaker, now: float) -> None:
    """Let a streamed attempt succeed at once."""
    trial = health.begin(now, AnswerKind.STREAM)
    trial.first_byte(now)
    trial.succeeded(now)


def fail(health: Breaker, now: float, failure: Failure = SERVER) -> bool:
    """Let an attempt fail at once."""
    return health.begin(now, AnswerKind.STREAM).failed(now, failure)
