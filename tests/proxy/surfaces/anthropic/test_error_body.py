"""Errors in Anthropic's envelope."""

from providers.failure import Failure, FailureKind
from proxy.errors import (
    ErrorFacts,
    FieldProblem,
    GatewayError,
    OverloadReason,
    cooling_down,
    internal_error,
    invalid_key,
    invalid_request,
    method_not_allowed,
    model_not_allowed,
    model_not_found,
    no_healthy_deployment,
    overloaded,
    too_large,
    upstream_failed,
)
from proxy.surfaces.anthropic.error_body import error_body, error_status
from tests.support.looped import looped


@looped(
    ("error", "status", "kind"),
    [
        (invalid_request((FieldProblem(("x",), "'x' is wrong."),)), 400, "invalid_request_error"),
        (invalid_key(), 401, "authentication_error"),
        (model_not_allowed("m"), 403, "permission_error"),
        (model_not_found("m", ()), 404, "not_found_error"),
        (method_not_allowed("GET", "POST"), 405, "invalid_request_error"),
        (too_large(1), 413, "request_too_large"),
        (cooling_down(1, None), 429, "rate_limit_error"),
        (upstream_failed(Failure(FailureKind.QUOTA, "none left")), 429, "rate_limit_error"),
        (internal_error(), 500, "api_error"),
        (upstream_failed(Failure(FailureKind.SERVER, "broken")), 502, "api_error"),
        (upstream_failed(Failure(FailureKind.TIMEOUT, "late")), 504, "timeout_error"),
        (upstream_failed(Failure(FailureKind.OVERLOADED, "busy")), 529, "overloaded_error"),
        (overloaded(OverloadReason.MEMORY), 529, "overloaded_error"),
        (no_healthy_deployment(1, None), 529, "overloaded_error"),
    ],
)
def test_every_error_has_the_vendor_s_type_and_status(error: GatewayError, status: int, kind: str) -> None:
    assert error_status(error.facts) == status
    assert error_body(error.facts) == {
        "type": "error",
        "error": {"type": kind, "message": error.facts.message, "details": {"error_code": error.facts.code}},
    }


@looped(
    ("message", "shown"),
    [
        ("prompt is too long: 9 tokens > 8 maximum", "prompt is too long: 9 tokens > 8 maximum"),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (9000 in the "
            "prompt, 300 in the completion).",
            "prompt is too long: 9000 tokens > 8192 maximum",
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9300 tokens (8000 in the "
            "prompt, 1300 in the completion).",
            "input length and `max_tokens` exceed context limit: 8000 + 1300 > 8192",
        ),
        (
            "request (9000 tokens) exceeds the available context size (8192 tokens)",
            "prompt is too long: 9000 tokens > 8192 maximum",
        ),
        ("It is too much.", "prompt is too long: It is too much."),
    ],
)
def test_a_full_window_is_told_in_the_vendor_s_words(message: str, shown: str) -> None:
    facts = ErrorFacts(400, "invalid_request_error", "context_length_exceeded", message)
    error = error_body(facts)["error"]
    assert isinstance(error, dict)
    assert error["message"] == shown
