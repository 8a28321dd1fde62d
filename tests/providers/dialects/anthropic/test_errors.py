"""The meaning of Anthropic's errors."""

import orjson

from providers.context_overflow import Overflow
from providers.dialects.anthropic.errors import classify_answer, failure_of
from providers.failure import GATEWAY_MESSAGES, Failure, FailureKind
from providers.json_types import JsonValue
from tests.providers.overflows import NOT_OVERFLOWS
from tests.support.looped import looped


def envelope(kind: str, message: str = "Something.", **more: JsonValue) -> bytes:
    return orjson.dumps(
        {
            "type": "error",
            "error": {"type": kind, "message": message, **more},
            "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
        }
    )


@looped(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", FailureKind.INVALID_REQUEST),
        (401, "authentication_error", FailureKind.AUTH),
        (402, "billing_error", FailureKind.QUOTA),
        (403, "permission_error", FailureKind.AUTH),
        (404, "not_found_error", FailureKind.NOT_FOUND),
        (409, "conflict_error", FailureKind.SERVER),
        (413, "request_too_large", FailureKind.INVALID_REQUEST),
        (429, "rate_limit_error", FailureKind.RATE_LIMITED),
        (500, "api_error", FailureKind.SERVER),
        (504, "timeout_error", FailureKind.TIMEOUT),
        (529, "overloaded_error", FailureKind.OVERLOADED),
    ],
)
def test_a_type_means_the_same_with_and_without_its_status(status: int, kind: str, expected: FailureKind) -> None:
    failure = classify_answer(status, {}, envelope(kind))
    assert (failure.kind, failure.status) == (expected, status)
    assert failure.message == GATEWAY_MESSAGES.get(expected, "Something.")
    assert failure_of(orjson.loads(envelope(kind))).kind is expected


@looped(
    ("status", "expected"),
    [
        (302, FailureKind.MALFORMED),
        (400, FailureKind.INVALID_REQUEST),
        (401, FailureKind.AUTH),
        (404, FailureKind.NOT_FOUND),
        (408, FailureKind.TIMEOUT),
        (413, FailureKind.INVALID_REQUEST),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.SERVER),
        (502, FailureKind.SERVER),
        (503, FailureKind.OVERLOADED),
        (529, FailureKind.OVERLOADED),
    ],
)
@looped("body", [b"<html>Bad Gateway</html>", b"", b"[]", b'{"error": "text"}', envelope("new_error")])
def test_without_a_known_type_the_status_decides(status: int, expected: FailureKind, body: bytes) -> None:
    assert classify_answer(status, {}, body).kind is expected


def test_what_is_no_json_is_not_repeated() -> None:
    assert classify_answer(502, {}, b"<html>secret</html>").message == "The upstream responded with status 502."
    assert failure_of({}) == Failure(FailureKind.SERVER, "The upstream reported an error.")


@looped(
    ("message", "expected"),
    [
        ("prompt is too long: 200027 tokens > 200000 maximum", FailureKind.CONTEXT_LENGTH),
        (
            "input length and `max_tokens` exceed context limit: 184915 + 20000 > 204648, decrease input length or "
            "`max_tokens` and try again",
            FailureKind.CONTEXT_LENGTH,
        ),
        ("Output blocked by content filtering policy", FailureKind.CONTENT_FILTER),
        ("Your credit balance is too low to access the Anthropic API.", FailureKind.QUOTA),
        (
            "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.",
            FailureKind.QUOTA,
        ),
        ("This organization has been disabled.", FailureKind.AUTH),
        ("This organization has been disabled for x\nsays the user", FailureKind.INVALID_REQUEST),
        ("messages: at least one message is required", FailureKind.INVALID_REQUEST),
    ],
)
def test_faults_that_share_a_type_are_told_apart_by_their_text(message: str, expected: FailureKind) -> None:
    assert classify_answer(400, {}, envelope("invalid_request_error", message)).kind is expected


def test_a_text_means_nothing_where_the_type_already_does() -> None:
    message = "prompt is too long: 5 tokens > 4 maximum"
    assert classify_answer(429, {}, envelope("rate_limit_error", message)).kind is FailureKind.RATE_LIMITED


def test_a_spend_limit_is_not_a_rate_limit() -> None:
    spent = envelope("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"})
    assert classify_answer(429, {}, spent).kind is FailureKind.QUOTA
    ramp = envelope("rate_limit_error", details={"error_code": "ramp_limit_exceeded"})
    assert classify_answer(429, {"retry-after": "7"}, ramp) == Failure(
        FailureKind.RATE_LIMITED, "Something.", 429, retry_after=7.0
    )


@looped(
    ("message", "param"),
    [
        ("prompt is too long: 5 tokens > 4 maximum", "prompt"),
        ("max_tokens: 65536 > 64000, which is the maximum allowed number of output tokens", "max_tokens"),
        ("stop_sequences: each stop sequence must contain non-whitespace", "stop"),
        ("tools.0.custom.name: String should match pattern", "tools"),
        ("Something else about temperature", None),
    ],
)
def test_the_field_at_fault_has_its_unified_name(message: str, param: str | None) -> None:
    assert classify_answer(400, {}, envelope("invalid_request_error", message)).param == param


def test_sizes_are_told() -> None:
    text = "input length and `max_tokens` exceed context limit: 184915 + 20000 > 204648, decrease input length"
    failure = classify_answer(400, {}, envelope("invalid_request_error", text))
    assert failure.overflow == Overflow(204648, 184915, 20000, exact=True)
    assert (failure.kind, failure.param, failure.message) == (FailureKind.CONTEXT_LENGTH, "prompt", text)
    text = "max_tokens: 65536 > 64000, which is the maximum allowed number of output tokens for claude"
    failure = classify_answer(400, {}, envelope("invalid_request_error", text))
    assert failure.overflow == Overflow(requested=65536, output_cap=64000)
    assert (failure.kind, failure.param, failure.message) == (FailureKind.INVALID_REQUEST, "max_tokens", text)


@looped("kind", ["rate_limit_error", "overloaded_error", "api_error", "authentication_error"])
def test_sizes_are_believed_only_of_errors_about_the_request(kind: str) -> None:
    assert classify_answer(500, {}, envelope(kind, "prompt is too long: 5 tokens > 4 maximum")).overflow is None


@looped("text", NOT_OVERFLOWS)
def test_errors_about_something_else_say_nothing_of_sizes(text: str) -> None:
    failure = classify_answer(400, {}, envelope("invalid_request_error", text))
    assert (failure.kind, failure.overflow) == (FailureKind.INVALID_REQUEST, None)


def test_a_message_is_made_fit_to_show() -> None:
    message = "bad key sk-ant-api03-abcdefgh\nat https://x.internal/y"
    assert classify_answer(500, {}, envelope("api_error", message)).message == "bad key [redacted] at [address]"


def test_what_is_between_the_operator_and_the_vendor_is_not_shown_to_clients() -> None:
    failure = classify_answer(400, {}, envelope("invalid_request_error", "Your credit balance is too low."))
    assert (failure.kind, failure.message) == (FailureKind.QUOTA, "The upstream's account has no credit left.")
