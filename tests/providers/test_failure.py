"""Failures: a verdict for each kind, and messages made fit to show."""

from hypothesis import given
from hypothesis import strategies as st

from providers.context_overflow import MAX_TEXT
from providers.failure import (
    MAX_MESSAGE,
    OUR_WORDS,
    UNKNOWN_MODEL,
    VERDICTS,
    Failure,
    FailureKind,
    Refusal,
    UpstreamError,
    blame_model,
    kind_of_status,
    message_text,
    vet,
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


def test_our_own_words_hold_nothing_that_is_taken_out() -> None:
    assert all(vet(words) == words for words in OUR_WORDS.values())


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


SECRETS = (
    "sk-abcdef0123456789",
    "sk-proj-abcdef_0123-456789",
    "sk-ant-api03-AbCdEf-0123_xyz",
    "fw_3ZabcdefGHIJKL",
    "gsk_abcdefghijkl",
    "ya29.a0Af-one_two-three",
    "xai-abcdefghijkl",
    "hf_abcdefghijkl",
    "nvapi-abcdefghijkl",
    "org-AbCdEfGh123",
    "proj_AbCdEfGh123",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA-1234567890abcdefghijklmnopqrstu",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
    "Bearer abc.def-ghi",
    "bearer 0123456789",
    "sk-12345***********************6789",
    "0123456789abcdef0123456789abcdef",
)
ADDRESSES = (
    "https://user:pass@10.0.0.1:8443/v1/x?key=y",
    "http://vllm-7.internal:8000/v1",
    "postgresql://db/x",
    "10.12.0.7:8000",
    "192.168.1.20",
    "[fe80::1ff:fe23:4567:890a]:8000",
    "2001:db8:85a3::8a2e:370:7334",
    "/usr/lib/python3/site-packages/vllm/engine.py",
    "/home/svc/models/llama.gguf",
    "C:\\Users\\svc\\model.bin",
    "vllm-7.internal:8000",
    "localhost:8080",
    "::1",
)


@looped("secret", SECRETS)
@looped("frame", ["{}", "Incorrect API key provided: {}.", "key='{}'", '{{"key": "{}"}}', "({})"])
def test_keys_and_tokens_are_taken_out(secret: str, frame: str) -> None:
    shown = vet(frame.format(secret))
    assert secret not in shown
    assert "[redacted]" in shown
    tail = secret.rpartition(" ")[2]
    assert tail[-6:] not in shown


@looped("address", ADDRESSES)
@looped("frame", ["{}", "could not reach {} in time", "File '{}', line 3", "at {}."])
def test_addresses_and_paths_are_taken_out(address: str, frame: str) -> None:
    shown = vet(frame.format(address))
    assert "[address]" in shown
    assert address not in shown
    for part in ("internal", "10.", "svc", "vllm", "pass", "fe23", "85a3"):
        assert part not in shown


@looped(
    "message",
    [
        "prompt is too long: 200027 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 184915 + 20000 > 204648",
        "messages.0.content: Input should be a valid string",
        "This model's maximum context length is 8192 tokens (9000 > 8192 - 12).",
        "temperature/top_p: use one and/or the other",
        "model 'meta-llama/Llama-3.3-70B-Instruct' does not exist",
        "'accounts/fireworks/models/x' not found",
        "Rate limit reached for gpt-4o in tokens per min (TPM): Limit 30000, Used 29000. Try again in 1.5s.",
        "Version 1.2.3 at 12:30:45 is required: a ratio of 3:2, key: value, disk-usage task-force.",
        "The organization must be verified; ask your key-holder.",
        "Error: std::bad_alloc in ns::inner::call",
        "x :: y, [0]: list, :5 and a[:5], model hf-internal-testing/tiny-random, claude-haiku-4-5-20251001",
    ],
)
def test_ordinary_messages_are_left_alone(message: str) -> None:
    assert vet(message) == message


def test_a_message_is_one_line_without_control_characters() -> None:
    assert vet("a\r\nb\x00\x1b[31mc\u2028d\x85e") == "a b [31mc d e"


def test_a_long_message_is_cut() -> None:
    assert vet("x" * MAX_MESSAGE) == "x" * MAX_MESSAGE
    assert vet("x" * (MAX_MESSAGE + 1)) == "x" * (MAX_MESSAGE - 1) + "…"
    assert len(vet("y " * 10**6)) == MAX_MESSAGE


@given(st.text(alphabet=st.characters(), max_size=3000))
def test_every_message_comes_out_short_and_on_one_line(text: str) -> None:
    shown = vet(text)
    assert len(shown) <= MAX_MESSAGE
    assert not any(ord(char) < 32 or 0x7F <= ord(char) <= 0x9F or char in "\u2028\u2029" for char in shown)


@given(st.sampled_from(SECRETS), st.text(max_size=1100), st.text(max_size=20))
def test_a_key_is_found_wherever_it_stands(secret: str, before: str, after: str) -> None:
    assert secret not in vet(f"{before} {secret} {after}")


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


NOT_FOUND = Failure(FailureKind.NOT_FOUND, OUR_WORDS[FailureKind.NOT_FOUND], 404)


@looped(
    "body",
    [
        b'{"error":{"message":"The model `x` does not exist.","code":"model_not_found"}}',
        b' {"type":"error","error":{"type":"not_found_error","message":"model: x"}}',
        b'[{"error":{"code":404,"message":"Models/x is not found for API version v1"}}]',
    ],
)
def test_a_model_that_the_vendor_does_not_know_is_named(body: bytes) -> None:
    blamed = blame_model(NOT_FOUND, "x", body)
    assert (blamed.code, blamed.param, blamed.status) == (UNKNOWN_MODEL, "model", 404)
    assert "'x'" in blamed.message


@looped("body", [b"", b"<html>no model here</html>", b'{"detail":"Not Found"}'])
def test_a_wrong_address_is_not_blamed_on_the_model(body: bytes) -> None:
    assert blame_model(NOT_FOUND, "x", body) is NOT_FOUND


def test_no_other_failure_is_blamed_on_the_model() -> None:
    failure = Failure(FailureKind.AUTH, "why", 401)
    assert blame_model(failure, "x", b'{"error":"no access to the model"}') is failure
