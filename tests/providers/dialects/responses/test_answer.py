"""Non-streaming responses of the Responses API: their meaning, and the vendor's own body beside it."""

from pathlib import Path

import orjson

from providers.completion import ToolCall, Usage
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.kit import decode_failure, decoded, only
from tests.providers.dialects.responses.kit import FIXTURES, WHOLE, message, response
from tests.providers.kit import failure_of
from tests.support.looped import looped

WHOLE_ANSWERS = sorted([*FIXTURES.glob("answers/*.json"), *FIXTURES.glob("recorded/*.json")])


def read(status: str = "completed", *output: JsonValue, **members: JsonValue) -> bytes:
    return orjson.dumps(response(status, output, **members))


@looped("path", WHOLE_ANSWERS, ids=lambda path: path.stem)
def test_an_answer_is_read_and_kept_as_it_came(path: Path) -> None:
    body = path.read_bytes()
    completion = decoded(WHOLE, body)
    assert completion.native == body
    assert completion.usage is not None
    assert only(completion).finish_reason in ("stop", "tool_calls")


def test_the_parts_of_an_answer() -> None:
    reasoning: JsonObject = {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
        "encrypted_content": "gAAA",
    }
    calls: list[JsonValue] = [
        {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "namespace": "mcp"},
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "patch", "input": "*** Begin"},
    ]
    usage: JsonObject = {
        "input_tokens": 75,
        "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 1},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 105,
    }
    hosted: JsonObject = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    body = read("completed", reasoning, hosted, message("Yes."), *calls, usage=usage, service_tier="flex")
    completion = decoded(WHOLE, body)
    choice = only(completion)
    assert (choice.text, choice.reasoning, choice.finish_reason) == ("Yes.", "First.\n\nThen.\n\nHm.", "tool_calls")
    assert choice.tool_calls == (
        ToolCall("c1", "f", "{}", extra={"namespace": "mcp"}),
        ToolCall("c2", "patch", "*** Begin", "custom"),
    )
    counted = {"cached_tokens": 5, "cache_write_tokens": 1}
    assert completion.usage == Usage(75, 30, counted, {"reasoning_tokens": 20}, tier="flex")
    assert completion.service_tier == "flex"


def test_searches_are_kept_with_what_they_found() -> None:
    search: JsonObject = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}
    extras = only(decoded(WHOLE, read("completed", search, message("Yes.")))).extras
    assert extras is not None
    assert extras.message == {"web_search_calls": [search]}


@looped(
    ("told", "counted", "extra"),
    [
        ({}, 2, None),
        ({"num_sources_used": 9}, 2, {"num_sources_used": 9}),
        ({"server_tool_use": {"web_search_requests": 5}}, 5, {"server_tool_use": {"web_search_requests": 5}}),
    ],
)
def test_searches_are_counted_and_further_counts_are_passed_on(
    told: JsonObject, counted: int, extra: JsonObject | None
) -> None:
    search: JsonObject = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "q"}}
    opened: JsonObject = {**search, "action": {"type": "open_page", "url": "https://x.example"}}
    usage: JsonObject = {"input_tokens": 6, "output_tokens": 2, "total_tokens": 8, **told}
    completion = decoded(WHOLE, read("completed", search, opened, search, message("Yes."), usage=usage))
    assert completion.usage == Usage(6, 2, None, {"web_search_requests": counted}, extra=extra)


def test_a_refusal_is_the_text_where_there_is_no_other() -> None:
    choice = only(decoded(WHOLE, read("completed", message("I cannot.", "refusal"))))
    assert (choice.text, choice.refusal, choice.finish_reason) == ("I cannot.", "I cannot.", "stop")


@looped(
    ("reason", "finish", "native"),
    [
        ("max_output_tokens", "length", "max_output_tokens"),
        ("content_filter", "content_filter", None),
        ("later", "later", "later"),
    ],
)
def test_an_incomplete_answer_says_why(reason: str, finish: str, native: str | None) -> None:
    choice = only(decoded(WHOLE, read("incomplete", message("Ye"), incomplete_details={"reason": reason})))
    assert (choice.finish_reason, choice.native_finish_reason) == (finish, native)


@looped(
    ("code", "kind"),
    [
        ("server_error", FailureKind.SERVER),
        ("rate_limit_exceeded", FailureKind.RATE_LIMITED),
        ("context_length_exceeded", FailureKind.CONTEXT_LENGTH),
        ("insufficient_quota", FailureKind.QUOTA),
        ("invalid_prompt", FailureKind.INVALID_REQUEST),
        ("server_is_overloaded", FailureKind.OVERLOADED),
        ("bio_policy", FailureKind.CONTENT_FILTER),
        ("vector_store_timeout", FailureKind.TIMEOUT),
        ("image_too_large", FailureKind.INVALID_REQUEST),
        ("unheard_of", FailureKind.SERVER),
        (None, FailureKind.SERVER),
    ],
)
def test_a_failed_response_is_a_failure_by_its_code(code: JsonValue, kind: FailureKind) -> None:
    error: JsonObject = {"code": code, "message": "It went wrong."}
    failure = failure_of(decoded, WHOLE, read("failed", error=error))
    assert failure.kind is kind
    assert failure.message


def test_an_error_in_the_answer_s_place_is_a_failure() -> None:
    assert decode_failure(WHOLE, (FIXTURES / "errors" / "quota.json").read_bytes()) is FailureKind.QUOTA


@looped(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"status":"completed"}',
        read("in_progress"),
        read("queued"),
        read("incomplete"),
        read("completed", 5),
        read("completed", {"type": "function_call", "name": "f"}),
        read("completed", {"type": "custom_tool_call", "call_id": "c"}),
    ],
)
def test_an_answer_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(WHOLE, body) is FailureKind.MALFORMED


def test_odd_members_are_passed_over() -> None:
    odd: list[JsonValue] = [{"type": "message", "content": 5}, {"type": "message", "content": [5, {"type": "x"}]}, {}]
    completion = decoded(WHOLE, read("completed", *odd, usage={"input_tokens": "1"}, service_tier=5))
    assert (only(completion).text, completion.usage, completion.service_tier) == ("", None, None)


def test_a_failed_response_without_an_error_is_still_a_failure() -> None:
    assert decode_failure(WHOLE, read("failed")) is FailureKind.SERVER
