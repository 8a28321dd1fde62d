"""The requests for an engine's token count of a call, and the results for any response."""

from base64 import b64encode
from collections.abc import Callable
from typing import get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.vendor_token_counts import TOKENIZERS, Count, Counting, without_geography
from providers.json_types import JsonObject, JsonValue
from providers.profile import TokenizerStyle
from providers.unified_request import Operation
from tests.support.looped import looped

BASE = "http://up/v1"
MESSAGES: list[JsonValue] = [{"role": "user", "content": "hi"}]
PICTURE: list[JsonValue] = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
TOOLS: list[JsonValue] = [{"type": "function", "function": {"name": "f"}}]
MODELS: JsonObject = {"data": [{"id": "other", "max_model_len": 1}, {"id": "m", "max_model_len": 8192}]}


def completion(style: str, prompt: JsonValue, **more: JsonValue) -> Counting:
    body: JsonObject = {"model": "m", "prompt": prompt, "max_tokens": 9, "stream": True, **more}
    return TOKENIZERS[style](body, Operation.COMPLETIONS, BASE, "m")


def chat(style: str, messages: list[JsonValue] = MESSAGES, **more: JsonValue) -> Counting:
    body: JsonObject = {"model": "m", "messages": messages, "max_tokens": 9, **more}
    return TOKENIZERS[style](body, Operation.CHAT, BASE, "m")


def next_request(counting: Counting) -> tuple[str, str, JsonValue]:
    question = counting.next()
    assert question is not None
    assert counting.next() is question
    return question.method, question.url, orjson.loads(question.body) if question.body else None


def count_after(counting: Counting, *answers: JsonValue) -> Count:
    """Return the result after these responses, and check that no further request follows."""
    for answer in answers:
        assert counting.next() is not None
        counting.answer(200, orjson.dumps(answer))
    assert counting.next() is None
    return counting.count


def test_every_style_that_a_row_may_name_is_in_the_table() -> None:
    assert set(TOKENIZERS) == set(get_args(TokenizerStyle))


# vLLM ---------------------------------------------------------------------------------------------------------------


def test_vllm_tokenizes_a_prompt_and_tells_its_window() -> None:
    counting = completion("vllm", "hello")
    body: JsonObject = {"model": "m", "prompt": "hello", "add_special_tokens": True}
    assert next_request(counting) == ("POST", "http://up/tokenize", body)
    assert count_after(counting, {"count": 3, "max_model_len": 8192, "tokens": [1, 2, 3]}) == Count(3, 8192)


def test_vllm_tokenizes_a_chat_with_all_that_its_template_reads() -> None:
    counting = chat("vllm", tools=TOOLS, chat_template_kwargs={"enable_thinking": False}, add_generation_prompt=False)
    body: JsonObject = {
        "model": "m",
        "add_generation_prompt": False,
        "messages": MESSAGES,
        "tools": TOOLS,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    assert next_request(counting) == ("POST", "http://up/tokenize", body)
    assert next_request(chat("vllm"))[2] == {"model": "m", "messages": MESSAGES}


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2, 3]]])
def test_vllm_s_token_ids_need_no_tokenizer_but_the_window(prompt: JsonValue) -> None:
    counting = completion("vllm", prompt)
    assert next_request(counting) == ("GET", "http://up/v1/models", None)
    assert count_after(counting, MODELS) == Count(3, 8192)


@looped(
    "begin",
    [
        lambda: completion("vllm", ["a", "b"]),
        lambda: completion("vllm", "a", suffix="b"),
        lambda: completion("vllm", None),
        lambda: chat("vllm", PICTURE),
    ],
)
def test_what_a_tokenizer_would_miscount_is_not_counted(begin: Callable[[], Counting]) -> None:
    counting = begin()
    assert next_request(counting)[:2] == ("GET", "http://up/v1/models")
    assert count_after(counting, MODELS) == Count(None, 8192)


def test_an_address_without_the_version_is_its_own_root() -> None:
    body: JsonObject = {"model": "m", "prompt": "hello"}
    counting = TOKENIZERS["vllm"](body, Operation.COMPLETIONS, "http://up/llm", "m")
    assert next_request(counting)[1] == "http://up/llm/tokenize"


# SGLang -------------------------------------------------------------------------------------------------------------


def test_sglang_s_window_is_the_listed_one_not_the_tokenizer_s() -> None:
    counting = completion("sglang", ["hello"])
    assert next_request(counting)[2] == {"model": "m", "prompt": "hello", "add_special_tokens": True}
    counting.answer(200, orjson.dumps({"count": 3, "max_model_len": 10**18, "tokens": [1, 2, 3]}))
    assert next_request(counting) == ("GET", "http://up/v1/models", None)
    assert count_after(counting, MODELS) == Count(3, 8192)


def test_an_older_sglang_that_refuses_chats_still_tells_its_window() -> None:
    counting = chat("sglang")
    counting.answer(422, b'{"detail": "prompt: field required"}')
    assert count_after(counting, MODELS) == Count(None, 8192)


def test_a_model_that_is_not_listed_has_no_window() -> None:
    assert count_after(completion("sglang", [1]), {"data": [{"id": "n", "max_model_len": 5}]}) == Count(1)


# llama.cpp ----------------------------------------------------------------------------------------------------------

PROPS: JsonObject = {"default_generation_settings": {"n_ctx": 4096}, "total_slots": 4}


def test_llamacpp_tokenizes_a_prompt_as_it_would_read_it() -> None:
    counting = completion("llamacpp", "hello")
    body: JsonObject = {"content": "hello", "add_special": True, "parse_special": True}
    assert next_request(counting) == ("POST", "http://up/tokenize", body)
    counting.answer(200, b'{"tokens": [1, 2, 3]}')
    assert next_request(counting) == ("GET", "http://up/props", None)
    assert count_after(counting, PROPS) == Count(3, 4096)


def test_llamacpp_renders_a_chat_first() -> None:
    counting = chat("llamacpp", tools=TOOLS)
    body: JsonObject = {"model": "m", "messages": MESSAGES, "max_tokens": 9, "tools": TOOLS}
    assert next_request(counting) == ("POST", "http://up/apply-template", body)
    counting.answer(200, b'{"prompt": "user: hi"}')
    assert next_request(counting)[2] == {"content": "user: hi", "add_special": True, "parse_special": True}
    assert count_after(counting, {"tokens": [1, 2]}, PROPS) == Count(2, 4096)


@pytest.mark.parametrize("messages", [PICTURE, [{"role": "user", "content": ["odd"]}]])
def test_llamacpp_s_images_are_not_counted(messages: list[JsonValue]) -> None:
    assert count_after(chat("llamacpp", messages), PROPS) == Count(None, 4096)


def test_a_chat_that_cannot_be_rendered_is_not_counted() -> None:
    counting = chat("llamacpp")
    counting.answer(500, b'{"error": {"message": "no template"}}')
    assert count_after(counting, PROPS) == Count(None, 4096)


def test_llamacpp_s_token_ids_are_counted_here() -> None:
    assert count_after(completion("llamacpp", [1, 2]), PROPS) == Count(2, 4096)


# TGI ----------------------------------------------------------------------------------------------------------------

INFO: JsonObject = {"max_input_tokens": 4000, "max_total_tokens": 4096}


def test_tgi_lists_the_tokens_of_a_prompt() -> None:
    counting = completion("tgi", "hello")
    assert next_request(counting) == ("POST", "http://up/tokenize", {"inputs": "hello"})
    counting.answer(200, b'[{"id": 1, "text": "hel", "start": 0, "stop": 3}, {"id": 2, "text": "lo"}]')
    assert next_request(counting) == ("GET", "http://up/info", None)
    assert count_after(counting, INFO) == Count(2, 4096)


def test_tgi_lists_the_tokens_of_a_chat() -> None:
    counting = chat("tgi")
    assert next_request(counting) == (
        "POST",
        "http://up/chat_tokenize",
        {"model": "m", "messages": MESSAGES, "max_tokens": 9},
    )
    assert count_after(counting, {"tokenize_response": [{"id": 1}], "templated_text": "hi"}, INFO) == Count(1, 4096)


@pytest.mark.parametrize("begin", [lambda: completion("tgi", [1, 2]), lambda: chat("tgi", PICTURE)])
def test_tgi_is_not_asked_about_more_than_text(begin: Callable[[], Counting]) -> None:
    assert count_after(begin(), INFO) == Count(None, 4096)


# Anthropic ----------------------------------------------------------------------------------------------------------


def test_anthropic_counts_what_belongs_to_the_prompt() -> None:
    own: JsonObject = {"messages": PICTURE, "system": "be brief", "tools": TOOLS, "tool_choice": {"type": "auto"}}
    body: JsonObject = {"model": "m", "max_tokens": 9, "stream": True, "temperature": 0, **own}
    counting = TOKENIZERS["anthropic"](body, Operation.CHAT, "https://api.example.com", "m")
    url = "https://api.example.com/v1/messages/count_tokens"
    assert next_request(counting) == ("POST", url, {"model": "m", **own})
    assert count_after(counting, {"input_tokens": 1234}) == Count(1234)
    versioned = TOKENIZERS["anthropic"](body, Operation.CHAT, "https://api.example.com/v1", "m")
    assert next_request(versioned)[1] == url


def test_vertex_counts_for_claude_in_one_place_for_all_its_models() -> None:
    own: JsonObject = {"anthropic_version": "vertex-2023-10-16", "messages": PICTURE, "system": "be brief"}
    base = "https://global-aiplatform.googleapis.com/v1/projects/p/locations/global"
    counting = TOKENIZERS["anthropic_vertex"]({**own, "max_tokens": 9}, Operation.CHAT, base, "claude-x@1")
    place = "https://aiplatform.googleapis.com/v1/projects/p/locations/global"
    url = f"{place}/publishers/anthropic/models/count-tokens:rawPredict"
    assert next_request(counting) == ("POST", url, {"model": "claude-x@1", **own})
    assert count_after(counting, {"input_tokens": 12}) == Count(12)


# Bedrock ------------------------------------------------------------------------------------------------------------

BEDROCK = "https://bedrock-runtime.eu-west-1.amazonaws.com"


def test_bedrock_counts_a_conversation_without_its_settings() -> None:
    own: JsonObject = {"messages": MESSAGES, "system": [{"text": "be brief"}], "toolConfig": {"tools": []}}
    body: JsonObject = {**own, "inferenceConfig": {"maxTokens": 9}, "requestMetadata": {"a": "b"}}
    counting = TOKENIZERS["bedrock"](body, Operation.CHAT, BEDROCK, "anthropic.claude-x-v1:0")
    url = f"{BEDROCK}/model/anthropic.claude-x-v1%3A0/count-tokens"
    assert next_request(counting) == ("POST", url, {"input": {"converse": own}})
    assert count_after(counting, {"inputTokens": 38}) == Count(38)


@looped("geography", ["us", "us-gov", "eu", "apac", "au", "jp", "ca", "global"])
def test_bedrock_s_profiles_are_counted_for_as_their_models_if_that_is_told(geography: str) -> None:
    def begun() -> Counting:
        return TOKENIZERS["bedrock"]({"messages": []}, Operation.CHAT, BEDROCK, f"{geography}.anthropic.claude-x")

    counting = begun()
    assert next_request(counting)[1] == f"{BEDROCK}/model/anthropic.claude-x/count-tokens"
    assert count_after(counting, {"inputTokens": 38}) == Count(38)
    counting = begun()
    counting.answer(400, b'{"message": "The provided model identifier is invalid."}')
    assert next_request(counting)[1] == f"{BEDROCK}/model/{geography}.anthropic.claude-x/count-tokens"
    assert without_geography(f"{geography}.anthropic.claude-x") == "anthropic.claude-x"
    assert count_after(counting, {"inputTokens": 39}) == Count(39)


def test_bedrock_s_other_names_are_asked_about_once() -> None:
    name = "arn:aws:bedrock:eu-west-1:1:application-inference-profile/eu.x"
    counting = TOKENIZERS["bedrock"]({"messages": []}, Operation.CHAT, BEDROCK, name)
    counting.answer(400, b'{"message": "The provided model doesn\'t support counting tokens."}')
    assert (counting.next(), counting.count) == (None, Count())


def test_bedrock_counts_claude_s_own_body_whole() -> None:
    body: JsonObject = {"anthropic_version": "bedrock-2023-05-31", "messages": MESSAGES, "max_tokens": 9}
    counting = TOKENIZERS["bedrock_anthropic"](body, Operation.CHAT, BEDROCK, "anthropic.claude-x")
    encoded = b64encode(orjson.dumps(body)).decode()
    assert next_request(counting)[2] == {"input": {"invokeModel": {"body": encoded}}}
    assert count_after(counting, {"inputTokens": 38}) == Count(38)


# Gemini -------------------------------------------------------------------------------------------------------------

CONTENTS: JsonObject = {
    "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    "systemInstruction": {"parts": [{"text": "be brief"}]},
    "tools": [{"functionDeclarations": []}],
    "generationConfig": {"maxOutputTokens": 9},
}


@looped(
    ("model", "path"),
    [
        ("gemini-3-pro", "models/gemini-3-pro"),
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/own", "tunedModels/own"),
    ],
)
def test_gemini_counts_a_whole_call(model: str, path: str) -> None:
    body: JsonObject = {**CONTENTS, "toolConfig": {}}
    counting = TOKENIZERS["gemini"](body, Operation.CHAT, "https://up/v1beta", model)
    assert next_request(counting) == (
        "POST",
        f"https://up/v1beta/{path}:countTokens",
        {"generateContentRequest": {"model": path, **body}},
    )
    assert count_after(counting, {"totalTokens": 31, "promptTokensDetails": []}) == Count(31)


def test_vertex_counts_what_the_prompt_is_made_of() -> None:
    base = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu"
    counting = TOKENIZERS["vertex"]({**CONTENTS, "toolConfig": {}}, Operation.CHAT, base, "gemini-3-pro")
    place = "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu"
    assert next_request(counting) == ("POST", f"{place}/publishers/google/models/gemini-3-pro:countTokens", CONTENTS)
    assert count_after(counting, {"totalTokens": 31, "totalBillableCharacters": 2}) == Count(31)


# Any response ----- ---------------------------------------------------------------------------------------------------

every_style = looped("style", TOKENIZERS)


@every_style
@looped(
    ("status", "body"), [(404, b'{"detail": "Not Found"}'), (500, b""), (200, b"<html>"), (200, b"null"), (302, b"{}")]
)
def test_an_engine_that_does_not_count_tells_nothing(style: str, status: int, body: bytes) -> None:
    for counting in (chat(style), completion(style, "hi")):
        while counting.next() is not None:
            counting.answer(status, body)
        assert counting.count == Count()


NAMES = ["count", "max_model_len", "data", "id", "tokens", "prompt", "input_tokens", "max_total_tokens", "n_ctx"]
NAMES += ["inputTokens", "totalTokens"]
wire: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=8,
)


@every_style
@given(answers=st.lists(wire, min_size=3, max_size=3))
def test_no_answer_raises_and_no_engine_is_asked_more_than_three_times(style: str, answers: list[JsonValue]) -> None:
    for counting in (chat(style), completion(style, "hi"), completion(style, [1, 2])):
        for answer in answers:
            if counting.next() is not None:
                counting.answer(200, orjson.dumps(answer))
        assert counting.next() is None
        assert counting.count.tokens is None or counting.count.tokens >= 0
        assert counting.count.window is None or counting.count.window > 0
