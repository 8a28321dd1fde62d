"""The meaning of error responses: envelopes, statuses, codes, windows, waits, and the parts that a client may see."""

from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.context_overflow import Overflow
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.failure import Failure, FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.vendor_text.vet_message import MAX_MESSAGE, vet
from tests.providers.dialects.openai.kit import DIALECT, sent
from tests.providers.overflows import NOT_OVERFLOWS, SAMPLES, Sample
from tests.support.looped import looped

K = FailureKind


def failed(
    status: int, body: JsonValue | bytes, row: str = "openai", headers: Mapping[str, str] | None = None
) -> Failure:
    raw = body if isinstance(body, bytes) else orjson.dumps(body)
    return DIALECT.classify(sent(row), status, headers or {}, raw)


@looped(
    "body",
    [
        {"error": {"message": "too hot", "type": "invalid_request_error", "param": None, "code": None}},
        {"error": {"object": "error", "message": "too hot", "code": 400}},
        {"object": "error", "message": "too hot", "type": "BadRequestError", "param": None, "code": 400},
        {"message": "too hot", "type": "invalid_request_error", "param": "temperature", "code": "wrong"},
        {"error": "too hot"},
        {"code": "Client specified an invalid argument", "error": "too hot"},
        {"error": "too hot", "error_type": "validation"},
        {"detail": "too hot"},
        {"detail": [{"msg": "too hot", "type": "value_error"}]},
        {"detail": {"error": {"message": "too hot"}}},
        {"fault": {"faultstring": "too hot", "detail": {"errorcode": "x"}}},
        [{"error": {"code": 400, "message": "too hot", "status": "INVALID_ARGUMENT"}}],
        {"error": {"code": "1210", "message": "too hot"}},
        {"error_code": "BAD_REQUEST", "message": "too hot"},
        {"success": False, "errors": [{"code": 5006, "message": "too hot"}], "result": None, "messages": []},
        b"too hot",
    ],
)
def test_the_message_is_found_in_every_envelope(body: JsonValue | bytes) -> None:
    failure = failed(400, body)
    assert (failure.kind, failure.message, failure.status) == (K.INVALID_REQUEST, "too hot", 400)


@looped("body", [b"", b"<html><h1>Bad</h1></html>", b"{}", {"error": {}}, {"detail": []}])
def test_without_a_message_the_status_is_told(body: JsonValue | bytes) -> None:
    assert failed(502, body).message == "The upstream responded with status 502 (server)."


def test_a_list_of_details_names_the_fields() -> None:
    detail: JsonValue = [{"loc": ["body", "n"], "msg": "too big"}, {"msg": "bad"}, "odd"]
    assert failed(422, {"detail": detail}).message == "body.n: too big; bad; odd"


LONG = "Prompt contains 40687 tokens and 0 draft tokens, too large for model with 32768 maximum context length"


def error(code: JsonValue, message: str = "no", **more: JsonValue) -> JsonObject:
    return {"error": {"message": message, "code": code, **more}}


@looped(
    ("row", "status", "body", "kind"),
    [
        ("openai", 401, error("invalid_api_key"), K.AUTH),
        ("openai", 403, error(None), K.AUTH),
        ("openai", 404, error("model_not_found"), K.NOT_FOUND),
        ("openai", 408, error(None), K.TIMEOUT),
        ("openai", 409, error(None), K.SERVER),
        ("openai", 413, error(None), K.INVALID_REQUEST),
        ("openai_compatible", 424, error(None), K.SERVER),
        ("openai_compatible", 425, error(None), K.OVERLOADED),
        ("openai", 418, error(None), K.INVALID_REQUEST),
        ("openai", 302, b"", K.MALFORMED),
        ("openai", 429, error("rate_limit_exceeded"), K.RATE_LIMITED),
        ("openai", 429, error("insufficient_quota"), K.QUOTA),
        ("openai", 429, error(None, "maximum context length is 8 tokens"), K.RATE_LIMITED),
        ("openai", 500, error(None, type="server_error"), K.SERVER),
        ("openai", 503, error(None, type="server_error"), K.OVERLOADED),
        ("openai", 504, b"", K.TIMEOUT),
        ("openai", 524, b"<html>", K.TIMEOUT),
        ("openai", 529, b"", K.OVERLOADED),
        ("openai", 599, b"", K.SERVER),
        ("openai", 400, error("string_above_max_length", "string too long"), K.INVALID_REQUEST),
        ("azure", 400, error("content_filter"), K.CONTENT_FILTER),
        ("azure", 404, error("DeploymentNotFound"), K.NOT_FOUND),
        ("azure", 400, error("OperationNotSupported"), K.NOT_FOUND),
        ("fireworks", 412, error(None), K.NOT_FOUND),
        ("fireworks", 402, error(None), K.QUOTA),
        ("together", 403, error(None, "inputs is longer than the model's context length (8 tokens)"), K.CONTEXT_LENGTH),
        ("together", 403, error(None), K.AUTH),
        ("together", 503, error(None), K.OVERLOADED),
        ("groq", 498, error("capacity_exceeded"), K.OVERLOADED),
        ("groq", 413, error("rate_limit_exceeded", "too large: tokens per minute (TPM)"), K.TOO_LARGE),
        ("groq", 400, error("tool_use_failed"), K.NONCONFORMING),
        ("mistral", 429, {"object": "error", "message": "no", "code": "3505"}, K.OVERLOADED),
        ("mistral", 400, {"object": "error", "message": LONG, "code": "3051"}, K.CONTEXT_LENGTH),
        ("mistral", 400, {"message": "Reasoning input is not enabled", "code": "3051"}, K.INVALID_REQUEST),
        ("deepseek", 402, error(None), K.QUOTA),
        ("openrouter", 403, error(403), K.AUTH),
        ("openrouter", 403, error(403, metadata={"reasons": ["violence"]}), K.CONTENT_FILTER),
        ("openrouter", 403, error(403, metadata={"reasons": []}), K.AUTH),
        ("openrouter", 502, error(502), K.SERVER),
        ("openrouter", 502, error(502, metadata={"error_type": "payment_required"}), K.QUOTA),
        ("openrouter", 400, error(400, metadata={"error_type": "a type of tomorrow"}), K.INVALID_REQUEST),
        ("openrouter", 404, error(404, "No endpoints found that support tool use."), K.UNSUPPORTED),
        ("openai", 400, error("unknown", "Extra inputs: 'context_length_exceeded_behavior'"), K.INVALID_REQUEST),
        (
            "openrouter",
            400,
            error(400, "Provider returned error", metadata={"raw": '{"m":"prompt is too long"}'}),
            K.CONTEXT_LENGTH,
        ),
        ("llamacpp", 503, error(503, type="unavailable_error"), K.OVERLOADED),
        ("llamacpp", 400, error(400, type="exceed_context_size_error"), K.CONTEXT_LENGTH),
        ("tgi", 429, {"error": "Model is overloaded", "error_type": "overloaded"}, K.OVERLOADED),
        ("tgi", 424, {"error": "Request failed", "error_type": "generation"}, K.SERVER),
        ("vllm", 401, {"error": "Unauthorized"}, K.AUTH),
    ],
)
def test_an_answer_means_what_its_vendor_means(
    row: str, status: int, body: JsonValue | bytes, kind: FailureKind
) -> None:
    assert failed(status, body, row).kind is kind


X_KEYS = "Manage it using https://openrouter.ai/settings/keys"
X_CREDITS = "To continue making API requests, please purchase more credits or raise your spending limit."
VERIFY = "Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization."


@looped(
    ("row", "status", "code", "message", "kind"),
    [
        ("openrouter", 403, 403, f"Key limit exceeded (total limit). {X_KEYS}", K.QUOTA),
        ("openrouter", 403, 403, "This model is not available in your region.", K.FORBIDDEN),
        (
            "openrouter",
            403,
            403,
            'x requires moderation on Y. Your input was flagged for "violence".',
            K.CONTENT_FILTER,
        ),
        ("openrouter", 404, 404, "No endpoints found matching your data policy (Free model publication).", K.NOT_FOUND),
        ("openrouter", 404, 404, "No endpoints found for anthropic/claude-2.", K.NOT_FOUND),
        ("openrouter", 400, 400, "anthropic/claude-9 is not a valid model ID", K.NOT_FOUND),
        ("openrouter", 400, 400, "Echo: 'Key limit exceeded'", K.INVALID_REQUEST),
        ("groq", 400, "organization_restricted", "Organization has been restricted.", K.AUTH),
        ("groq", 400, "model_decommissioned", "The model `x` has been decommissioned.", K.NOT_FOUND),
        (
            "openai",
            400,
            "unsupported_value",
            f"Your organization must be verified to stream this model. {VERIFY}",
            K.FORBIDDEN,
        ),
        (
            "azure_v1",
            400,
            None,
            f"Your organization must be verified to generate reasoning summaries. {VERIFY}",
            K.FORBIDDEN,
        ),
        ("openai", 403, None, f"Your organization must be verified to use the model `gpt-image-1`. {VERIFY}", K.AUTH),
        ("openai", 401, "account_deactivated", "The account is deactivated.", K.AUTH),
        ("openai", 403, "unsupported_country_region_territory", "Country, region, or territory not supported", K.AUTH),
        (
            "xai",
            429,
            None,
            f"Your team 7a-5e has either used all available credits or reached its monthly spending limit. {X_CREDITS}",
            K.QUOTA,
        ),
        ("xai", 429, None, "Your team 7a-5e has used all available credits.", K.QUOTA),
        ("xai", 429, None, "Too many requests; your team has not used all available credits.", K.RATE_LIMITED),
        (
            "fireworks",
            412,
            None,
            "Account a is suspended, possibly due to reaching the monthly spending limit.",
            K.QUOTA,
        ),
        ("fireworks", 412, None, "The LoRA could not be loaded.", K.NOT_FOUND),
        ("deepseek", 400, "invalid_request_error", "Model Not Exist", K.NOT_FOUND),
        ("mistral", 400, "1500", "Invalid model: x", K.NOT_FOUND),
        ("perplexity", 400, 400, "Invalid model 'x'.", K.NOT_FOUND),
        ("zai", 400, "1211", "Unknown Model, please check the model code.", K.NOT_FOUND),
        ("github_models", 400, "unknown_model", "Unknown model: x", K.NOT_FOUND),
    ],
)
def test_trouble_of_the_account_is_told_apart_from_the_requests(
    row: str, status: int, code: JsonValue, message: str, kind: FailureKind
) -> None:
    body = error(code, message, type="invalid_model" if row == "perplexity" else "invalid_request_error")
    failure = failed(status, body, row)
    assert failure.kind is kind
    hidden = kind not in (K.CONTENT_FILTER, K.INVALID_REQUEST, K.RATE_LIMITED)
    assert failure.said == (vet(message) if hidden else "")
    assert hidden == (message[:12] not in failure.message)


@looped(
    "message",
    [
        "This model's maximum context length is 4097 tokens, however you requested 4116 tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 9000. This model's maximum context length is 8192",
        "Requested token count exceeds the model's maximum context length of 131072 tokens.",
        "inputs is longer than the model's context length (8 tokens)",
    ],
)
def test_a_message_whose_numbers_are_not_told_as_usual_is_still_about_the_window(message: str) -> None:
    failure = failed(400, error(None, message))
    assert (failure.kind, failure.overflow) == (K.CONTEXT_LENGTH, Overflow())


@pytest.mark.parametrize(
    "message",
    [
        "Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9512; reduce the length of the "
        "messages or completion",
        "Rate limit reached: maximum context length",
    ],
)
def test_a_rate_that_speaks_of_tokens_is_not_about_the_window(message: str) -> None:
    assert failed(400, error(None, message)).kind is not K.CONTEXT_LENGTH


# Sizes --------------------------------------------------------------------------------------------------------------

OF_ANSWER = [sample for sample in SAMPLES if sample.overflow.of_answer]
OF_WINDOW = [sample for sample in SAMPLES if not sample.overflow.of_answer]


@looped("sample", OF_WINDOW, ids=lambda sample: sample.text[:60])
@looped("status", [400, 413, 422])
def test_a_message_about_the_window_keeps_its_numbers(sample: Sample, status: int) -> None:
    bodies: list[JsonValue] = [error(None, sample.text), {"error": sample.text}, {"detail": sample.text}]
    bodies.append([error(status, sample.text)])
    for body in bodies:
        failure = failed(status, body)
        assert (failure.kind, failure.overflow, failure.param) == (K.CONTEXT_LENGTH, sample.overflow, None)


@looped("sample", OF_ANSWER, ids=lambda sample: sample.text[:60])
def test_a_message_about_the_most_tokens_of_an_answer_names_the_field(sample: Sample) -> None:
    for param in (None, "max_completion_tokens"):
        failure = failed(400, error("invalid_value", sample.text, param=param))
        assert (failure.kind, failure.param, failure.overflow) == (K.INVALID_REQUEST, "max_tokens", sample.overflow)


@looped("text", NOT_OVERFLOWS)
def test_other_errors_keep_their_kind_and_field(text: str) -> None:
    failure = failed(400, error("string_above_max_length", text, param="user"))
    assert (failure.kind, failure.param, failure.overflow) == (K.INVALID_REQUEST, "user", None)


@looped(("status", "kind"), [(429, K.RATE_LIMITED), (500, K.SERVER), (401, K.AUTH)])
def test_sizes_are_believed_only_of_errors_about_the_request(status: int, kind: FailureKind) -> None:
    for sample in SAMPLES:
        failure = failed(status, error(None, sample.text))
        assert (failure.kind, failure.overflow) == (kind, None)


def test_numbers_are_read_from_the_error_s_members() -> None:
    body = error(400, "too big", type="exceed_context_size_error", n_prompt_tokens=9412, n_ctx=8192)
    failure = failed(400, body, "llamacpp")
    assert failure.overflow == Overflow(8192, 9412, exact=True, prompt_alone=True)


def test_a_code_alone_tells_nothing_of_sizes() -> None:
    assert failed(400, error("context_length_exceeded")).overflow == Overflow()


def test_a_vendor_s_quoted_answer_tells_its_sizes() -> None:
    raw = '{"error":{"message":"prompt is too long: 200027 tokens > 200000 maximum"}}'
    failure = failed(400, error(400, "Provider returned error", metadata={"raw": raw}), "openrouter")
    assert failure.overflow == Overflow(200000, 200027, exact=True, prompt_alone=True)
    assert failure.message == "Provider returned error"


def test_an_answer_that_is_no_json_may_tell_sizes() -> None:
    failure = failed(400, b"prompt is too long: 9 tokens > 8 maximum")
    assert failure.overflow == Overflow(8, 9, exact=True, prompt_alone=True)


def test_an_error_inside_a_stream_tells_sizes() -> None:
    failure = failure_in_body(load_profiles()["sglang"], error(None, "prompt is too long: 9 tokens > 8 maximum"))
    assert (failure.kind, failure.overflow) == (K.CONTEXT_LENGTH, Overflow(8, 9, exact=True, prompt_alone=True))


SECRET = "sk-proj-abcdefghijklmnop1234"


@looped("status", [400, 401, 402, 404, 429, 500, 503])
def test_neither_our_key_nor_the_upstreams_address_is_shown(status: int) -> None:
    message = f"key {SECRET} at https://internal.example.com/v1 and 10.0.0.7:8000 failed"
    failure = failed(status, error(SECRET + " x", message, param="http://10.0.0.7"))
    shown = f"{failure!r}"
    for hidden in (SECRET, "internal.example.com", "10.0.0.7"):
        assert hidden not in shown


def test_codes_and_fields_are_shown_only_where_they_help_the_client() -> None:
    failure = failed(400, error("unsupported_value", param="messages[0].role"))
    assert (failure.code, failure.param) == ("unsupported_value", "messages[0].role")
    failure = failed(500, error("unsupported_value", param="messages"))
    assert (failure.code, failure.param) == (None, None)
    assert failed(400, error("Client specified an invalid argument")).code is None


@looped(
    ("body", "expected"),
    [
        ({"error": {"message": "x"}}, True),
        ({"error": "x"}, True),
        ({"error": None, "choices": []}, False),
        ({"error": {}}, False),
        ({"object": "error", "message": "x"}, True),
        ({"error_code": 5}, True),
        ({"success": False}, True),
        ({"success": False, "choices": [{}]}, False),
    ],
)
def test_an_error_in_disguise_is_seen(body: JsonObject, expected: bool) -> None:
    assert is_error(body) is expected


headers = st.dictionaries(
    st.sampled_from(["retry-after", "retry-after-ms", "date"]),
    st.text(max_size=30)
    | st.integers().map(str)
    | st.floats().map(str)
    | st.datetimes().map(lambda when: when.strftime("%a, %d %b %Y %H:%M:%S GMT")),
)


@given(headers)
def test_no_spelling_of_a_wait_raises(spelled: dict[str, str]) -> None:
    wait = failed(429, b"", headers=spelled).retry_after
    assert wait is None or 0 <= wait < float("inf")


def test_a_wait_in_milliseconds_comes_before_one_in_seconds() -> None:
    assert failed(429, b"", headers={"retry-after-ms": "1500", "retry-after": "9"}).retry_after == 1.5
    assert failed(429, b"", headers={"retry-after": "9"}).retry_after == 9
    assert failed(429, b"").retry_after is None


@given(st.binary(max_size=60), st.sampled_from([200, 400, 401, 429, 500]))
def test_no_body_raises(body: bytes, status: int) -> None:
    assert failed(status, body).message


FAULT: JsonObject = {
    "type": "extra_forbidden",
    "loc": ["body", "messages", 1, "x"],
    "msg": "Extra inputs are not permitted",
}


@looped(
    "body",
    [
        {"detail": [{**FAULT, "input": "canary"}]},
        {"object": "error", "message": {"detail": [FAULT]}, "type": "invalid_request_error", "param": None},
        {"error": {"message": {"detail": [FAULT]}}},
        {"error": {"detail": [FAULT]}},
    ],
)
def test_a_list_of_faults_says_field_and_reason(body: JsonValue) -> None:
    failure = failed(422, body, "mistral")
    assert failure.message == "body.messages.1.x: Extra inputs are not permitted"
    assert (failure.kind, failure.param) == (K.INVALID_REQUEST, "messages.1.x")


def test_a_hostile_list_of_faults_is_shown_in_part() -> None:
    entry: JsonValue = {"loc": ["x" * 100, ["y"], 1] * 100, "msg": "z" * 1_000}
    failure = failed(422, {"detail": [entry] * 100})
    assert len(failure.message) <= MAX_MESSAGE
    assert failed(422, {"detail": [{"loc": "body", "msg": 7}, None, "why"]}).message == "why"


def test_an_error_with_half_a_character_is_read() -> None:
    assert failed(400, rb'{"error":{"message":"bad \ud83d word"}}').message == "bad \ufffd word"
