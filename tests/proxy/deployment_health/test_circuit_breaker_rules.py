"""The effect of a deployment's own settings on its circuit breaker, and of the vendor's own statements."""

from dataclasses import replace

from providers.failure import Failure, FailureKind
from providers.target import CircuitBreaker
from proxy.deployment_health.circuit_breaker import AnswerKind
from tests.proxy.kit.breakers import RULES, fail, fresh, succeed
from tests.support.looped import looped

LIMITED = Failure(FailureKind.RATE_LIMITED, "slow down", 429)


def test_a_deployment_that_says_nothing_is_judged_as_built_in() -> None:
    assert RULES.of(CircuitBreaker()) == RULES


@looped(
    ("own", "failures", "among", "cooldowns"),
    [
        (CircuitBreaker(failures=1), 1, 2, (5.0, 5.0)),
        (CircuitBreaker(failures=50), 50, 100, (5.0, 5.0)),
        (CircuitBreaker(cooldown=2.0), 5, 10, (2.0, 5.0)),
        (CircuitBreaker(cooldown=20.0), 5, 10, (20.0, 20.0)),
        (CircuitBreaker(longest_cooldown=30.0), 5, 10, (5.0, 30.0)),
        (CircuitBreaker(longest_cooldown=1.0), 5, 10, (5.0, 1.0)),
        (CircuitBreaker(3, 2.0, 8.0), 3, 6, (2.0, 8.0)),
    ],
)
def test_each_of_its_settings_counts_by_itself(
    own: CircuitBreaker, failures: int, among: int, cooldowns: tuple[float, float]
) -> None:
    rules = RULES.of(own)
    assert (rules.failures, rules.window_least) == (failures, among)
    assert (rules.cooldown, rules.longest_cooldown) == cooldowns


@looped(("asked", "seconds"), [(0.0, 1.0), (7.5, 7.5), (1e6, 60.0), (None, 20.0)])
def test_what_a_vendor_asks_for_is_kept_within_bounds_and_the_cooldown_is_for_those_that_do_not(
    asked: float | None, seconds: float
) -> None:
    assert RULES.of(CircuitBreaker(cooldown=20.0)).cooldown_for(asked) == seconds


def test_the_longest_cooldown_holds_for_a_shorter_first_one_too() -> None:
    assert RULES.of(CircuitBreaker(cooldown=20.0, longest_cooldown=3.0)).cooldown_for(None) == 3.0


def test_a_rate_limit_without_a_time_cools_for_as_long_as_is_written_whatever_a_vendor_may_ask_for() -> None:
    for written in (0.25, 90.0):
        health = fresh(replace(RULES, cooldown=written, longest_cooldown=100.0))
        for _ in range(3):
            now = health.wait(0.0)
            fail(health, now, LIMITED)
            assert health.wait(now) == written


def test_a_new_table_s_rules_hold_from_the_next_failure_on() -> None:
    health = fresh()
    for _ in range(RULES.failures):
        fail(health, 0.0)
    health.follow(replace(RULES, failures=2, cooldown=1.0, longest_cooldown=1.0))
    assert health.wait(0.0) == 5.0
    assert fail(health, 5.0)
    assert health.wait(5.0) == 1.0
    succeed(health, 6.0)
    again = 6.0 + RULES.forgive
    assert [fail(health, again) for _ in range(2)] == [False, True]


def test_a_rate_limit_without_a_time_is_short_while_others_are_being_answered() -> None:
    health = fresh()
    others = [health.begin(0.0, AnswerKind.STREAM) for _ in range(2)]
    fail(health, 0.0, LIMITED)
    assert health.wait(0.0) == RULES.requested_least
    others[0].succeeded(0.5)
    others[1].failed(0.5, LIMITED)
    assert health.wait(0.5) == RULES.cooldown
