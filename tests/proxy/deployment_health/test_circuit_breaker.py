"""One deployment's circuit breaker on a virtual clock: the failures that open it, its recovery, and its reported
state.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from providers.failure import CIRCUIT_OPENING_KINDS, VERDICTS, Failure, FailureKind
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State, TrackedAttempt
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from tests.proxy.kit.breakers import RULES, SERVER, fail, fresh, middle, succeed
from tests.support.looped import looped

COUNTING = sorted(kind for kind, verdict in VERDICTS.items() if verdict.counts_against)
NEUTRAL = sorted(set(VERDICTS) - {*COUNTING, FailureKind.RATE_LIMITED, FailureKind.QUOTA})

GROWING = replace(RULES, longest_cooldown=30.0)


def ejected(now: float = 0.0, draw: Callable[[], float] = middle, rules: HealthRules = GROWING) -> Breaker:
    """Return a breaker that five failures in a row have opened until `now` + 5."""
    health = fresh(rules, draw)
    assert [fail(health, now) for _ in range(5)] == [False] * 4 + [True]
    return health


def limited(retry_after: float | None = None) -> Failure:
    return Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=retry_after)


@pytest.fixture
def health() -> Breaker:
    return fresh()


def test_nothing_speaks_against_a_deployment_nobody_asked(health: Breaker) -> None:
    assert (health.state(0.0), health.admits(0.0), health.wait(0.0)) == (State.CLOSED, True, 0.0)
    assert (health.share(0.0), health.hanging(0.0), health.only_cooling_down(0.0)) == (1.0, False, False)
    assert (health.in_flight, health.first_byte, health.probed) == (0, None, False)


# Ejection ------------------------------------------------------------------------------------------------------------


@looped("kind", COUNTING)
def test_five_health_failures_in_a_row_eject(kind: FailureKind) -> None:
    health = fresh(HealthRules(auth=5.0))
    needed = 1 if kind in CIRCUIT_OPENING_KINDS else 5
    results = [fail(health, 1.0, Failure(kind, "x")) for _ in range(needed)]
    assert results == [False] * (needed - 1) + [True]
    assert (health.state(1.0), health.admits(1.0), health.wait(1.0)) == (State.OPEN, False, 5.0)
    assert not health.only_cooling_down(1.0)


def test_a_success_in_between_starts_the_row_anew(health: Breaker) -> None:
    for _ in range(3):
        for _ in range(5):
            succeed(health, 0.0)
        for _ in range(4):
            assert not fail(health, 0.0)
    assert health.state(0.0) is State.CLOSED


def test_half_of_ten_in_the_window_eject(health: Breaker) -> None:
    for second in range(4):
        succeed(health, float(second))
        assert not fail(health, second + 0.5)
    succeed(health, 5.0)
    assert fail(health, 6.0)


def test_fewer_than_ten_in_the_window_do_not(health: Breaker) -> None:
    for second in range(40):
        succeed(health, second * 8.0)
        assert not fail(health, second * 8.0 + 4)


def test_less_than_half_of_the_window_does_not(health: Breaker) -> None:
    for second in range(60):
        succeed(health, float(second))
        succeed(health, second + 0.2)
        assert not fail(health, second + 0.5)


@looped("kind", NEUTRAL)
def test_failures_that_are_not_its_fault_never_eject(kind: FailureKind) -> None:
    health = fresh()
    assert not any(fail(health, 0.0, Failure(kind, "x", 400)) for _ in range(100))
    assert health.state(0.0) is State.CLOSED


@looped("kind", CIRCUIT_OPENING_KINDS)
def test_a_refused_credential_or_model_ejects_at_once_for_a_minute(kind: FailureKind) -> None:
    health = fresh()
    assert fail(health, 0.0, Failure(kind, "x", 401))
    assert health.wait(0.0) == 60.0
    assert not health.only_cooling_down(1.0)


def failing_returns(health: Breaker, now: float, times: int) -> list[float]:
    """Return the waits of successive ejections, each ended by a probe that fails at once."""
    waits = []
    for _ in range(times):
        waits.append(health.wait(now))
        now += health.wait(now)
        assert health.state(now) is State.HALF_OPEN
        assert fail(health, now)
    return waits


def test_each_ejection_is_as_long_as_the_first_unless_a_longer_one_is_allowed() -> None:
    assert failing_returns(ejected(rules=RULES), 0.0, 100) == [5.0] * 100


def test_each_ejection_is_twice_as_long_up_to_the_longest() -> None:
    waits = failing_returns(ejected(), 0.0, 2000)
    assert waits[:5] == [5.0, 10.0, 20.0, 30.0, 30.0]
    assert set(waits[3:]) == {30.0}


@pytest.mark.parametrize(("number", "first", "last"), [(0.0, 4.0, 24.0), (0.999999, 6.0, 36.0)])
def test_an_ejection_varies_by_a_fifth(number: float, first: float, last: float) -> None:
    waits = failing_returns(ejected(draw=lambda: number), 0.0, 5)
    assert waits[0] == pytest.approx(first, rel=1e-5)
    assert waits[-1] == pytest.approx(last, rel=1e-5)


def test_a_minute_of_health_forgives() -> None:
    health = ejected()
    failing_returns(health, 0.0, 2)
    now = 15.0 + health.wait(15.0)
    succeed(health, now)
    again = now + RULES.forgive
    for _ in range(5):
        fail(health, again)
    assert health.wait(again) == 5.0


def test_less_than_a_minute_of_health_does_not_forgive() -> None:
    health = ejected()
    succeed(health, 5.0)
    again = 5.0 + RULES.forgive - 1
    for _ in range(5):
        fail(health, again)
    assert health.wait(again) == 10.0


def test_what_was_begun_before_the_ejection_neither_lengthens_nor_ends_it(health: Breaker) -> None:
    old = [health.begin(0.0, AnswerKind.STREAM) for _ in range(20)]
    for trial in old[:5]:
        trial.failed(1.0, SERVER)
    assert not any(trial.failed(2.0, SERVER) for trial in old[5:15])
    for trial in old[15:]:
        trial.first_byte(2.0)
        trial.succeeded(2.0)
    assert (health.state(2.0), health.wait(2.0), health.in_flight) == (State.OPEN, 4.0, 0)


def test_what_was_begun_before_the_ejection_does_not_count_after_the_return(health: Breaker) -> None:
    old = [health.begin(0.0, AnswerKind.STREAM) for _ in range(20)]
    for trial in old[:5]:
        trial.failed(0.0, SERVER)
    succeed(health, 5.0)
    assert not any(trial.failed(6.0, SERVER) for trial in old[5:15])
    assert not any(fail(health, 6.0) for _ in range(4))
    for trial in old[15:18]:
        trial.succeeded(6.0)
    assert fail(health, 6.0)


def test_after_the_return_the_window_begins_anew() -> None:
    health = ejected()
    succeed(health, 5.0)
    for _ in range(4):
        assert not fail(health, 5.0)
        succeed(health, 5.0)
    assert health.state(5.0) is State.CLOSED


# Return --------------------------------------------------------------------------------------------------------------


def test_half_open_admits_one_probe() -> None:
    health = ejected()
    assert (health.state(5.0), health.admits(5.0), health.wait(5.0)) == (State.HALF_OPEN, True, 0.0)
    health.begin(5.0, AnswerKind.STREAM)
    assert (health.state(5.0), health.admits(5.0), health.probed) == (State.HALF_OPEN, False, True)
    assert health.wait(5.0) > 0


def test_a_probe_s_first_byte_brings_it_back() -> None:
    health = ejected()
    probe = health.begin(5.0, AnswerKind.STREAM)
    probe.first_byte(6.0)
    assert (health.state(6.0), health.admits(6.0), health.share(6.0)) == (State.CLOSED, True, 0.1)


def test_a_whole_answer_brings_it_back() -> None:
    health = ejected()
    health.begin(5.0, AnswerKind.WHOLE).succeeded(6.0)
    assert health.state(6.0) is State.CLOSED


def test_a_probe_s_failure_ejects_again_for_longer() -> None:
    health = ejected()
    assert fail(health, 5.0)
    assert (health.state(5.0), health.wait(5.0)) == (State.OPEN, 10.0)


def test_a_probe_that_breaks_after_its_first_byte_ejects_again() -> None:
    health = ejected()
    probe = health.begin(5.0, AnswerKind.STREAM)
    probe.first_byte(6.0)
    assert probe.failed(8.0, SERVER)
    assert (health.state(8.0), health.wait(8.0)) == (State.OPEN, 10.0)


def test_a_probe_that_breaks_after_a_minute_of_health_is_a_failure_like_others() -> None:
    health = ejected()
    probe = health.begin(5.0, AnswerKind.STREAM)
    probe.first_byte(6.0)
    assert not probe.failed(6.0 + RULES.forgive, SERVER)
    assert health.state(70.0) is State.CLOSED


def test_an_abandoned_probe_frees_the_place() -> None:
    health = ejected()
    health.begin(5.0, AnswerKind.STREAM).abandoned(5.5)
    assert (health.state(5.5), health.admits(5.5), health.probed) == (State.HALF_OPEN, True, False)


def test_an_answer_that_blames_the_request_shows_that_the_deployment_lives() -> None:
    health = ejected()
    assert not fail(health, 5.0, Failure(FailureKind.CONTEXT_LENGTH, "too long", 400))
    assert (health.state(5.0), health.share(5.0)) == (State.CLOSED, 0.1)


def test_an_answer_that_blames_the_request_after_the_first_byte_does_not_bring_it_back_twice() -> None:
    health = ejected()
    probe = health.begin(5.0, AnswerKind.STREAM)
    probe.first_byte(6.0)
    assert not probe.failed(14.0, Failure(FailureKind.CONTENT_FILTER, "filtered", 400))
    assert health.share(14.0) == pytest.approx(0.8)


def test_a_probe_of_an_earlier_time_does_not_free_the_place_of_a_later_one() -> None:
    health = ejected()
    early, failing = (health.begin(1.0, AnswerKind.STREAM) for _ in range(2))
    assert failing.failed(1.0, SERVER)
    now = 1.0 + health.wait(1.0)
    health.begin(now, AnswerKind.STREAM)
    early.abandoned(now)
    assert (health.state(now), health.admits(now)) == (State.HALF_OPEN, False)


def test_a_refusal_of_our_own_frees_the_place_and_shows_nothing() -> None:
    health = ejected()
    assert not fail(health, 5.0, Failure(FailureKind.BUSY, "all slots taken", unsent=True))
    assert (health.state(5.0), health.admits(5.0)) == (State.HALF_OPEN, True)


def test_a_rate_limited_probe_frees_the_place_for_when_the_wait_is_over() -> None:
    health = ejected()
    assert not fail(health, 5.0, limited(7.0))
    assert (health.state(11.9), health.only_cooling_down(11.9), health.wait(5.0)) == (State.OPEN, True, 7.0)
    assert (health.state(12.0), health.admits(12.0)) == (State.HALF_OPEN, True)


def test_a_request_sent_while_it_was_ejected_brings_it_back_before_the_time() -> None:
    health = ejected()
    probe = health.begin(1.0, AnswerKind.STREAM)
    assert not health.admits(1.0)
    probe.first_byte(1.5)
    assert health.state(1.5) is State.CLOSED


def test_the_share_rises_over_ten_seconds() -> None:
    health = ejected()
    succeed(health, 5.0)
    shares = [health.share(5.0 + after) for after in (0.0, 0.5, 1.0, 2.5, 5.0, 9.9, 10.0, 1000.0)]
    assert shares == pytest.approx([0.1, 0.1, 0.1, 0.25, 0.5, 0.99, 1.0, 1.0])


# Cooldown ------------------------------------------------------------------------------------------------------------


@looped(("asked", "waited"), [(None, 5.0), (0.0, 1.0), (0.5, 1.0), (1.0, 1.0), (17.5, 17.5), (60.0, 60.0), (1e9, 60.0)])
def test_a_rate_limit_cools_for_what_the_vendor_said_within_bounds(asked: float | None, waited: float) -> None:
    health = fresh()
    assert not fail(health, 0.0, limited(asked))
    assert (health.state(0.0), health.only_cooling_down(0.0), health.wait(0.0)) == (State.OPEN, True, waited)
    assert not health.admits(waited - 0.001)
    assert health.admits(waited)


def test_spent_money_cools_for_five_minutes_whatever_the_vendor_says(health: Breaker) -> None:
    fail(health, 0.0, Failure(FailureKind.QUOTA, "no credit", 429, retry_after=1.0))
    assert (health.wait(0.0), health.only_cooling_down(299.0), health.admits(300.0)) == (300.0, True, True)


def test_a_rate_limit_is_no_failure(health: Breaker) -> None:
    now = 0.0
    for _ in range(20):
        assert not fail(health, now, limited(1.0))
        now += 1.0
        succeed(health, now)
    for _ in range(4):
        assert not fail(health, now)
    assert health.state(now) is State.CLOSED


def test_after_a_cooldown_one_request_goes_first_and_the_rest_comes_slowly(health: Breaker) -> None:
    fail(health, 0.0, limited(2.0))
    probe = health.begin(2.0, AnswerKind.STREAM)
    assert (health.state(2.0), health.admits(2.0)) == (State.HALF_OPEN, False)
    probe.first_byte(2.5)
    assert (health.state(2.5), health.share(2.5)) == (State.CLOSED, 0.1)


def test_the_longest_of_several_waits_holds(health: Breaker) -> None:
    tries = [health.begin(0.0, AnswerKind.STREAM) for _ in range(3)]
    for trial, asked in zip(tries, (3.0, 20.0, 1.0), strict=True):
        trial.failed(1.0, limited(asked))
    assert health.wait(1.0) == 20.0


def test_a_probe_that_lives_does_not_undo_what_the_vendor_said_meanwhile(health: Breaker) -> None:
    old = health.begin(0.0, AnswerKind.STREAM)
    for _ in range(5):
        fail(health, 0.0)
    probe = health.begin(5.0, AnswerKind.STREAM)
    old.failed(5.5, limited(20.0))
    probe.first_byte(6.0)
    assert (health.state(6.0), health.only_cooling_down(6.0), health.wait(6.0)) == (State.OPEN, True, 19.5)
    probe.succeeded(7.0)
    assert health.admits(25.5)


def test_it_is_not_only_cooling_while_it_is_ejected_too(health: Breaker) -> None:
    old = health.begin(0.0, AnswerKind.STREAM)
    for _ in range(5):
        fail(health, 0.0)
    old.failed(0.0, limited(20.0))
    assert (health.only_cooling_down(1.0), health.cooling_down(1.0)) == (False, True)
    assert (health.only_cooling_down(6.0), health.cooling_down(6.0)) == (True, True)


# Tries ---------------------------------------------------------------------------------------------------------------

ENDS: list[Callable[[TrackedAttempt], object]] = [
    lambda trial: trial.succeeded(1.0),
    lambda trial: trial.failed(1.0, SERVER),
    lambda trial: trial.abandoned(1.0),
]


@looped("end", ENDS)
@looped("again", ENDS)
def test_a_try_ends_once(end: Callable[[TrackedAttempt], object], again: Callable[[TrackedAttempt], object]) -> None:
    health = fresh()
    trial = health.begin(0.0, AnswerKind.STREAM)
    end(trial)
    assert health.in_flight == 0
    known = health.first_byte
    for _ in range(10):
        again(trial)
        trial.first_byte(2.0)
    assert (health.in_flight, health.first_byte, health.state(2.0)) == (0, known, State.CLOSED)


def test_a_first_byte_counts_once(health: Breaker) -> None:
    trial = health.begin(0.0, AnswerKind.STREAM)
    trial.first_byte(1.0)
    trial.first_byte(9.0)
    trial.succeeded(10.0)
    assert health.first_byte == 1.0


def test_an_abandoned_try_is_neither_good_nor_bad(health: Breaker) -> None:
    for _ in range(4):
        fail(health, 0.0)
    health.begin(0.0, AnswerKind.STREAM).abandoned(0.0)
    assert fail(health, 0.0)
