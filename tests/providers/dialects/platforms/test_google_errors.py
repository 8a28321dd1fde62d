"""The meaning of Google's errors."""

import orjson
import pytest

from providers.dialects.platforms.google_errors import classify_answer, error_in, failure_of
from providers.failure import GATEWAY_MESSAGES, Failure, FailureKind
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.gemini.kit import DIALECT, FIXTURES, error, sent
from tests.support.looped import looped

KINDS = {
    "invalid": (400, FailureKind.INVALID_REQUEST),
    "unknown_field": (400, FailureKind.INVALID_REQUEST),
    "key": (400, FailureKind.AUTH),
    "precondition": (400, FailureKind.AUTH),
    "context": (400, FailureKind.CONTEXT_LENGTH),
    "context_bare": (400, FailureKind.CONTEXT_LENGTH),
    "context_vertex": (400, FailureKind.CONTEXT_LENGTH),
    "output_cap": (400, FailureKind.INVALID_REQUEST),
    "rate_limit": (429, FailureKind.RATE_LIMITED),
    "rate_limit_shared": (429, FailureKind.RATE_LIMITED),
    "quota_day": (429, FailureKind.QUOTA),
    "prepaid": (402, FailureKind.QUOTA),
    "permission": (403, FailureKind.AUTH),
    "file": (403, FailureKind.INVALID_REQUEST),
    "not_found": (404, FailureKind.NOT_FOUND),
    "unavailable": (503, FailureKind.OVERLOADED),
    "listed": (503, FailureKind.OVERLOADED),
    "internal": (500, FailureKind.SERVER),
    "deadline": (504, FailureKind.TIMEOUT),
}


def failed(name: str, **headers: str) -> Failure:
    status, _ = KINDS[name]
    return classify_answer(
        status, {key.replace("_", "-"): value for key, value in headers.items()}, error(f"{name}.json")
    )


def test_the_fixtures_are_all_here() -> None:
    assert {path.name for path in (FIXTURES / "errors").iterdir()} == {f"{name}.json" for name in KINDS} | {
        "proxy.html"
    }


@looped("name", KINDS)
def test_an_error_is_of_its_kind(name: str) -> None:
    status, kind = KINDS[name]
    failure = DIALECT.classify(sent(), status, {}, error(f"{name}.json"))
    assert (failure.kind, failure.status) == (kind, status)
    assert failure.message


@looped(
    ("status", "kind"),
    [
        (302, FailureKind.MALFORMED),
        (400, FailureKind.INVALID_REQUEST),
        (401, FailureKind.AUTH),
        (404, FailureKind.NOT_FOUND),
        (409, FailureKind.SERVER),
        (429, FailureKind.RATE_LIMITED),
        (499, FailureKind.SERVER),
        (502, FailureKind.SERVER),
        (503, FailureKind.OVERLOADED),
        (504, FailureKind.TIMEOUT),
    ],
)
def test_a_body_that_says_nothing_leaves_the_status(status: int, kind: FailureKind) -> None:
    for body in (error("proxy.html"), b"", b"[]", b"3", b'{"error":3}', b'{"error":{"status":"FUTURE"}}'):
        failure = classify_answer(status, {}, body)
        assert (failure.kind, failure.status) == (kind, status)


def test_a_named_field_is_the_unified_one() -> None:
    assert failed("invalid").param == "temperature"
    assert failed("unknown_field").param is None
    assert failure_of({"message": "Invalid value at 'generation_config.top_k'", "code": 400}, 400).param == "top_k"


def test_sizes_are_read_from_the_message() -> None:
    too_long, cap = failed("context").overflow, failed("output_cap")
    assert too_long is not None
    assert (too_long.prompt, too_long.prompt_alone, too_long.window) == (1200345, True, None)
    assert failed("context").param == "prompt"
    assert cap.overflow is not None
    assert (cap.overflow.output_cap, cap.param) == (65536, "max_tokens")


def test_the_wait_is_the_details_unless_a_header_tells() -> None:
    assert failed("rate_limit").retry_after == pytest.approx(45.837906927)
    assert failed("rate_limit", retry_after="3").retry_after == 3
    assert failed("rate_limit_shared").retry_after is None
    assert failure_of({"message": "Please retry in 7.5s.", "code": 429}, 429).retry_after == 7.5


@looped(
    "details",
    ["x", [3], [{"retryDelay": 3}], [{"retryDelay": "soon"}], [{"violations": 3}], [{"reason": []}], [{"reason": {}}]],
)
def test_details_that_make_no_sense_are_passed_over(details: JsonValue) -> None:
    failure = failure_of({"code": 429, "message": "m", "details": details}, 429)
    assert (failure.kind, failure.retry_after) == (FailureKind.RATE_LIMITED, None)


def test_the_operators_names_stay_unsaid() -> None:
    assert failed("permission").message == GATEWAY_MESSAGES[FailureKind.AUTH]
    message = "Quota exceeded for consumer 'project_number:123456789012' in projects/acme-prod-1/locations/global."
    shown = failure_of({"code": 429, "message": message}, 429).message
    assert "123456789012" not in shown
    assert "acme" not in shown


def test_an_error_without_a_status_of_http_goes_by_its_own_number() -> None:
    failure = failure_of({"code": 503, "message": "Busy."})
    assert (failure.kind, failure.status, failure.message) == (FailureKind.OVERLOADED, None, "Busy.")
    assert failure_of({}).message == "The upstream reported an error."


@looped(
    ("value", "found"),
    [
        ({"error": {"code": 1}}, {"code": 1}),
        ([{"error": {"code": 1}}], {"code": 1}),
        ({"error": "invalid_grant"}, {"message": "invalid_grant"}),
        ({}, None),
        ([], None),
        ("x", None),
    ],
)
def test_an_envelope_may_be_a_list_of_one(value: JsonValue, found: JsonObject | None) -> None:
    assert error_in(orjson.loads(orjson.dumps(value))) == found
