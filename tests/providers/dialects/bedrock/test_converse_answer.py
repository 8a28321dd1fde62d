"""Non-streaming responses of Converse."""

from dataclasses import replace

import orjson

from providers.completion import Choice, Extras, ToolCall, Usage
from providers.dialects.bedrock.converse_answer import decode_converse, usage_of
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Guided
from tests.providers.dialects.bedrock.kit import FIXTURES, answer, target
from tests.providers.dialects.kit import chat_request, sent_for
from tests.providers.kit import failure_of
from tests.support.looped import looped

SENT = sent_for(chat_request(), target())
CHOOSE = sent_for(chat_request(guided=Guided("choice", ("yes", "no"))), target())
KEEP = sent_for(chat_request(stop=(", three",), include_stop_str_in_output=True), target())


def choice(name: str) -> Choice:
    (only,) = decode_converse(SENT, answer(name)).choices
    return only


def test_the_fixtures_are_all_read() -> None:
    names = {path.stem for path in (FIXTURES / "answers").iterdir()}
    for name in names - {"malformed"}:
        assert decode_converse(SENT, answer(name)).choices


def test_texts_are_joined() -> None:
    completion = decode_converse(SENT, answer("text"))
    assert completion.choices == (Choice(0, "Checking Oslo: 3 °C.", "stop"),)
    assert completion.usage == Usage(21, 9)


def test_calls_have_their_arguments_as_text_and_reasoning_stands_apart() -> None:
    assert choice("tools") == Choice(
        0,
        "Looking it up.",
        "tool_calls",
        reasoning="Two places.",
        tool_calls=(
            ToolCall("tooluse_k1", "get_weather", '{"city":"Oslo","days":[1,2]}'),
            ToolCall("tooluse_k2", "now", "{}"),
        ),
        extras=Extras(
            (
                {
                    "type": "reasoning.text",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                    "text": "Two places.",
                    "signature": "EqQB",
                },
            )
        ),
    )


def test_calls_get_back_the_names_the_client_gave() -> None:
    completion = decode_converse(replace(SENT, tool_names={"get_weather": "get weather"}), answer("tools"))
    assert [call.name for call in completion.choices[0].tool_calls] == ["get weather", "now"]


@looped(
    ("name", "finish", "native"),
    [
        ("text", "stop", None),
        ("stop_sequence", "stop", None),
        ("length", "length", None),
        ("tools", "tool_calls", None),
        ("window", "length", "model_context_window_exceeded"),
        ("guardrail", "content_filter", "guardrail_intervened"),
        ("filtered", "content_filter", "content_filtered"),
        ("unknown", "sunset", "sunset"),
    ],
)
def test_every_word_for_the_end_has_its_meaning(name: str, finish: str, native: str | None) -> None:
    assert (choice(name).finish_reason, choice(name).native_finish_reason) == (finish, native)


def test_a_blocked_answer_is_what_the_guardrail_says() -> None:
    assert choice("guardrail").text == "Sorry, this cannot be talked about."


def test_an_answer_that_the_service_could_not_read_is_an_error() -> None:
    assert failure_of(lambda: decode_converse(SENT, answer("malformed"))).kind is FailureKind.NONCONFORMING


def test_blocks_that_are_not_the_client_s_or_not_known_are_passed_on_and_cited_text_is_text() -> None:
    found = choice("unknown")
    assert (found.text, found.finish_reason) == ("Still here.", "sunset")
    assert found.tool_calls == ()
    assert found.extras is not None
    call: JsonObject = {"toolUseId": "srv_1", "name": "nova_grounding", "input": {"q": "x"}, "type": "server_tool_use"}
    result: JsonObject = {"toolUseId": "srv_1", "content": [{"text": "found"}], "type": "nova_grounding_result"}
    blocks: list[JsonValue] = [{"toolUse": call}, {"toolResult": result}, {"hologram": {"depth": 3}}]
    assert found.extras.message == {"content_blocks": blocks}


def test_thinking_comes_with_its_signature_and_redacted_thinking_as_it_is() -> None:
    signed = choice("reasoning")
    assert signed.extras is not None
    (detail,) = signed.extras.reasoning_details
    assert detail["text"] == signed.reasoning
    assert str(detail["signature"]).startswith("EvYBCkgICxAB")
    hidden = choice("redacted")
    assert hidden.reasoning is None
    assert hidden.extras is not None
    (detail,) = hidden.extras.reasoning_details
    assert (detail["type"], str(detail["data"])[:8]) == ("reasoning.encrypted", "cnNuX3BV")


def test_thinking_without_a_signature_is_not_said_to_be_claude_s() -> None:
    body = orjson.loads(answer("reasoning"))
    del body["output"]["message"]["content"][0]["reasoningContent"]["reasoningText"]["signature"]
    found = decode_converse(SENT, orjson.dumps(body)).choices[0].extras
    assert found is not None
    assert [detail["format"] for detail in found.reasoning_details] == ["unknown"]


def test_a_page_cited_in_a_document_is_passed_on_as_it_came() -> None:
    found = choice("cited")
    assert found.text == "AI"
    assert found.extras is not None
    assert found.extras.annotations == ()
    assert found.extras.message is not None
    (citation,) = orjson.loads(orjson.dumps(found.extras.message["citations"]))
    assert citation["location"] == {"documentPage": {"documentIndex": 0, "end": 2, "start": 1}}


def test_every_member_of_an_answer_is_mapped_or_passed_on() -> None:
    completion = decode_converse(SENT, answer("grounded"))
    found = completion.choices[0]
    assert found.text == "See 👋: fjords are deep."
    assert found.extras is not None
    (annotation,) = found.extras.annotations
    url: JsonObject = {"url": "https://example.com/fjords", "title": "Fjords", "start_index": 7, "end_index": 22}
    assert annotation == {"type": "url_citation", "url_citation": url}
    assert found.extras.images == ({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},)
    assert found.extras.message is not None
    blocks = orjson.loads(orjson.dumps(found.extras.message["content_blocks"]))
    assert [next(iter(block)) for block in blocks] == ["toolUse", "toolResult", "image", "audio"]
    assert found.extras.message.keys() == {"content_blocks", "citations"}
    assert completion.extra is not None
    assert completion.extra.keys() == {
        "metrics",
        "trace",
        "performanceConfig",
        "additionalModelResponseFields",
        "cacheDetails",
        "serverToolUsage",
    }
    assert completion.service_tier == "priority"
    written = {"cache_write_tokens": 4, "ephemeral_1h_input_tokens": 4}
    assert completion.usage == Usage(14, 5, written, tier="priority")


def test_a_call_of_a_custom_tool_has_its_text() -> None:
    sent = replace(SENT, custom_tools=frozenset({"get_weather"}))
    body = orjson.loads(answer("tools"))
    for block in body["output"]["message"]["content"]:
        if "toolUse" in block:
            block["toolUse"]["input"] = {"input": "SELECT 1"}
    calls = decode_converse(sent, orjson.dumps(body)).choices[0].tool_calls
    assert [(call.kind, call.arguments) for call in calls] == [
        ("custom", "SELECT 1"),
        ("function", '{"input":"SELECT 1"}'),
    ]


def test_an_empty_answer_is_an_answer() -> None:
    completion = decode_converse(SENT, answer("empty"))
    assert completion.choices == (Choice(0, "", "stop"),)
    assert completion.service_tier == "flex"


def test_prompt_tokens_include_the_cached_ones() -> None:
    assert decode_converse(SENT, answer("cached")).usage == Usage(
        3210, 2, {"cached_tokens": 3000, "cache_write_tokens": 200}
    )


@looped("raw", [None, 3, {}, {"inputTokens": 1}, {"inputTokens": "1", "outputTokens": 2}])
def test_usage_that_says_too_little_is_none(raw: JsonValue) -> None:
    assert usage_of(raw) is None


@looped("value", [-5, True, 2.5, "7", 10**15])
def test_what_is_no_count_is_taken_as_absent(value: JsonValue) -> None:
    counts: JsonObject = {"inputTokens": 3, "outputTokens": 4}
    assert usage_of({**counts, "cacheWriteInputTokens": value}) == Usage(3, 4)
    assert usage_of({**counts, "inputTokens": value}) is None
    assert usage_of({**counts, "outputTokens": value}) is None


def test_a_choice_is_unwrapped() -> None:
    assert decode_converse(CHOOSE, answer("choice")).choices[0].text == "yes"
    assert decode_converse(CHOOSE, answer("length")).choices[0].text == "It never"
    assert failure_of(lambda: decode_converse(CHOOSE, answer("text"))).kind is FailureKind.MALFORMED


def test_the_matched_stop_string_is_told_and_put_back_when_asked_for() -> None:
    assert choice("stop_sequence") == Choice(0, "one, two", "stop", matched_stop=", three")
    assert decode_converse(KEEP, answer("stop_sequence")).choices[0].text == "one, two, three"


def test_a_stop_string_that_is_not_told_cannot_be_put_back() -> None:
    assert choice("stop_untold").matched_stop is None
    assert failure_of(lambda: decode_converse(KEEP, answer("stop_untold"))).kind is FailureKind.MALFORMED


@looped(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"output":{"message":{"content":"text"}},"stopReason":"end_turn"}',
        b'{"output":{"message":{"content":[]}}}',
        b'{"output":{"message":{"content":[{"toolUse":{"name":"a","input":{}}}]}},"stopReason":"tool_use"}',
        b'{"output":{"message":{"content":[{"toolUse":{"toolUseId":"a"}}]}},"stopReason":"tool_use"}',
    ],
)
def test_what_makes_no_sense_is_malformed(body: bytes) -> None:
    assert failure_of(lambda: decode_converse(SENT, body)).kind is FailureKind.MALFORMED


def test_arguments_that_are_missing_are_an_empty_object() -> None:
    body = orjson.loads(answer("tools"))
    del body["output"]["message"]["content"][3]["toolUse"]["input"]
    assert decode_converse(SENT, orjson.dumps(body)).choices[0].tool_calls[1].arguments == "{}"
