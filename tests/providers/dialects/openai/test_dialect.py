"""The requests to each vendor of the OpenAI family: addresses, streams, extra fields.

Each field of each row is in tests/conformance/golden.
"""

from contextlib import suppress
from dataclasses import replace

import orjson

from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import LogprobsWanted, Operation, Params
from tests.providers.dialects.openai.kit import (
    DIALECT,
    body_of,
    chat,
    completion,
    every_row,
    one_param,
    refusal_of,
    target,
)
from tests.support.looped import looped

TOOL: JsonObject = {"type": "function", "function": {"name": "f"}}
PICKED: JsonObject = {"provider": {"require_parameters": True}}


NO_USAGE_ASKED = {"ai21", "fireworks", "together", "mistral", "perplexity", "databricks", "cohere_compat"}


@every_row
def test_a_minimal_stream_asks_for_usage_only_where_it_must(row: str) -> None:
    model = target(row).upstream_model
    expected: JsonObject = {"model": model, "messages": [{"role": "user", "content": "hello"}], "stream": True}
    expected |= PICKED if row == "openrouter" else {}
    if row not in NO_USAGE_ASKED:
        expected["stream_options"] = {"include_usage": True}
    call = DIALECT.encode(chat(stream=True), target(row))
    assert call.stream
    assert body_of(chat(stream=True), target(row)) == expected


@looped(
    ("row", "model", "operation", "url"),
    [
        ("openai", "gpt-4o", Operation.CHAT, "http://up/v1/chat/completions"),
        ("openai", "davinci-002", Operation.COMPLETIONS, "http://up/v1/completions"),
        ("openai", "ft:davinci-002:org::1", Operation.COMPLETIONS, "http://up/v1/completions"),
        (
            "azure",
            "gpt 4/o",
            Operation.CHAT,
            "http://up/v1/openai/deployments/gpt%204%2Fo/chat/completions?api-version=2024-10-21",
        ),
        (
            "azure",
            "gpt-35-turbo-instruct",
            Operation.COMPLETIONS,
            "http://up/v1/openai/deployments/gpt-35-turbo-instruct/completions?api-version=2024-10-21",
        ),
        ("azure_v1", "gpt-4o", Operation.CHAT, "http://up/v1/chat/completions"),
        ("groq", "m", Operation.CHAT, "http://up/v1/chat/completions"),
        ("vllm", "m", Operation.COMPLETIONS, "http://up/v1/completions"),
    ],
)
def test_a_prompt_goes_to_the_address_its_model_needs(row: str, model: str, operation: Operation, url: str) -> None:
    call = DIALECT.encode(completion(), target(row, model))
    assert (call.operation, call.url, call.method) == (operation, url, "POST")
    assert call.emulated == (("prompt",) if operation is Operation.CHAT else ())


def test_a_targets_own_api_version_wins() -> None:
    call = DIALECT.encode(chat(), target("azure", api_version="2025-01-01-preview"))
    assert call.url.endswith("/openai/deployments/m/chat/completions?api-version=2025-01-01-preview")


def test_a_targets_own_word_on_raw_prompts_wins() -> None:
    assert DIALECT.encode(completion(), target("vllm", completions=False)).operation is Operation.CHAT
    assert DIALECT.encode(completion(), target("openai", completions=True)).operation is Operation.COMPLETIONS
    # The vendor has no path for raw prompts, so there is nothing to override.
    assert DIALECT.encode(completion(), target("groq", completions=True)).operation is Operation.CHAT


def test_tools_make_a_chat_of_a_prompt() -> None:
    call = DIALECT.encode(completion({"tools": [{"type": "function", "function": {"name": "f"}}]}), target("vllm"))
    assert call.operation is Operation.CHAT


def test_a_completion_model_neither_chats_nor_has_tools() -> None:
    assert refusal_of(chat(), target("openai", "davinci-002")).param == "messages"
    tools: Params = {"tools": [{"type": "function", "function": {"name": "f"}}]}
    assert refusal_of(completion(tools), target("openai", "davinci-002")).param == "tools"


@looped("model", ["o1", "o3-mini", "gpt-5", "gpt-5-mini", "ft:o4-mini:x"])
def test_reasoning_models_get_only_what_they_take(model: str) -> None:
    to = target("openai", model)
    assert body_of(chat({"max_tokens": 5, "temperature": 1, "seed": 1}), to)["max_completion_tokens"] == 5
    assert (
        refusal_of(chat({"temperature": 0.5}), to).message == "'temperature' is not supported by v/m/d: it must be 1."
    )
    refused: Params = {"top_p": 0.5, "presence_penalty": 1, "logit_bias": {"1": 1.0}, "stop": ("a",)}
    for name, value in refused.items():
        assert refusal_of(chat(one_param(name, value)), to).param == name
    assert refusal_of(chat({"logprobs": LogprobsWanted(0, "content")}), to).param == "logprobs"


@looped("model", ["gpt-4o", "gpt-5-chat-latest", "chatgpt-4o-latest"])
def test_other_models_keep_their_sampling(model: str) -> None:
    assert body_of(chat({"temperature": 0.5, "stop": ("a",)}), target("openai", model))["temperature"] == 0.5


def test_a_surfaces_own_default_is_left_out_where_it_cannot_be_honoured() -> None:
    injected = frozenset({"temperature", "context_length_exceeded_behavior", "min_p"})
    params: Params = {"temperature": 0, "context_length_exceeded_behavior": "truncate", "min_p": 0.1, "max_tokens": 5}
    request = replace(chat(params), injected=injected)
    assert set(body_of(request, target("openai", "o3"))) == {"model", "messages", "max_completion_tokens"}
    assert body_of(request, target("vllm"))["temperature"] == 0


@looped("name", ["messages", "stream", "n", "repeat_penalty"])
def test_an_unknown_field_cannot_replace_what_another_field_wrote(name: str) -> None:
    request = replace(completion({"repetition_penalty": 1.1}), unknown={name: 5})
    assert refusal_of(request, target("llamacpp")).code == "conflicting_parameters"


def test_extra_params_merge_last_and_deep() -> None:
    params: Params = {"response_format": {"type": "json_object"}, "temperature": 0.5}
    request = replace(chat(params), extra_params={"response_format": {"schema": {}}, "temperature": 1, "x": [1]})
    body = body_of(request, target("openai"))
    assert body["response_format"] == {"type": "json_object", "schema": {}}
    assert (body["temperature"], body["x"]) == (1, [1])


@looped("name", ["model", "stream", "stream_options", "messages", "prompt", "n"])
def test_extra_params_cannot_touch_what_is_protected(name: str) -> None:
    refusal = refusal_of(replace(chat(), extra_params={name: 1}), target("openai"))
    assert (refusal.param, refusal.code) == ("inference_extra_params", "invalid_value")


def test_extra_params_are_merged_into_objects_within_objects() -> None:
    request = replace(chat({"prediction": {"a": {"b": "c"}}}), extra_params={"prediction": {"a": {"d": "e"}}})
    assert body_of(request, target("openai"))["prediction"] == {"a": {"b": "c", "d": "e"}}


def test_what_is_compiled_of_a_target_is_little_and_is_that_target_s_alone() -> None:
    to = target("vllm")
    given: list[Params] = [{}, {"suffix": "x"}, {"tools": []}, {"tools": [TOOL]}, {"seed": 1}]
    for params in given:
        for request in (chat(params), completion(params)):
            with suppress(Refusal):
                DIALECT.encode(request, to)
    assert 1 < len(to.compiled) <= 8
    other = replace(to, upstream_model="other", base_url="http://other/v1")
    assert not other.compiled
    sent = DIALECT.encode(chat(), other)
    assert (sent.url, orjson.loads(sent.body)["model"]) == ("http://other/v1/chat/completions", "other")


def test_requests_do_not_change_what_is_compiled() -> None:
    to = target("openrouter")
    first = DIALECT.encode(chat(stream=True), to)
    changed = replace(chat(stream=True), extra_params={"usage": {"include": False}, "provider": {"sort": "price"}})
    DIALECT.encode(replace(changed, unknown={"reasoning": {"exclude": True}}), to)
    assert DIALECT.encode(chat(stream=True), to).body == first.body
