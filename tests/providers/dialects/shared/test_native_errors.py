"""The meaning of the native dialects' errors in one table: each fixture, its kind, its sizes and its wait."""

from collections.abc import Mapping
from dataclasses import dataclass

from providers.context_overflow import Overflow
from providers.failure import Failure, FailureKind
from providers.target import Target
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.kit import chat_request, fixture, names_in, sent_for, target_of, text_request
from tests.support.looped import looped


@dataclass(frozen=True, slots=True)
class ErrorMeaning:
    """The meaning of one response: its HTTP status and failure kind, and the sizes and seconds to wait in its body."""

    status: int
    kind: FailureKind
    overflow: Overflow | None = None
    wait: float | None = None


@dataclass(frozen=True, slots=True)
class Wire:
    """A dialect's deployment, a valid request, and its error fixtures by file."""

    target: Target
    request: UnifiedRequest
    errors: Mapping[str, ErrorMeaning]


WIRES = {
    "cohere": Wire(
        target_of("cohere", "command-a-03-2025"),
        chat_request(),
        {
            "error_400_cap.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST, Overflow(output_cap=4096)),
            "error_400_context.json": ErrorMeaning(400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, total=4310)),
            "error_400_size.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=132000, prompt=143326, exact=True, prompt_alone=True)
            ),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_404_model.json": ErrorMeaning(404, FailureKind.NOT_FOUND),
            "error_422.json": ErrorMeaning(422, FailureKind.INVALID_REQUEST),
            "error_429_month.json": ErrorMeaning(429, FailureKind.QUOTA),
            "error_429_rate.json": ErrorMeaning(429, FailureKind.RATE_LIMITED),
            "error_498.json": ErrorMeaning(498, FailureKind.AUTH),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
        },
    ),
    "ollama": Wire(
        target_of("ollama_native", "qwen3:8b"),
        chat_request(),
        {
            "error_400_context.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_400_insert.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_400_long.json": ErrorMeaning(400, FailureKind.CONTEXT_LENGTH, Overflow(prompt_alone=True)),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_404.json": ErrorMeaning(404, FailureKind.NOT_FOUND),
            "error_429.json": ErrorMeaning(429, FailureKind.QUOTA),
            "error_500.json": ErrorMeaning(500, FailureKind.SERVER),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503.json": ErrorMeaning(503, FailureKind.OVERLOADED),
        },
    ),
    "tgi": Wire(
        target_of("tgi_native"),
        text_request(),
        {
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_422_context.json": ErrorMeaning(
                422, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=4090, exact=True)
            ),
            "error_422_inputs.json": ErrorMeaning(
                422, FailureKind.CONTEXT_LENGTH, Overflow(prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_422_shape.txt": ErrorMeaning(422, FailureKind.INVALID_REQUEST),
            "error_422_value.json": ErrorMeaning(422, FailureKind.INVALID_REQUEST),
            "error_424.json": ErrorMeaning(424, FailureKind.SERVER),
            "error_429.json": ErrorMeaning(429, FailureKind.OVERLOADED),
            "error_500.json": ErrorMeaning(500, FailureKind.SERVER),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503_loading.json": ErrorMeaning(503, FailureKind.OVERLOADED, wait=20.5),
        },
    ),
    "llamacpp": Wire(
        target_of("llamacpp_native"),
        text_request(),
        {
            "error_400_context.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_400_grammar.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_404.json": ErrorMeaning(404, FailureKind.NOT_FOUND),
            "error_500_context.json": ErrorMeaning(500, FailureKind.CONTEXT_LENGTH, Overflow(prompt_alone=True)),
            "error_501_infill.json": ErrorMeaning(501, FailureKind.INVALID_REQUEST),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503_loading.json": ErrorMeaning(503, FailureKind.OVERLOADED),
        },
    ),
    "sglang": Wire(
        target_of("sglang_native"),
        text_request(),
        {
            "error_400_context.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_400_contract.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_400_sum.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=900, requested=4100, exact=True)
            ),
            "error_400_value.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503.json": ErrorMeaning(503, FailureKind.OVERLOADED),
        },
    ),
    "triton": Wire(
        target_of("triton", "ensemble", max_output_tokens=16),
        text_request(),
        {
            "error_400_model.json": ErrorMeaning(400, FailureKind.NOT_FOUND),
            "error_400_shape.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_429.json": ErrorMeaning(429, FailureKind.RATE_LIMITED),
            "error_500.json": ErrorMeaning(500, FailureKind.SERVER),
            "error_500_context.json": ErrorMeaning(
                500, FailureKind.CONTEXT_LENGTH, Overflow(prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503.json": ErrorMeaning(503, FailureKind.OVERLOADED),
        },
    ),
    "llm_engine": Wire(
        target_of("llm_engine", "llama-3", max_output_tokens=16),
        text_request(),
        {
            "error_400_context.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=4090, requested=16, exact=True)
            ),
            "error_400_value.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_404.json": ErrorMeaning(404, FailureKind.NOT_FOUND),
            "error_422.json": ErrorMeaning(422, FailureKind.INVALID_REQUEST),
            "error_429.json": ErrorMeaning(429, FailureKind.RATE_LIMITED),
            "error_500.json": ErrorMeaning(500, FailureKind.SERVER),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_503.json": ErrorMeaning(503, FailureKind.OVERLOADED),
        },
    ),
    "watsonx": Wire(
        target_of("watsonx", "ibm/granite", base_url="https://eu-de.ml.cloud.ibm.com/projects/p-1"),
        text_request(),
        {
            "error_400_context.json": ErrorMeaning(
                400, FailureKind.CONTEXT_LENGTH, Overflow(window=4096, prompt=5210, exact=True, prompt_alone=True)
            ),
            "error_400_value.json": ErrorMeaning(400, FailureKind.INVALID_REQUEST),
            "error_401.json": ErrorMeaning(401, FailureKind.AUTH),
            "error_403.json": ErrorMeaning(403, FailureKind.AUTH),
            "error_403_quota.json": ErrorMeaning(403, FailureKind.QUOTA),
            "error_404.json": ErrorMeaning(404, FailureKind.NOT_FOUND),
            "error_429.json": ErrorMeaning(429, FailureKind.RATE_LIMITED),
            "error_500.json": ErrorMeaning(500, FailureKind.SERVER),
            "error_502.html": ErrorMeaning(502, FailureKind.SERVER),
            "error_520.json": ErrorMeaning(520, FailureKind.SERVER),
        },
    ),
}
PRIVATE = ("10.0.0.7", "abc")  # the host in a 502's page, and the key in Ollama's sign-in address
ERRORS = [(wire, name) for wire in WIRES for name in WIRES[wire].errors]


def failure_of(wire: str, name: str, headers: dict[str, str]) -> Failure:
    row = WIRES[wire]
    sent = sent_for(row.request, row.target)
    return row.target.dialect.classify(sent, row.errors[name].status, headers, fixture(wire, "errors", name))


@looped("wire", WIRES)
def test_the_errors_are_all_here(wire: str) -> None:
    assert names_in(wire, "errors") == sorted(WIRES[wire].errors)


@looped(("wire", "name"), ERRORS)
def test_errors_mean_what_their_server_says(wire: str, name: str) -> None:
    told = WIRES[wire].errors[name]
    failure = failure_of(wire, name, {})
    assert (failure.kind, failure.status, failure.retry_after) == (told.kind, told.status, told.wait)
    assert failure.overflow == told.overflow
    assert not [private for private in PRIVATE if private in failure.message]


@looped(("wire", "name"), ERRORS)
def test_a_header_says_more_of_the_wait_than_a_body(wire: str, name: str) -> None:
    told = WIRES[wire].errors[name]
    failure = failure_of(wire, name, {"retry-after": "3"})
    assert (failure.kind, failure.status, failure.retry_after) == (told.kind, told.status, 3.0)
