"""Errors of Bedrock and SageMaker."""

import orjson

from providers.context_overflow import Overflow
from providers.dialects.platforms.aws_errors import (
    BEDROCK,
    NEEDS_PROFILE,
    SAGEMAKER,
    classify_answer,
    failure_in_frame,
    read_container_answer,
)
from providers.failure import GATEWAY_MESSAGES, FailureKind
from providers.json_types import JsonValue
from tests.providers.dialects import kit
from tests.providers.dialects.bedrock.kit import FIXTURES
from tests.providers.overflows import NOT_OVERFLOWS
from tests.support.looped import looped


def fixture(name: str) -> bytes:
    return next((FIXTURES / "errors").glob(f"{name}.*")).read_bytes()


def error_body(message: str = "Something.", **more: JsonValue) -> bytes:
    return orjson.dumps({"message": message, **more})


TYPES = [
    (400, "ValidationException", FailureKind.INVALID_REQUEST),
    (400, "ServiceQuotaExceededException", FailureKind.QUOTA),
    (403, "AccessDeniedException", FailureKind.AUTH),
    (403, "ExpiredTokenException", FailureKind.AUTH),
    (403, "InvalidSignatureException", FailureKind.AUTH),
    (403, "UnrecognizedClientException", FailureKind.AUTH),
    (404, "ResourceNotFoundException", FailureKind.NOT_FOUND),
    (408, "ModelTimeoutException", FailureKind.TIMEOUT),
    (424, "ModelErrorException", FailureKind.SERVER),
    (424, "ModelStreamErrorException", FailureKind.SERVER),
    (429, "ThrottlingException", FailureKind.RATE_LIMITED),
    (429, "ModelNotReadyException", FailureKind.OVERLOADED),
    (500, "InternalServerException", FailureKind.SERVER),
    (503, "ServiceUnavailableException", FailureKind.OVERLOADED),
]


@looped(("status", "named", "expected"), TYPES)
@looped("around", ["{}", "{}:http://internal.amazon.com/coral/com.amazon.bedrock/", "com.amazon.x#{}"])
def test_the_type_decides_wherever_it_stands(status: int, named: str, expected: FailureKind, around: str) -> None:
    header = around.format(named)
    failure = classify_answer(BEDROCK, status, {"x-amzn-errortype": header}, error_body())
    assert (failure.kind, failure.status) == (expected, status)
    assert failure.message == GATEWAY_MESSAGES.get(expected, "Something.")
    assert classify_answer(BEDROCK, status, {}, error_body(__type=header)).kind is expected
    in_stream = {":message-type": "exception", ":exception-type": named[0].lower() + named[1:]}
    assert failure_in_frame(BEDROCK, in_stream, error_body()).kind is expected


@looped(
    ("status", "expected"),
    [
        (302, FailureKind.MALFORMED),
        (400, FailureKind.INVALID_REQUEST),
        (401, FailureKind.AUTH),
        (403, FailureKind.AUTH),
        (404, FailureKind.NOT_FOUND),
        (424, FailureKind.SERVER),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.SERVER),
        (502, FailureKind.SERVER),
        (503, FailureKind.OVERLOADED),
    ],
)
@looped("body", [fixture("502"), b"", b"[]", b'{"message": 7}', error_body()])
def test_without_a_known_type_the_status_decides(status: int, expected: FailureKind, body: bytes) -> None:
    assert classify_answer(BEDROCK, status, {"x-amzn-errortype": "NewException"}, body).kind is expected


def test_an_operation_nobody_knows_is_a_path_that_is_not_there() -> None:
    body = b'{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}'
    assert classify_answer(BEDROCK, 400, {}, body).kind is FailureKind.NOT_FOUND


def test_what_is_no_json_is_not_repeated() -> None:
    assert classify_answer(BEDROCK, 502, {}, fixture("502")).message == "The upstream responded with status 502."
    assert failure_in_frame(BEDROCK, {}, b"<html>").message == "The upstream reported an error."


@looped(
    ("name", "kind", "expected"),
    [
        ("400_filter", "ValidationException", FailureKind.CONTENT_FILTER),
        ("400_throughput", "ValidationException", FailureKind.NOT_FOUND),
        ("400_stop", "ValidationException", FailureKind.INVALID_REQUEST),
        ("400_context", "ValidationException", FailureKind.CONTEXT_LENGTH),
        ("400_too_long", "ValidationException", FailureKind.CONTEXT_LENGTH),
        ("403", "AccessDeniedException", FailureKind.AUTH),
        ("404", "ResourceNotFoundException", FailureKind.NOT_FOUND),
        ("424", "ModelErrorException", FailureKind.INVALID_REQUEST),
        ("429", "ThrottlingException", FailureKind.RATE_LIMITED),
        ("429_day", "ThrottlingException", FailureKind.QUOTA),
        ("429_loading", "ModelNotReadyException", FailureKind.OVERLOADED),
    ],
)
def test_faults_that_share_a_type_are_told_apart_by_their_text(name: str, kind: str, expected: FailureKind) -> None:
    assert classify_answer(BEDROCK, int(name[:3]), {"x-amzn-errortype": kind}, fixture(name)).kind is expected


def test_a_model_without_throughput_of_its_own_names_the_remedy() -> None:
    failure = classify_answer(BEDROCK, 400, {"x-amzn-errortype": "ValidationException"}, fixture("400_throughput"))
    assert failure.message == NEEDS_PROFILE


@looped(
    ("original", "expected"),
    [
        (400, FailureKind.INVALID_REQUEST),
        (429, FailureKind.RATE_LIMITED),
        (500, FailureKind.SERVER),
        (503, FailureKind.OVERLOADED),
        (None, FailureKind.SERVER),
    ],
)
def test_a_model_s_own_status_decides(original: int | None, expected: FailureKind) -> None:
    body = error_body(originalStatusCode=original)
    assert classify_answer(BEDROCK, 424, {"x-amzn-errortype": "ModelErrorException"}, body).kind is expected
    frame = {":message-type": "exception", ":exception-type": "modelStreamErrorException"}
    assert failure_in_frame(BEDROCK, frame, body).kind is expected


def test_sizes_are_told() -> None:
    validation = {"x-amzn-errortype": "ValidationException"}
    failure = classify_answer(BEDROCK, 400, validation, fixture("400_window"))
    assert (failure.kind, failure.param) == (FailureKind.CONTEXT_LENGTH, "prompt")
    assert failure.overflow == Overflow(204648, 184915, 20000, exact=True)
    failure = classify_answer(BEDROCK, 400, validation, fixture("400_cap"))
    assert (failure.kind, failure.param) == (FailureKind.INVALID_REQUEST, "max_tokens")
    assert failure.overflow == Overflow(output_cap=10000)
    assert classify_answer(BEDROCK, 400, validation, fixture("400_context")).overflow == Overflow(
        200000, 200027, exact=True, prompt_alone=True
    )


@looped(("status", "named", "kind"), [row for row in TYPES if row[2] is not FailureKind.INVALID_REQUEST])
def test_sizes_are_believed_only_of_errors_about_the_request(status: int, named: str, kind: FailureKind) -> None:
    failure = classify_answer(BEDROCK, status, {"x-amzn-errortype": named}, fixture("400_context"))
    assert (failure.kind, failure.overflow) == (kind, None)


@looped("text", NOT_OVERFLOWS)
def test_errors_about_something_else_say_nothing_of_sizes(text: str) -> None:
    assert classify_answer(BEDROCK, 400, {"x-amzn-errortype": "ValidationException"}, error_body(text)).overflow is None


@looped(
    ("field", "param"),
    [
        ("stopSequences", "stop"),
        ("toolConfig.toolChoice.any", "tool_choice"),
        ("toolConfig.toolChoice.tool", "tool_choice"),
        ("toolConfig", "tools"),
        ("outputConfig.textFormat", "response_format"),
        ("image", "images"),
        ("temperature", "temperature"),
        ("performanceConfig.latency", None),
    ],
)
def test_the_field_at_fault_has_its_unified_name(field: str, param: str | None) -> None:
    message = f"This model doesn't support the {field} field. Remove {field} and try again."
    failure = classify_answer(BEDROCK, 400, {"x-amzn-errortype": "ValidationException"}, error_body(message))
    assert (failure.param, failure.message) == (param, message)


def test_a_wait_that_is_asked_for_is_passed_on() -> None:
    headers = {"x-amzn-errortype": "ThrottlingException", "retry-after": "7"}
    assert classify_answer(BEDROCK, 429, headers, fixture("429")).retry_after == 7.0
    assert (
        classify_answer(BEDROCK, 429, {"x-amzn-errortype": "ThrottlingException"}, fixture("429")).retry_after is None
    )


def test_what_is_between_the_operator_and_the_vendor_is_not_shown_to_clients() -> None:
    failure = classify_answer(BEDROCK, 403, {"x-amzn-errortype": "AccessDeniedException"}, fixture("403"))
    assert "arn:" not in failure.message
    assert "ada" not in failure.message


SAGEMAKER_ERRORS: dict[str, tuple[int, str, FailureKind]] = {
    "error_400_validation.json": (400, "ValidationError", FailureKind.INVALID_REQUEST),
    "error_400_endpoint.json": (400, "ValidationError", FailureKind.NOT_FOUND),
    "error_403.json": (403, "ExpiredTokenException:http://internal.amazon.com/", FailureKind.AUTH),
    "error_424_bare.json": (424, "ModelError", FailureKind.TIMEOUT),
    "error_429_loading.json": (429, "ModelNotReadyException", FailureKind.OVERLOADED),
    "error_500.json": (500, "InternalFailure", FailureKind.SERVER),
    "error_502.html": (502, "", FailureKind.SERVER),
    "error_503.json": (503, "ServiceUnavailable", FailureKind.OVERLOADED),
    "error_530.json": (530, "InternalDependencyException", FailureKind.SERVER),
}
OF_CONTAINER = {"error_424_context.json": 422, "error_424_busy.json": 429, "error_424_html.json": 502}


def sagemaker_fixture(name: str) -> bytes:
    return kit.fixture("sagemaker", "errors", name)


def test_every_sagemaker_fixture_is_used() -> None:
    assert kit.names_in("sagemaker", "errors") == sorted([*SAGEMAKER_ERRORS, *OF_CONTAINER])


@looped("name", SAGEMAKER_ERRORS)
def test_errors_of_sagemaker_are_classified_by_their_type(name: str) -> None:
    status, named, kind = SAGEMAKER_ERRORS[name]
    headers = {"x-amzn-errortype": named, "retry-after": "3"}
    assert read_container_answer(sagemaker_fixture(name)) is None
    failure = classify_answer(SAGEMAKER, status, headers, sagemaker_fixture(name))
    assert (failure.kind, failure.status, failure.retry_after) == (kind, status, 3.0)
    assert "123456789012" not in failure.message
    assert "10.0.0.7" not in failure.message


@looped("name", SAGEMAKER_ERRORS)
def test_without_a_type_sagemakers_status_decides(name: str) -> None:
    status, _, _ = SAGEMAKER_ERRORS[name]
    failure = classify_answer(SAGEMAKER, status, {}, sagemaker_fixture(name))
    assert (failure.kind is FailureKind.INVALID_REQUEST) == (name == "error_400_validation.json")


def test_sagemakers_type_is_read_from_the_header_alone() -> None:
    body = error_body(__type="AccessDeniedException")
    assert classify_answer(SAGEMAKER, 400, {}, body).kind is FailureKind.INVALID_REQUEST


@looped("name", OF_CONTAINER)
def test_a_containers_answer_has_its_own_status_and_body(name: str) -> None:
    answered = read_container_answer(sagemaker_fixture(name))
    assert answered is not None
    assert answered[0] == OF_CONTAINER[name]
    assert answered[1]


def test_sagemakers_frames_name_their_failure_in_headers() -> None:
    headers = {":message-type": "exception", ":exception-type": "InternalStreamFailure"}
    failure = failure_in_frame(SAGEMAKER, headers, b"no json")
    assert (failure.kind, failure.status) == (FailureKind.SERVER, None)
    assert failure.message == "The upstream reported an error."
