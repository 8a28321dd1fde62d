"""The failures that a team has seen of a deployment, which end its free failover to that deployment."""

from providers.failure import VERDICTS, Failure, FailureKind
from proxy.deployment_health.circuit_breaker import TEAM_FAILURES, AnswerKind, State
from tests.proxy.kit.breakers import RULES, SERVER, fail, fresh
from tests.support.looped import looped


def test_it_is_well_until_a_team_has_seen_it_fail_twice_and_for_that_team_again_from_its_next_first_byte_on() -> None:
    health = fresh()
    for _ in range(TEAM_FAILURES):
        assert health.healthy(0.0, "one")
        health.begin(0.0, AnswerKind.STREAM, "one").failed(1.0, SERVER)
    assert (health.healthy(1.0, "one"), health.healthy(1.0, "two")) == (False, True)
    health.begin(1.0, AnswerKind.STREAM, "two").first_byte(2.0)
    assert not health.healthy(2.0, "one")
    trial = health.begin(2.0, AnswerKind.STREAM, "one")
    assert not health.healthy(2.5, "one")
    trial.first_byte(3.0)
    assert health.healthy(3.0, "one")


def test_after_half_a_minute_nothing_is_known_of_it_any_more() -> None:
    health = fresh()
    for _ in range(TEAM_FAILURES):
        fail(health, 0.0)
    assert (health.healthy(30.0), health.healthy(30.1)) == (False, True)


@looped("kind", FailureKind)
def test_every_failure_speaks_against_it_but_those_that_are_the_request_s(kind: FailureKind) -> None:
    health = fresh()
    for _ in range(TEAM_FAILURES):
        health.begin(0.0, AnswerKind.WHOLE).failed(0.0, Failure(kind, "x", 400))
    assert health.healthy(0.0) is not VERDICTS[kind].try_next


def test_so_does_a_client_s_patience_that_ended() -> None:
    health = fresh()
    for _ in range(TEAM_FAILURES):
        trial = health.begin(0.0, AnswerKind.WHOLE, "hasty")
        trial.outlasted(1.0)
        trial.abandoned(1.0)
    assert (health.healthy(1.0, "hasty"), health.healthy(1.0, "other")) == (False, True)
    assert health.state(1.0) is State.CLOSED


def test_while_it_is_away_it_is_well_for_nobody_and_once_it_is_back_for_everybody() -> None:
    health = fresh()
    for _ in range(RULES.failures):
        fail(health, 0.0)
    assert [health.healthy(now, team) for now in (0.0, 5.0) for team in ("", "other")] == [False] * 4
    health.begin(5.0, AnswerKind.STREAM, "other").first_byte(5.5)
    assert (health.healthy(5.5), health.healthy(5.5, "other")) == (True, True)
    cooled = fresh()
    fail(cooled, 0.0, Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=2.0))
    assert not cooled.healthy(1.0, "other")


def test_what_only_one_team_has_seen_fail_is_well_for_the_others() -> None:
    health = fresh()
    for _ in range(5):
        health.begin(0.0, AnswerKind.STREAM, "one").failed(0.0, SERVER)
    assert health.state(0.0) is State.OPEN
    assert (health.healthy(0.0, "one"), health.healthy(0.0, "two")) == (False, True)


def test_one_that_hangs_is_not_well() -> None:
    health = fresh()
    for _ in range(RULES.hanging_least + 1):
        health.begin(0.0, AnswerKind.STREAM)
    assert (health.healthy(5.0), health.healthy(5.1)) == (True, False)
