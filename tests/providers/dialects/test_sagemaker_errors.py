"""What SageMaker's errors mean."""

import pytest

from providers.dialects.sagemaker_errors import classify, failure_in_frame
from providers.failure import Failure, FailureKind
from tests.providers.dialects.native_kit import fixture, names_in

SAID = Failure(FailureKind.QUOTA, "the container's")
ERRORS: dict[str, tuple[int, str, FailureKind]] = {
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


def never(status: int, body: bytes) -> Failure:
    raise AssertionError("the container said nothing")


def test_the_fixtures_are_all_here() -> None:
    assert names_in("sagemaker", "errors") == sorted([*ERRORS, *OF_CONTAINER])


@pytest.mark.parametrize("name", ERRORS)
def test_errors_of_the_service_mean_what_it_says(name: str) -> None:
    status, named, kind = ERRORS[name]
    headers = {"x-amzn-errortype": named, "retry-after": "3"}
    failure = classify(status, headers, fixture("sagemaker", "errors", name), never)
    assert (failure.kind, failure.status, failure.retry_after) == (kind, status, 3.0)
    assert "123456789012" not in failure.message
    assert "10.0.0.7" not in failure.message


@pytest.mark.parametrize("name", ERRORS)
def test_without_a_type_the_status_tells(name: str) -> None:
    status, _, _ = ERRORS[name]
    failure = classify(status, {}, fixture("sagemaker", "errors", name), never)
    assert (failure.kind is FailureKind.INVALID_REQUEST) == (name == "error_400_validation.json")


@pytest.mark.parametrize("name", OF_CONTAINER)
def test_the_containers_word_is_handed_on_with_its_status(name: str) -> None:
    heard: list[int] = []

    def container(status: int, body: bytes) -> Failure:
        heard.append(status)
        assert body
        return SAID

    assert classify(424, {}, fixture("sagemaker", "errors", name), container) is SAID
    assert heard == [OF_CONTAINER[name]]


def test_frames_name_their_failure_in_headers() -> None:
    headers = {":message-type": "exception", ":exception-type": "InternalStreamFailure"}
    failure = failure_in_frame(headers, b"no json")
    assert (failure.kind, failure.status) == (FailureKind.SERVER, None)
    assert failure.message == "The upstream reported an error."
