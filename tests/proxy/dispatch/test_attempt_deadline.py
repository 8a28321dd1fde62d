"""The time that one try of a request has."""

import pytest

from providers.target import Timeouts
from proxy.dispatch.attempt_deadline import AttemptLimits, attempt_limits
from proxy.dispatch.retry_rules import RetryRules

RULES = RetryRules(share=0.5)


def limits(total: float = 600.0, answer: float | None = None, first_event: float = 60.0) -> Timeouts:
    """A deployment's limits, the others as built in."""
    return Timeouts(5.0, first_event, 120.0, total, answer=answer)


@pytest.mark.parametrize(
    ("timeouts", "another", "expected"),
    [
        (limits(), True, AttemptLimits(250.0, 120.0)),
        (limits(), False, AttemptLimits(None, None)),
        (limits(answer=3.0), True, AttemptLimits(250.0, 3.0)),
        (limits(answer=3.0), False, AttemptLimits(None, 3.0)),
        (limits(first_event=180.0), True, AttemptLimits(250.0, 180.0)),
        (limits(first_event=180.0, answer=3.0), True, AttemptLimits(250.0, 3.0)),
        (limits(answer=400.0), True, AttemptLimits(250.0, 400.0)),
        (limits(total=100.0), True, AttemptLimits(100.0, 120.0)),
        (limits(total=100.0), False, AttemptLimits(100.0, None)),
    ],
)
def test_a_try_has_its_share_and_a_whole_answer_its_time_to_begin(
    timeouts: Timeouts, another: bool, expected: AttemptLimits
) -> None:
    assert attempt_limits(timeouts, 600.0, 500.0, another, RULES) == expected
