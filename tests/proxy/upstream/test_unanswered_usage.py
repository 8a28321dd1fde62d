"""Calls that count although the client does not get their responses."""

import asyncio

from providers.completion import Choice, Completion, Usage
from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import plan_calls
from providers.failure import Failure, FailureKind, UpstreamError
from providers.unified_request import Operation
from proxy.deadlines import DeadlinePassed, Phase
from proxy.upstream.unanswered_usage import LONG_BODY, estimated, is_billed, usage_of_body, usage_of_call
from tests.providers.dialects.kit import target_of, text_request
from tests.support.looped import looped


def call() -> UpstreamRequest:
    return UpstreamRequest(target_of("openai"), Operation.CHAT, "http://host", b"{}", stream=False)


def failed(kind: FailureKind, status: int | None = None, **facts: object) -> UpstreamError:
    return UpstreamError(Failure(kind, "m", status=status, **facts))  # type: ignore[arg-type]


def counted_failure() -> UpstreamError:
    """Return a failure of a call whose usage was reported."""
    error = failed(FailureKind.MALFORMED, 200)
    error.counted = True
    return error


@looped(
    ("error", "billed"),
    [
        (asyncio.CancelledError(), True),
        (ConnectionError(), True),
        (DeadlinePassed(Phase.TOTAL, 1.0), True),
        (failed(FailureKind.TIMEOUT), True),
        (failed(FailureKind.MALFORMED, 200), True),
        (counted_failure(), False),
        (failed(FailureKind.TIMEOUT, unsent=True), False),
        (failed(FailureKind.TIMEOUT, 504), False),
        (failed(FailureKind.MALFORMED, 200, evidence="<html>"), False),
        (failed(FailureKind.RATE_LIMITED, 200), False),
        (failed(FailureKind.SERVER, 500), False),
        (failed(FailureKind.SERVER), True),
        (failed(FailureKind.SERVER, unsent=True), False),
        (failed(FailureKind.TRUNCATED), True),
        (failed(FailureKind.STALE), False),
        (ValueError(), False),
    ],
)
def test_a_call_that_a_vendor_saw_and_did_not_refuse_is_billed(error: BaseException, billed: bool) -> None:
    sent = call()
    assert not is_billed(error, sent)
    sent.note_written()
    assert is_billed(error, sent) is billed


def test_a_body_counts_by_its_bytes_and_a_call_by_its_prompt_or_what_was_sent() -> None:
    assert usage_of_body(9) == Usage(3, 0, estimated=True)
    request = text_request("one two three four ")
    assert usage_of_call(request, LONG_BODY, 7) == Usage(5, 2, estimated=True)
    assert usage_of_call(request, LONG_BODY + 4, 7) == Usage(LONG_BODY // 4 + 1, 2, estimated=True)


def test_a_usage_that_the_vendor_reported_is_kept_and_another_is_estimated() -> None:
    (call,) = plan_calls(text_request("hello"), target_of("openai")).calls
    choices = (Choice(0, "abcde", "stop"),)
    reported = Completion(choices, Usage(7, 7))
    assert estimated(call, reported) is reported
    assert estimated(call, Completion(choices, None)).usage == Usage(2, 2, estimated=True)
