"""Failures: a verdict for each kind."""

from providers.context_overflow import MAX_TEXT
from providers.failure import (
    VERDICTS,
    Failure,
    FailureKind,
    Refusal,
    UpstreamError,
    kind_of_status,
    message_text,
)
from tests.support.looped import looped


def test_every_kind_has_a_verdict_with_an_error_status() -> None:
    assert VERDICTS.keys() == set(FailureKind)
    assert all(400 <= verdict.status <= 599 and verdict.code and verdict.type for verdict in VERDICTS.values())


def test_what_may_be_asked_again_may_be_asked_elsewhere() -> None:
    assert all(verdict.try_next for verdict in VERDICTS.values() if verdict.retry_same)


def test_what_a_deployment_may_be_asked_again_may_be_over_by_then() -> None:
    assert all(verdict.passes for verdict in VERDICTS.values() if verdict.retry_same)


@looped("kind", FailureKind)
def test_a_call_that_failed_may_have_been_executed_only_where_it_was_sent_and_not_refused(kind: FailureKind) -> None:
    unread = {FailureKind.MALFORMED, FailureKind.NONCONFORMING}
    cut_short = {FailureKind.TIMEOUT, FailureKind.SERVER, FailureKind.TRUNCATED, FailureKind.STALE, *unread}
    assert Failure(kind, "why").maybe_executed == (kind in cut_short)
    assert not Failure(kind, "why", unsent=True).maybe_executed


def test_a_fault_of_the_request_is_the_same_everywhere_and_nobodys_health() -> None:
    for kind in (FailureKind.INVALID_REQUEST, FailureKind.CONTEXT_LENGTH, FailureKind.CONTENT_FILTER):
        verdict = VERDICTS[kind]
        assert (verdict.status, verdict.try_next, verdict.counts_against) == (400, False, False)


def test_errors_carry_what_they_are_about() -> None:
    failure = Failure(FailureKind.SERVER, "broken")
    assert UpstreamError(failure).failure is failure
    assert str(UpstreamError(failure)) == "('server', 'broken')"
    refusal = Refusal("n", "no fan-out", "invalid_value")
    assert (refusal.param, refusal.message, refusal.code, str(refusal)) == (
        "n",
        "no fan-out",
        "invalid_value",
        "no fan-out",
    )


@looped(
    ("status", "kind"),
    [
        (429, FailureKind.RATE_LIMITED),
        (503, FailureKind.BUSY),
        (418, FailureKind.INVALID_REQUEST),
        (599, FailureKind.SERVER),
        (302, FailureKind.MALFORMED),
        (None, FailureKind.SERVER),
    ],
)
def test_a_status_means_what_the_vendor_says_of_it_or_what_its_class_does(
    status: int | None, kind: FailureKind
) -> None:
    known = {429: FailureKind.RATE_LIMITED, 503: FailureKind.BUSY}
    assert kind_of_status(status, known) is kind


@looped(("value", "text"), [("x", "x"), (None, ""), (7, ""), (["x"], ""), ("x" * 9000, "x" * MAX_TEXT)])
def test_of_a_vendor_s_text_so_much_is_read(value: object, text: str) -> None:
    assert message_text(value) == text
