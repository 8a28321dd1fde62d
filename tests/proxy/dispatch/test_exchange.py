"""The time that a request and one of its attempts have."""

from dataclasses import replace

from providers.target import Timeouts
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines, Phase
from proxy.dispatch.exchange import AttemptLimits, Exchange, attempt_limits
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import ANYONE
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped


def limits(total: float = 600.0, answer: float | None = None, first_event: float = 60.0) -> Timeouts:
    """A deployment's limits, the others as built in."""
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


TARGET = replace(target("openai"), timeouts=limits(total=100.0))


def exchange(*, hurried: bool = False) -> Exchange[UnifiedRequest]:
    plan = Plan("v/m", "v/m", (TARGET,), False, ())
    request = UnifiedRequest(Operation.COMPLETIONS, "v/m", TextPrompt(("hi",)), {})
    record = RequestRecord("r1", 0.0, "openai", "/v1/completions")
    return Exchange(plan, ANYONE, request, record, Deadlines(5.0), 5.0, hurried)


async def test_an_attempt_that_only_the_client_s_deadline_ended_does_not_count_against_the_deployment() -> None:
    assert exchange(hurried=True).impatient(Phase.TOTAL, 5.0, TARGET)
    assert not exchange(hurried=True).impatient(Phase.TOTAL, 100.0, TARGET)
    assert not exchange(hurried=True).impatient(Phase.IDLE, 5.0, TARGET)
    assert not exchange().impatient(Phase.TOTAL, 5.0, TARGET)


async def test_a_branch_is_the_same_request_with_a_record_and_deadlines_of_its_own() -> None:
    whole, record, deadlines = exchange(hurried=True), RequestRecord("r2", 0.0, "openai", "/"), Deadlines(1.0)
    branch = whole.branch(record, deadlines)
    assert (branch.record, branch.deadlines) == (record, deadlines)
    assert (branch.plan, branch.request, branch.total, branch.hurried) == (whole.plan, whole.request, 5.0, True)
