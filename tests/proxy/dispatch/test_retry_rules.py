"""The calls that may be repeated, the budget that pays for the repeat, and its delay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.failure import Failure, FailureKind
from proxy.dispatch.retry_rules import RetryRules, is_free, least_useful, may_repeat, wait_for_other, wait_for_same
from tests.support.looped import looped

RULES = RetryRules()

KINDS = st.sampled_from(FailureKind)

DRAWS = st.floats(0, 1, exclude_max=True)


def failure(kind: FailureKind, asked: float | None = None, unsent: bool = False) -> Failure:
    return Failure(kind, "why", 500, retry_after=asked, unsent=unsent)


@given(KINDS, st.booleans())
def test_what_is_repeatable_strictly_is_so_safely_and_nothing_when_it_is_off(kind: FailureKind, unsent: bool) -> None:
    failed = failure(kind, unsent=unsent)
    assert may_repeat(failed, "safe")
    assert may_repeat(failed, "off") == (failed.withheld or kind is FailureKind.UNSUPPORTED)
    assert may_repeat(failed, "strict") or not is_free(failed)


@looped("kind", [FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER, FailureKind.RATE_LIMITED])
def test_what_a_vendor_would_not_have_was_not_generated_and_may_be_asked_elsewhere_strictly(kind: FailureKind) -> None:
    assert may_repeat(failure(kind), "strict")


@looped("kind", [FailureKind.SERVER, FailureKind.TIMEOUT, FailureKind.TRUNCATED, FailureKind.MALFORMED])
def test_what_may_have_been_generated_is_not_repeated_strictly_unless_it_was_not_sent(kind: FailureKind) -> None:
    assert not may_repeat(failure(kind), "strict")
    assert may_repeat(failure(kind, unsent=True), "strict")
    assert not is_free(failure(kind))
    assert is_free(failure(kind, unsent=True))


@given(KINDS, st.none() | st.floats(0, 1e6), st.floats(0, 100), DRAWS)
def test_a_wait_is_never_shorter_than_asked_for_and_never_much_longer(
    kind: FailureKind, asked: float | None, away: float, draw: float
) -> None:
    wait = wait_for_same(failure(kind, asked), away, RULES, lambda: draw)
    if wait is not None:
        least = max(asked or 0.0, away)
        assert least <= wait <= max(least * 1.1, RULES.throttled)
        assert least <= RULES.longest_asked


@looped(
    ("kind", "asked", "away", "expected"),
    [
        (FailureKind.RATE_LIMITED, 1.0, 0.0, 1.05),
        (FailureKind.RATE_LIMITED, 10.0, 0.0, 10.5),
        (FailureKind.RATE_LIMITED, 10.1, 0.0, None),
        (FailureKind.RATE_LIMITED, 0.2, 1.0, 1.05),
        (FailureKind.OVERLOADED, None, 0.0, 0.5),
        (FailureKind.SERVER, None, 0.0, 0.125),
        (FailureKind.SERVER, 3.0, 0.0, 3.15),
        (FailureKind.CONNECT, None, 0.0, None),
        (FailureKind.TIMEOUT, None, 0.0, None),
        (FailureKind.INVALID_REQUEST, None, 0.0, None),
    ],
)
def test_the_same_deployment_is_asked_again_after(
    kind: FailureKind, asked: float | None, away: float, expected: float | None
) -> None:
    wait = wait_for_same(failure(kind, asked), away, RULES, lambda: 0.5)
    assert wait == (None if expected is None else pytest.approx(expected))


@looped("kind", FailureKind)
def test_another_deployment_is_asked_at_once_after_what_this_one_did_not_begin(kind: FailureKind) -> None:
    unreached = {FailureKind.CONNECT, FailureKind.TLS, FailureKind.BUSY, FailureKind.UNSUPPORTED}
    expected = 0.0 if kind in unreached | {FailureKind.RATE_LIMITED, FailureKind.QUOTA} else 0.025
    assert wait_for_other(failure(kind), RULES, lambda: 0.5) == expected
    assert wait_for_other(failure(kind, unsent=True), RULES, lambda: 0.5) == 0.0


def test_who_hung_up_without_an_answer_is_not_asked_again() -> None:
    assert wait_for_same(Failure(FailureKind.SERVER, "why"), 0.0, RULES, lambda: 0.5) is None


def test_a_try_needs_the_usual_time_or_two_seconds_or_a_tenth_of_the_whole() -> None:
    assert least_useful(30.0, 600.0, RULES) == 30.0
    assert least_useful(None, 600.0, RULES) == 2.0
    assert least_useful(None, 5.0, RULES) == 0.5
