"""When a deployment counts as hanging: how many of its tries wait for a first byte, and for how long."""

import pytest

from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, TrackedAttempt
from tests.proxy.kit.breakers import SERVER, fresh
from tests.support.looped import looped


def waiting(health: Breaker, number: int, now: float, answer: AnswerKind = AnswerKind.STREAM) -> list[TrackedAttempt]:
    """Return a tracker with tries that have no first byte."""
    return [health.begin(now, answer) for _ in range(number)]


def settled(first_byte: float, answer: AnswerKind = AnswerKind.STREAM) -> Breaker:
    health = fresh()
    for number in range(50):
        trial = health.begin(number * 10.0, answer)
        trial.first_byte(number * 10.0 + first_byte)
        trial.succeeded(number * 10.0 + first_byte)
    return health


@looped(("number", "age", "hangs"), [(17, 5.1, True), (16, 5.1, False), (17, 5.0, False)])
def test_it_hangs_when_too_many_wait_and_the_oldest_too_long(number: int, age: float, hangs: bool) -> None:
    for health in (fresh(), settled(0.5)):
        waiting(health, number, 1000.0)
        assert health.hanging(1000.0 + age) is hangs


def test_a_slow_deployment_is_given_four_times_its_tail() -> None:
    health = settled(4.0)
    waiting(health, 100, 1000.0)
    assert not health.hanging(1015.0)
    assert health.hanging(1018.0)


@pytest.mark.parametrize(("without", "hangs"), [(50, False), (70, True)])
def test_a_busy_deployment_is_given_three_times_what_usually_waits(without: int, hangs: bool) -> None:
    health = settled(2.0)
    tries = []
    for number in range(400):
        trial = health.begin(1000.0 + number / 10, AnswerKind.STREAM)
        if number < without:
            tries.append(trial)
        else:
            trial.abandoned(1000.0 + number / 10)
    assert health.in_flight == without
    assert health.hanging(1040.0) is hangs


def test_first_bytes_end_it() -> None:
    health = fresh()
    tries = waiting(health, 20, 0.0)
    assert health.hanging(6.0)
    for trial in tries[:4]:
        trial.first_byte(6.0)
    assert not health.hanging(6.0)


def test_failures_and_departures_of_the_waiting_end_it() -> None:
    health = fresh()
    tries = waiting(health, 20, 0.0)
    tries[0].failed(6.0, SERVER)
    for trial in tries[1:4]:
        trial.abandoned(6.0)
    assert not health.hanging(6.0)


def test_the_long_wait_for_whole_answers_does_not_make_streams_look_hung() -> None:
    health = settled(0.5)
    waiting(health, 50, 1000.0, AnswerKind.WHOLE)
    health.begin(1001.0, AnswerKind.STREAM).first_byte(1001.5)
    assert not health.hanging(1030.0)


def test_whole_answers_are_held_against_whole_answers() -> None:
    health = settled(20.0, AnswerKind.WHOLE)
    waiting(health, 50, 1000.0, AnswerKind.WHOLE)
    assert not health.hanging(1075.0)
    assert health.hanging(1090.0)
    assert health.first_byte == pytest.approx(20.0)


def test_whole_answers_hang_where_nothing_is_answered_at_all() -> None:
    health = settled(0.5)
    waiting(health, 20, 1000.0, AnswerKind.WHOLE)
    assert health.hanging(1006.0)


def test_the_usual_first_byte_is_that_of_streams_as_soon_as_there_is_one() -> None:
    health = fresh()
    health.begin(0.0, AnswerKind.WHOLE).succeeded(20.0)
    assert health.first_byte == 20.0
    health.begin(30.0, AnswerKind.STREAM).first_byte(30.5)
    assert health.first_byte == 0.5
