"""The conversations and fields that the rows of hosted vendors produce: their hooks, names and versions."""

from typing import cast

from providers.completion import Extras, ToolCall
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Guided, Params
from tests.providers.dialects.kit import chunks
from tests.providers.dialects.openai.kit import (
    DIALECT,
    SCHEMA,
    body_of,
    chat,
    completion,
    decoded,
    frame,
    one_param,
    played,
    refusal_of,
    sent,
    target,
    unbroken,
)
from tests.support.looped import looped

USER: JsonObject = {"role": "user", "content": "hello"}


def call(identity: str, name: str = "f") -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": "{}"}}


def result(identity: str, content: JsonValue = "4") -> JsonObject:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def messages(row: str, *given: JsonObject, model: str = "m") -> list[JsonObject]:
    made = body_of(chat(prompt=ChatPrompt(given)), target(row, model))["messages"]
    return cast(list[JsonObject], made)


TWO_CALLS: JsonObject = {"role": "assistant", "content": "", "tool_calls": [call("abcdefgh1"), call("abcdefgh2", "g")]}
TALK = (USER, TWO_CALLS, result("abcdefgh1"), result("abcdefgh2"))
IMAGE: JsonObject = {
    "role": "user",
    "content": [{"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}],
}
PARTS: JsonObject = {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}


def test_databricks_gets_each_call_with_its_result_and_no_empty_text() -> None:
    assert messages("databricks", *TALK) == [
        USER,
        {"role": "assistant", "tool_calls": [call("abcdefgh1")]},
        result("abcdefgh1"),
        {"role": "assistant", "tool_calls": [call("abcdefgh2", "g")]},
        result("abcdefgh2"),
    ]


def test_mistral_s_results_name_their_functions_and_foreign_ids_fit() -> None:
    assert messages("mistral", *TALK) == [
        USER,
        TWO_CALLS,
        {**result("abcdefgh1"), "name": "f"},
        {**result("abcdefgh2"), "name": "g"},
    ]
    foreign: JsonObject = {"role": "assistant", "tool_calls": [call("call_of_another_vendor")]}
    _, called, answered = messages("mistral", USER, foreign, result("call_of_another_vendor"))
    assert len(str(answered["tool_call_id"])) == 9
    assert called["tool_calls"] == [call(str(answered["tool_call_id"]))]


@looped(("model", "added"), [("kimi-k2.5", True), ("kimi-k2-thinking", True), ("moonshot-v1-8k", False)])
def test_moonshot_s_thinking_models_get_reasoning_with_calls(model: str, added: bool) -> None:
    bare: JsonObject = {"role": "assistant", "tool_calls": [call("1")]}
    reasoned: JsonObject = {**bare, "reasoning_content": "hm"}
    filled: JsonObject = {**bare, "reasoning_content": " "}
    assert messages("moonshot", bare, reasoned, model=model) == [filled if added else bare, reasoned]


@looped("row", ["sambanova", "ollama", "lm_studio"])
def test_an_image_by_its_address_is_refused_where_nobody_fetches_it(row: str) -> None:
    assert "data URIs only" in refusal_of(chat(prompt=ChatPrompt((IMAGE,))), target(row)).message
    assert messages("together", IMAGE) == [IMAGE]


@looped("row", ["sambanova", "moonshot", "dashscope", "cerebras"])
def test_parts_that_are_all_text_become_one(row: str) -> None:
    assert messages(row, PARTS) == [{"role": "user", "content": "ab"}]
    assert messages("openai", PARTS) == [PARTS]


def test_perplexity_s_turns_alternate() -> None:
    assert messages("perplexity", USER, USER) == [{"role": "user", "content": "hello\n\nhello"}]


def test_deepinfra_s_results_are_text() -> None:
    given = result("1", [{"type": "text", "text": "4"}])
    assert messages("deepinfra", given) == [result("1")]


def test_gemini_s_signatures_come_back_with_the_conversation() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "QUJD+/8="}}}
    answer: JsonObject = {
        "choices": [{"message": {"tool_calls": [{**call("c1"), **extra}]}, "finish_reason": "tool_calls"}]
    }
    (made,) = decoded(sent("gemini_compat"), answer).choices[0].tool_calls
    kept: JsonObject = {"role": "assistant", "tool_calls": [call(made.id)]}
    assert messages("gemini_compat", kept, result(made.id)) == [
        {"role": "assistant", "tool_calls": [{**call("c1"), **extra}]},
        result("c1"),
    ]
    assert decoded(sent("openai"), answer).choices[0].tool_calls == (ToolCall("c1", "f", "{}", extra=extra),)


def test_gemini_s_signature_of_a_text_comes_back_with_the_conversation_and_goes_to_nobody_else() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": "QUJD+/8="}}}
    answer: JsonObject = {"choices": [{"message": {"content": "Oslo.", **extra}, "finish_reason": "stop"}]}
    assert decoded(sent("gemini_compat"), answer).choices[0].signature == "QUJD+/8="
    assert decoded(sent("openai"), answer).choices[0].signature is None
    said: JsonObject = {"role": "assistant", "content": "Oslo."}
    assert messages("gemini_compat", {**said, **extra}) == [{**said, **extra}]
    assert messages("openai", {**said, **extra}) == [said]
    assert messages("openai_compatible", {**said, **extra}) == [{**said, **extra}]
    others: JsonObject = {**said, "extra_content": {"own": 1}}
    assert messages("openai", others) == [said]
    assert messages("openai_compatible", others) == [others]


def test_gemini_s_signature_of_a_streamed_text_stands_in_a_delta() -> None:
    delta: JsonObject = {"content": "", "extra_content": {"google": {"thought_signature": "QUJD"}}}
    frames = (
        frame({"choices": [{"index": 0, "delta": {"content": "Oslo."}}]}),
        frame({"choices": [{"index": 0, "delta": delta}]}),
        frame({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        b"data: [DONE]\n\n",
    )
    events = unbroken(sent("gemini_compat"), *frames)
    assert [chunk.signature for chunk in chunks(events)] == [None, "QUJD", None]
    events, _ = played(sent("openai"), *frames)
    assert [chunk.signature for chunk in chunks(events)] == [None, None, None]
    assert chunks(events)[1].extras == Extras(message={"extra_content": {"google": {"thought_signature": "QUJD"}}})


@looped("row", ["openai", "azure", "azure_v1", "openrouter", "github_models"])
def test_ids_of_calls_that_are_too_long_for_openai_are_replaced_by_the_same_in_call_and_result(row: str) -> None:
    long = "call_1__thought__" + "QUJD" * 30
    foreign: JsonObject = {"role": "assistant", "tool_calls": [call(long), call("x" * 40, "g")]}
    _, called, first, second = messages(row, USER, foreign, result(long), result("x" * 40))
    short = str(first["tool_call_id"])
    assert len(short) <= 40
    assert called["tool_calls"] == [call(short), call("x" * 40, "g")]
    assert second == result("x" * 40)
    assert messages(row, result(long)) == [first]
    assert messages(row, result(long + "D")) != [first]
    assert messages("vllm", foreign, result(long)) == [foreign, result(long)]


def test_nim_1_gets_what_openai_has_not_in_one_holder() -> None:
    params: Params = {"top_k": 4, "guided": Guided("json", SCHEMA), "repetition_penalty": 1.1}
    nvext: JsonObject = {"top_k": 4, "guided_json": SCHEMA, "repetition_penalty": 1.1}
    for request in (chat(params), completion(params)):
        assert body_of(request, target("nim_1"))["nvext"] == nvext
    assert "response_format" in body_of(chat({"guided": Guided("json", SCHEMA)}), target("nim"))


@looped(
    ("row", "name", "value"),
    [
        ("moonshot", "temperature", 1.2),
        ("zai", "temperature", 1.2),
        ("dashscope", "temperature", 2.0),
        ("perplexity", "temperature", 2.0),
        ("cohere_compat", "presence_penalty", -0.5),
        ("databricks", "max_tokens", 25001),
    ],
)
def test_a_value_past_a_vendor_s_bounds_is_refused(row: str, name: str, value: object) -> None:
    refusal = refusal_of(chat(one_param(name, value)), target(row))
    assert (refusal.param, refusal.code) == (name, "invalid_value")


def test_azure_is_asked_for_what_its_version_has() -> None:
    tools: Params = {"tools": [{"type": "function", "function": {"name": "f"}}], "parallel_tool_calls": False}
    old, middle, new = (
        target("azure", "o3", api_version=version) for version in ("2024-06-01", "2024-10-21", "2025-04-01-preview")
    )
    for to, name in ((old, "max_tokens"), (middle, "max_completion_tokens"), (new, "max_completion_tokens")):
        assert body_of(chat({"max_tokens": 5}), to)[name] == 5
    assert "stream_options" not in body_of(chat(stream=True), old)
    assert "stream_options" in body_of(chat(stream=True), middle)
    assert refusal_of(chat(tools), old).param == "parallel_tool_calls"
    chats = target("azure", "gpt-4o", api_version="2024-10-21")
    assert body_of(chat(tools), chats)["parallel_tool_calls"] is False
    assert DIALECT.encode(chat({"guided": Guided("json", SCHEMA)}), old).in_prompt
    assert not DIALECT.encode(chat({"guided": Guided("json", SCHEMA)}), middle).in_prompt
    assert refusal_of(chat({"reasoning_effort": "low"}), middle).param == "reasoning_effort"
    assert body_of(chat({"reasoning_effort": "low"}), new)["reasoning_effort"] == "low"
    newest = target("azure_v1", "o3")
    assert body_of(chat({"reasoning_effort": "low"}), newest)["reasoning_effort"] == "low"
