"""Deployments and tries on a virtual clock, for the tests of health. Never asserts what a test should."""

from collections.abc import Callable

from providers.failure import Failure, FailureKind
from proxy.health import Answer, Health
from proxy.health_rules import HealthRules

RULES = HealthRules()
SERVER = Failure(FailureKind.SERVER, "broken", 500)


def middle() -> float:
    """A draw that leaves the jitter out."""
    return 0.5


def fresh(rules: HealthRules = RULES, draw: Callable[[], float] = middle) -> Health:
    """A deployment nothing is known of."""
    return Health(rules, draw)


def succeed(health: Health, now: float) -> None:
    """A stream that goes well at once."""
    trial = health.begin(now, Answer.STREAM)
    trial.first_byte(now)
    trial.succeeded(now)


def fail(health: Health, now: float, failure: Failure = SERVER) -> bool:
    """A try that fails at once."""
    return health.begin(now, Answer.STREAM).failed(now, failure)
