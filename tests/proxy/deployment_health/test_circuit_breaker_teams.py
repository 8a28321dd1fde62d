"""One deployment with several teams: for which teams a failure ejects it, and whose probe ends the ejection."""

import pytest

from providers.failure import Failure, FailureKind
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State
from tests.proxy.kit.breakers import RULES, SERVER, fresh
from tests.support.looped import looped

REFUSED = Failure(FailureKind.AUTH, "no", 403)
DENIED = Failure(FailureKind.AUTH, "no", 401)


def fails(health: Breaker, team: str, now: float, failure: Failure = SERVER, times: int = 1) -> bool:
    """Let a team's tries fail at once, and return whether the last one ejected the deployment."""
    return [health.begin(now, AnswerKind.WHOLE, team).failed(now, failure) for _ in range(times)][-1]


def works(health: Breaker, team: str, now: float) -> None:
    """Let a team's try succeed."""
    health.begin(now, AnswerKind.WHOLE, team).succeeded(now)


@pytest.fixture
def health() -> Breaker:
    return fresh()


@looped("failure", [SERVER, REFUSED, Failure(FailureKind.TIMEOUT, "late")])
def test_failures_of_one_team_eject_nothing_while_it_answers_another(failure: Failure) -> None:
    health = fresh()
    works(health, "b", 0.0)
    trial = health.begin(1.0, AnswerKind.WHOLE, "a")
    assert not fails(health, "a", 1.0, failure, 20)
    trial.failed(1.0, failure)
    assert trial.disputed
    assert health.state(1.0) is State.CLOSED


def test_what_no_request_can_bring_about_ejects_it_all_the_same(health: Breaker) -> None:
    works(health, "b", 0.0)
    assert any(fails(health, "a", 1.0, Failure(FailureKind.CONNECT, "refused")) for _ in range(RULES.failures))
    assert not health.admits(1.0, "b")


@pytest.mark.parametrize("failure", [DENIED, Failure(FailureKind.QUOTA, "no credit", 402)])
def test_what_a_vendor_says_to_one_team_alone_is_not_held_against_it(failure: Failure, health: Breaker) -> None:
    works(health, "b", 0.0)
    assert not fails(health, "a", 1.0, failure, 20)
    assert health.admits(1.0, "b")
    assert health.admits(1.0, "a")
    fails(health, "b", 2.0, failure)
    assert not health.admits(2.0, "b")


def test_where_no_other_team_has_tried_the_ejection_binds_the_team_alone(health: Breaker) -> None:
    assert fails(health, "a", 0.0, times=RULES.failures)
    assert not health.admits(0.0, "a")
    assert all(health.begin(0.0, AnswerKind.WHOLE, "b") and health.admits(0.0, "b") for _ in range(10))


def test_another_team_s_failure_makes_it_everybody_s(health: Breaker) -> None:
    fails(health, "a", 0.0, times=RULES.failures)
    assert fails(health, "b", 0.0)
    assert not any(health.admits(0.0, team) for team in ("a", "b", "c"))


def test_another_team_s_success_ends_it(health: Breaker) -> None:
    fails(health, "a", 0.0, times=RULES.failures)
    works(health, "b", 0.0)
    assert health.state(0.0) is State.CLOSED
    assert health.admits(0.0, "a")


def test_a_refusal_that_one_team_alone_has_seen_is_told_to_no_other_process() -> None:
    health, told = fresh(), []
    health.publish = lambda *word: told.append(word)
    assert fails(health, "a", 0.0, REFUSED)
    assert told == []
    assert fails(health, "b", 0.0, REFUSED)
    assert [kind for _, kind, _ in told] == [FailureKind.AUTH]


def wait_after_failures(health: Breaker) -> float:
    """Return when a deployment that failed for two teams may be called again."""
    fails(health, "a", 0.0, times=RULES.failures)
    fails(health, "b", 0.0)
    assert health.only_team is None
    return health.wait(0.0)


def test_a_half_open_deployment_is_asked_once_by_each_team_and_by_few(health: Breaker) -> None:
    now = wait_after_failures(health)
    for number in range(RULES.probes_most):
        assert health.admits(now, f"t{number}")
        health.begin(now, AnswerKind.WHOLE, f"t{number}")
        assert not health.admits(now, f"t{number}")
    assert not health.admits(now, "late")


def test_a_team_that_gives_its_probe_up_again_and_again_keeps_no_other_from_probing(health: Breaker) -> None:
    now = wait_after_failures(health)
    for _ in range(3):
        probe = health.begin(now, AnswerKind.WHOLE, "a")
        assert health.admits(now, "b")
        probe.abandoned(now)
    held, other = health.begin(now, AnswerKind.WHOLE, "a"), health.begin(now, AnswerKind.WHOLE, "b")
    held.abandoned(now)
    other.succeeded(now)
    assert health.state(now) is State.CLOSED


def test_a_request_about_one_client_s_own_size_or_promise_speaks_against_nobody(health: Breaker) -> None:
    for kind in (FailureKind.NONCONFORMING, FailureKind.TOO_LARGE):
        assert not fails(health, "a", 0.0, Failure(kind, "x", 429), 20)
    assert health.state(0.0) is State.CLOSED
    assert not health.cooling_down(0.0)
