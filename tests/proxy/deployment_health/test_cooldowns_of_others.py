"""Cooldowns that vendors reported to other processes: how long they apply here, and which cooldowns are shared."""

from hypothesis import given
from hypothesis import strategies as st

from providers.failure import CIRCUIT_OPENING_KINDS, VERDICTS, Failure, FailureKind
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker, State
from tests.proxy.kit.breakers import RULES, fail, fresh, succeed
from tests.support.looped import looped

RATE, QUOTA, AUTH = FailureKind.RATE_LIMITED, FailureKind.QUOTA, FailureKind.AUTH
NO_MODEL = FailureKind.NO_MODEL
LONGEST = {RATE: RULES.requested_most, QUOTA: RULES.quota, AUTH: RULES.auth, NO_MODEL: RULES.auth}
SAYS = [RATE, QUOTA, AUTH, NO_MODEL]


def breaker_with_cooldown(kind: FailureKind, seconds: float) -> Breaker:
    health = fresh()
    health.apply_cooldown(0.0, kind, seconds)
    return health


@looped("kind", SAYS)
def test_it_is_left_alone_for_what_is_left_and_then_asked_once(kind: FailureKind) -> None:
    health = breaker_with_cooldown(kind, 20.0)
    assert (health.wait(0.0), health.state(19.9), health.why) == (20.0, State.OPEN, kind)
    assert health.cooling_down(1.0) == (kind not in CIRCUIT_OPENING_KINDS)
    assert health.state(20.0) is State.HALF_OPEN
    health.begin(20.0, AnswerKind.WHOLE)
    assert not health.admits(20.0)


@looped("kind", SAYS)
def test_no_word_of_others_holds_longer_than_the_vendor_s_own(kind: FailureKind) -> None:
    assert breaker_with_cooldown(kind, 1e9).wait(0.0) == LONGEST[kind]


@looped("kind", SAYS)
def test_words_of_others_that_never_end_hold_no_longer_together(kind: FailureKind) -> None:
    health = fresh()
    for second in range(1000):
        health.apply_cooldown(float(second), kind, 1e9)
        if health.admits(float(second)):
            break
    assert second == LONGEST[kind]


@looped("kind", SAYS)
def test_once_it_was_asked_here_words_of_others_count_again(kind: FailureKind) -> None:
    health = breaker_with_cooldown(kind, 1e9)
    now = LONGEST[kind]
    succeed(health, now)
    assert health.state(now) is State.CLOSED
    health.apply_cooldown(now + 1, kind, 10.0)
    assert health.wait(now + 1) == 10.0


def test_what_was_said_here_and_holds_longer_stays() -> None:
    health = fresh()
    fail(health, 0.0, Failure(RATE, "slow down", 429, retry_after=50.0))
    health.apply_cooldown(1.0, RATE, 5.0)
    assert health.wait(1.0) == 49.0
    fail(health, 2.0, Failure(AUTH, "no", 401))
    health.apply_cooldown(3.0, AUTH, 1.0)
    assert health.wait(3.0) == 59.0


def test_a_probe_that_is_under_way_may_still_show_that_it_answers() -> None:
    health = fresh()
    fail(health, 0.0, Failure(AUTH, "no", 401))
    probe = health.begin(60.0, AnswerKind.WHOLE)
    health.apply_cooldown(60.5, AUTH, 30.0)
    assert not health.admits(61.0)
    probe.succeeded(61.0)
    assert health.admits(61.0)


def test_what_was_asked_before_says_nothing_of_what_others_were_told() -> None:
    health = fresh()
    early = health.begin(0.0, AnswerKind.WHOLE)
    health.apply_cooldown(1.0, AUTH, 30.0)
    early.succeeded(2.0)
    assert health.wait(2.0) == 29.0


@looped(
    ("failure", "said"),
    [
        (Failure(RATE, "slow down", 429, retry_after=20.0), (RATE, 20.0)),
        (Failure(RATE, "slow down", 429, retry_after=1e9), (RATE, RULES.requested_most)),
        (Failure(RATE, "slow down", 429, retry_after=0.0), (RATE, RULES.requested_least)),
        (Failure(RATE, "slow down", 429), (RATE, RULES.cooldown)),
        (Failure(QUOTA, "no money", 429), (QUOTA, RULES.quota)),
        (Failure(AUTH, "no", 401), (AUTH, RULES.auth)),
        (Failure(NO_MODEL, "no", 404), (NO_MODEL, RULES.auth)),
    ],
)
def test_the_vendor_s_own_word_is_passed_on(failure: Failure, said: tuple[FailureKind, float]) -> None:
    health, passed = fresh(), []
    health.name = "name"
    health.publish = lambda *word: passed.append(word)
    fail(health, 0.0, failure)
    assert passed == [("name", *said)]


def test_nothing_else_is_passed_on() -> None:
    health, passed = fresh(), []
    health.publish = lambda *word: passed.append(word)
    for kind in FailureKind:
        if kind not in SAYS and VERDICTS[kind].counts_against:
            for _ in range(2 * RULES.failures):
                fail(health, 0.0, Failure(kind, "x", 500))
    assert health.state(0.0) is State.OPEN
    health.apply_cooldown(0.0, RATE, 20.0)
    health.apply_cooldown(0.0, AUTH, 20.0)
    succeed(health, 30.0)
    assert passed == []


@given(st.lists(st.tuples(st.floats(0, 100), st.sampled_from(SAYS), st.floats(1e-3, 1e9)), max_size=30))
def test_whatever_others_say_it_is_asked_again_within_the_longest_time_after_the_last_word(
    words: list[tuple[float, FailureKind, float]],
) -> None:
    health, now = fresh(), 0.0
    for later, kind, seconds in words:
        now += later
        health.apply_cooldown(now, kind, seconds)
        assert 0 <= health.wait(now) <= RULES.quota
    assert health.admits(now + RULES.quota)


def test_a_client_is_told_the_vendors_wait_and_the_deployment_is_called_earlier() -> None:
    health = fresh()
    fail(health, 0.0, Failure(FailureKind.RATE_LIMITED, "x", 429, retry_after=3600.0))
    assert (health.wait(10.0), health.requested_wait(10.0)) == (50.0, 3590.0)
    assert health.requested_wait(60.0) == 0.0
    fail(health, 61.0, Failure(FailureKind.RATE_LIMITED, "x", 429))
    assert health.requested_wait(61.0) == health.wait(61.0) == 5.0
