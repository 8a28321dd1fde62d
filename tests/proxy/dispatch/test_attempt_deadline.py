"""The deadlines of one attempt."""

from providers.target import Timeouts
from proxy.dispatch.attempt_deadline import AttemptLimits, attempt_limits
from tests.support.looped import looped


def limits(total: float = 600.0, answer: float | None = None, first_event: float = 60.0) -> Timeouts:
    """Return timeouts with these values, and the built-in values for the others."""
    return Timeouts(5.0, first_event, 120.0, total, answer=answer)


@looped(
    ("timeouts", "share", "expected"),
    [
        (limits(), 250.0, AttemptLimits(250.0, 120.0)),
        (limits(), None, AttemptLimits(None, None)),
        (limits(answer=3.0), 250.0, AttemptLimits(250.0, 3.0)),
        (limits(answer=3.0), None, AttemptLimits(None, 3.0)),
        (limits(first_event=180.0), 250.0, AttemptLimits(250.0, 180.0)),
        (limits(first_event=180.0, answer=3.0), 250.0, AttemptLimits(250.0, 3.0)),
        (limits(answer=400.0), 250.0, AttemptLimits(250.0, 400.0)),
        (limits(total=100.0), 250.0, AttemptLimits(100.0, 120.0)),
        (limits(total=100.0), None, AttemptLimits(100.0, None)),
    ],
)
def test_a_try_has_its_share_and_a_whole_answer_its_time_to_begin(
    timeouts: Timeouts, share: float | None, expected: AttemptLimits
) -> None:
    assert attempt_limits(timeouts, 600.0, share) == expected
