"""Attempts that a faster attempt of the same request superseded, and their effect on the usual latency."""

import pytest

from proxy.deployment_health.circuit_breaker import AnswerKind, State
from tests.proxy.kit.breakers import fail, fresh


def test_an_attempt_that_another_one_superseded_is_no_failure_and_frees_its_probe() -> None:
    health = fresh()
    assert [fail(health, 0.0) for _ in range(5)][-1]
    for number in range(20):
        probe = health.begin(5.0 + number, AnswerKind.STREAM)
        assert health.probed
        probe.superseded(5.5 + number)
        probe.superseded(6.0 + number)
        assert not health.probed
    assert (health.in_flight, health.state(30.0), health.first_byte) == (0, State.HALF_OPEN, None)


def test_the_percentile_of_each_kind_is_known_from_fifty_responses_on() -> None:
    health = fresh()
    for number in range(50):
        assert health.percentile(AnswerKind.STREAM) is None
        trial = health.begin(number, AnswerKind.STREAM)
        trial.first_byte(number + 0.5)
        trial.succeeded(number + 0.5)
    found = health.percentile(AnswerKind.STREAM)
    assert found == pytest.approx(0.5, rel=0.2)
    assert health.percentile(AnswerKind.WHOLE) is None
