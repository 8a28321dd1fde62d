"""Facts about single vendors in their rows: the form of a request, and refusals with their reasons."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import cast

import orjson
import pytest

from providers.emulation.check_answer import CheckKind
from providers.emulation.plan_calls import plan_calls
from providers.emulation.plan_checks import BESIDE_TOOLS
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt, Guided, LogprobsWanted, Operation, Params, TextPrompt, UnifiedRequest
from tests.providers.dialects.openai.kit import (
    DIALECT,
    SCHEMA,
    TALK,
    body_of,
    chat,
    completion,
    every_row,
    one_param,
    refusal_of,
    target,
)
from tests.support.looped import looped

CALL: JsonObject = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def messages(row: str, *given: JsonObject, model: str = "m") -> JsonValue:
    return body_of(chat(prompt=ChatPrompt(given)), target(row, model))["messages"]


def test_members_that_are_null_are_not_sent() -> None:
    called: JsonObject = {"role": "assistant", "content": None, "audio": None, "tool_calls": [CALL]}
    assert messages("groq", called) == [{"role": "assistant", "content": None, "tool_calls": [CALL]}]


def test_a_turn_of_the_model_that_says_nothing_goes_to_engines_alone() -> None:
    asked: JsonObject = {"role": "user", "content": "a"}
    silent: list[JsonObject] = [{"content": None, "tool_calls": []}, {"content": ""}, {"content": []}, {}]
    for said in silent:
        turn: JsonObject = {"role": "assistant", **said}
        assert messages("groq", asked, turn) == [asked]
        assert messages("vllm", asked, turn) == [asked, {"role": "assistant", "content": ""}]
    with pytest.raises(Refusal, match="holds no text"):
        messages("groq", {"role": "assistant", "content": None})


@every_row
def test_the_null_content_of_a_turn_that_only_calls_is_sent_where_the_client_sent_it(row: str) -> None:
    called: JsonObject = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    bare: JsonObject = {"role": "assistant", "tool_calls": [CALL]}
    result: JsonObject = {"role": "tool", "tool_call_id": "c1", "content": "4"}
    for turn in (called, bare):
        written = messages(row, ASKED, turn, result)
        assert isinstance(written, list)
        (sent,) = [each for each in written if isinstance(each, dict) and "tool_calls" in each]
        assert ("content" in sent, sent.get("content")) == ("content" in turn, None)


ASKED: JsonObject = {"role": "user", "content": "2+2?"}


def test_reasoning_models_of_the_newer_kind_decide_on_sampling_themselves() -> None:
    to = target("openai", "gpt-5.1")
    assert body_of(chat({"temperature": 0.5}), to)["temperature"] == 0.5
    assert refusal_of(chat({"stop": ("a",)}), to).param == "stop"


@pytest.mark.parametrize(("model", "upstream"), [("o3-mini", "reasoner-prod"), ("m", "o3-mini")])
def test_a_deployment_s_free_name_does_not_hide_what_its_model_is(model: str, upstream: str) -> None:
    to = replace(target("azure", upstream), model=model)
    assert refusal_of(chat({"stop": ("a",)}), to).param == "stop"


def test_an_instruct_deployment_with_a_free_name_takes_raw_prompts() -> None:
    to = replace(target("azure", "prod"), model="gpt-35-turbo-instruct")
    assert DIALECT.encode(completion(), to).operation is Operation.COMPLETIONS


@pytest.mark.parametrize(("row", "path"), [("mistral", "/fim/completions"), ("deepseek", "/beta/completions")])
def test_a_suffix_goes_where_the_vendor_fills_in_the_middle(row: str, path: str) -> None:
    params: Params = {"suffix": "}", "max_tokens": 5}
    call = DIALECT.encode(completion(params, TextPrompt(("{",))), target(row))
    assert (call.url, call.operation) == (f"http://up/v1{path}", Operation.COMPLETIONS)
    assert body_of(completion(params, TextPrompt(("{",))), target(row)) == {
        "model": "m",
        "prompt": "{",
        "suffix": "}",
        "max_tokens": 5,
    }
    assert DIALECT.encode(completion(), target(row)).operation is Operation.CHAT


@pytest.mark.parametrize("row", ["mistral", "deepseek"])
def test_a_middle_at_the_end_of_the_text_is_filled_in_without_a_suffix(row: str) -> None:
    at_the_end = completion({"suffix": ""}, TextPrompt(("{",)))
    assert DIALECT.encode(at_the_end, target(row)).operation is Operation.COMPLETIONS
    assert body_of(at_the_end, target(row)) == {"model": "m", "prompt": "{"}


def test_openrouter_must_find_an_upstream_that_has_every_parameter() -> None:
    body = body_of(chat({"top_p": 1, "frequency_penalty": 0, "top_k": 5}), target("openrouter"))
    assert body == {"model": "m", "messages": [*TALK.messages], "top_k": 5, "provider": {"require_parameters": True}}


def test_openrouter_s_client_may_say_otherwise_without_touching_the_row() -> None:
    extra: JsonObject = {"provider": {"require_parameters": False, "order": ["x"]}}
    asked = replace(chat(), extra_params=extra)
    assert body_of(asked, target("openrouter"))["provider"] == {"require_parameters": False, "order": ["x"]}
    assert body_of(chat(), target("openrouter"))["provider"] == {"require_parameters": True}


@looped(("asked", "told"), [("default", "on_demand"), ("auto", "auto"), ("flex", "flex"), ("on_demand", "on_demand")])
def test_groq_s_word_for_the_default_tier_is_its_own(asked: str, told: str) -> None:
    call = DIALECT.encode(chat({"service_tier": asked}), target("groq"))
    assert (orjson.loads(call.body)["service_tier"], call.emulated) == (told, ())


@pytest.mark.parametrize("request_of", [chat, completion])
def test_sambanova_s_models_that_know_a_repetition_penalty_get_it(
    request_of: Callable[[Params], UnifiedRequest],
) -> None:
    asked = request_of({"repetition_penalty": 1.2, "top_k": 4})
    for model in ("gpt-oss-120b", "MiniMax-M2.5"):
        body = body_of(asked, target("sambanova", model))
        assert (body["repetition_penalty"], body["top_k"]) == (1.2, 4)
    assert refusal_of(asked, target("sambanova", "DeepSeek-V3.1")).param == "repetition_penalty"
    assert body_of(chat({"reasoning_effort": "low"}), target("sambanova", "gpt-oss-120b"))["reasoning_effort"] == "low"


def test_the_calls_of_strict_tools_are_checked_where_the_vendor_does_not_keep_the_promise() -> None:
    function: JsonObject = {"name": "f", "parameters": {"type": "object", "properties": {}}}
    loose: Params = {"tools": [{"type": "function", "function": {**function, "strict": False}}]}
    assert body_of(chat(loose), target("fireworks"))["tools"] == [{"type": "function", "function": function}]
    strict: Params = {"tools": [{"type": "function", "function": {**function, "strict": True}}]}
    planned = plan_calls(chat(strict), target("fireworks"))
    assert orjson.loads(planned.calls[0].sent.body)["tools"] == [{"type": "function", "function": function}]
    assert planned.emulated == ("tools.strict",)
    assert [check.field for check in planned.checks] == ["tools.strict"]
    assert body_of(chat(strict), target("openai"))["tools"] == strict["tools"]


def test_sglang_echoes_a_prompt_or_tells_log_probabilities() -> None:
    params: Params = {"echo": True, "max_tokens": 1}
    assert body_of(completion(params), target("sglang"))["echo"] is True
    params["logprobs"] = LogprobsWanted(1, "legacy")
    assert refusal_of(completion(params), target("sglang")).param == "echo"
    assert body_of(completion(params), target("vllm"))["echo"] is True


def test_a_limit_nobody_set_cannot_pass_the_window() -> None:
    truncating: Params = {"context_length_exceeded_behavior": "truncate"}
    failing: Params = {"context_length_exceeded_behavior": "error"}
    assert body_of(chat(truncating), target("openai")) == body_of(chat(), target("openai"))
    assert body_of(chat(failing), target("vllm")) == body_of(chat(), target("vllm"))
    assert refusal_of(chat(failing), target("ollama")).param == "context_length_exceeded_behavior"


def test_a_choice_of_no_tool_is_kept_where_neutral_values_are_dropped() -> None:
    params: Params = {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": "none"}
    assert body_of(chat(params), target("openrouter"))["tool_choice"] == "none"


def test_either_behaviour_is_kept_where_there_is_no_window() -> None:
    for behaviour in ("truncate", "error"):
        params = one_param("context_length_exceeded_behavior", behaviour)
        params["max_tokens"] = 5
        assert body_of(chat(params), target("mock")) == body_of(chat({"max_tokens": 5}), target("mock"))


CALLED: JsonObject = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "abcdefgh1", "content": "4"}


@looped("model", ["deepseek-reasoner", "deepseek-v4", "deepseek-v4-flash"])
def test_deepseek_gets_the_reasoning_of_every_turn_of_a_tool_loop(model: str) -> None:
    thought: JsonObject = {**CALLED, "reasoning_content": "hm"}
    said: JsonObject = {"role": "assistant", "content": "4"}
    made = messages("deepseek", ASKED, thought, RESULT, CALLED, RESULT, said, ASKED, model=model)
    unknown: JsonObject = {"reasoning_content": " "}
    assert made == [ASKED, thought, RESULT, {**CALLED, **unknown}, RESULT, {**said, **unknown}, ASKED]
    assert messages("deepseek", ASKED, CALLED, RESULT, model="deepseek-chat") == [ASKED, CALLED, RESULT]
    assert messages("deepseek", ASKED, thought, RESULT, model="deepseek-r1") == [ASKED, CALLED, RESULT]


def test_mistral_s_turns_are_as_it_wants_them() -> None:
    thought: JsonObject = {"role": "assistant", "content": "4", "reasoning_content": "hm"}
    empty: JsonObject = {"role": "assistant", "content": ""}
    assert messages("mistral", ASKED, empty, CALLED, RESULT, ASKED, thought) == [
        ASKED,
        CALLED,
        {**RESULT, "name": "f"},
        {"role": "assistant", "content": "OK"},
        ASKED,
        {
            "role": "assistant",
            "prefix": True,
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}], "closed": True},
                {"type": "text", "text": "4"},
            ],
        },
    ]


def test_deepseek_s_reasoner_has_no_log_probabilities() -> None:
    params: Params = {"logprobs": LogprobsWanted(1, "content")}
    assert refusal_of(chat(params), target("deepseek", "deepseek-reasoner")).param == "logprobs"
    assert body_of(chat(params), target("deepseek", "deepseek-chat"))["top_logprobs"] == 1


FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA, "strict": True}}
TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": "f"}}]


@looped(
    ("model", "more", "stream", "strict"),
    [
        ("openai/gpt-oss-120b", {}, False, True),
        ("openai/gpt-oss-120b", {}, True, False),
        ("openai/gpt-oss-20b", {"tools": TOOLS}, False, False),
        ("qwen/qwen3.8-27b", {}, False, True),
        ("openai/gpt-oss-safeguard-20b", {}, False, False),
        ("meta-llama/llama-4-scout-17b-16e-instruct", {}, False, False),
    ],
)
def test_groq_s_schemas_are_strict_where_the_model_and_the_request_let_them_and_checked_elsewhere(
    model: str, more: Params, stream: bool, strict: bool
) -> None:
    for asked in ({"response_format": FORMAT}, {"guided": Guided("json", SCHEMA)}):
        call = DIALECT.encode(chat(cast(Params, {**asked, **more}), stream=stream), target("groq", model))
        assert orjson.loads(call.body)["response_format"]["json_schema"]["strict"] is strict
        name = "guided_json" if "guided" in asked else "response_format"
        assert call.unenforced == (() if strict else (name,))
    assert FORMAT["json_schema"] == {"name": "s", "schema": SCHEMA, "strict": True}


PLAIN: JsonObject = {"type": "json_object"}
SCHEMAS: Sequence[Params] = (
    {"response_format": FORMAT},
    {"response_format": {"type": "json_object", "schema": SCHEMA}},
    {"guided": Guided("json", SCHEMA)},
)
MODE_ONLY = [
    *[("groq", model) for model in ("llama-3.3-70b-versatile", "qwen/qwen3-32b")],
    *[("deepseek", model) for model in ("deepseek-v4-pro", "deepseek-reasoner")],
    *[("moonshot", "kimi-k3"), ("zai", "glm-5.3"), ("cloudflare", "m"), ("ai21", "jamba")],
]


@looped(("name", "model"), MODE_ONLY)
def test_vendors_with_a_json_mode_alone_are_told_the_schema_beside_it(name: str, model: str) -> None:
    assert body_of(chat({"response_format": PLAIN}), target(name, model))["response_format"] == PLAIN
    for stream, params in product((False, True), SCHEMAS):
        plan = plan_calls(chat(params, stream=stream), target(name, model))
        sent = orjson.loads(plan.calls[0].sent.body)
        assert sent["response_format"] == PLAIN
        assert [message["role"] for message in sent["messages"]] == ["system", "user"]
        assert orjson.dumps(SCHEMA).decode() in sent["messages"][0]["content"]
        (check,) = plan.checks
        assert (check.kind, check.written, check.fenced) == (
            CheckKind.SCHEMA,
            orjson.dumps(SCHEMA, option=orjson.OPT_SORT_KEYS),
            True,
        )
        assert plan.emulated == (check.field,)
    refused: Sequence[Params] = (
        {"guided": Guided("regex", "a")},
        {"response_format": {"type": "grammar", "grammar": "g"}},
    )
    assert {refusal_of(chat(params), target(name, model)).code for params in refused} == {"unsupported_parameter"}


@looped(("name", "model"), [("cerebras", "m"), ("groq", "llama-3.3-70b-versatile")])
def test_a_constraint_that_cannot_go_beside_tools_is_told_in_the_prompt(name: str, model: str) -> None:
    for params in ({"response_format": PLAIN}, *SCHEMAS, {"guided": Guided("choice", ("a", "b"))}):
        asked = cast(Params, {**params, "tools": TOOLS})
        plan = plan_calls(chat(asked), target(name, model))
        sent = orjson.loads(plan.calls[0].sent.body)
        assert "response_format" not in sent
        assert sent["messages"][0]["content"].startswith(BESIDE_TOOLS)
        assert len(plan.checks) == len(plan.emulated) == 1
    given = body_of(chat(cast(Params, {"response_format": PLAIN, "tools": []})), target(name, model))
    assert given["response_format"] == PLAIN
    regex = cast(Params, {"guided": Guided("regex", "a"), "tools": TOOLS})
    assert refusal_of(chat(regex), target(name, model)).param == "guided_regex"


@looped(
    ("row", "model", "name", "value"),
    [
        ("openai", "gpt-5.1", "verbosity", "low"),
        ("azure", "prod", "verbosity", "low"),
        ("azure", "gpt-4o-audio-preview", "modalities", ["text", "audio"]),
        ("azure", "prod", "audio", {"voice": "alloy", "format": "mp3"}),
        ("mistral", "mistral-large-2512", "service_tier", "auto"),
        ("mistral", "magistral-medium-2509", "service_tier", "auto"),
    ],
)
def test_a_vendor_answers_itself_for_what_only_some_of_its_models_know(
    row: str, model: str, name: str, value: JsonValue
) -> None:
    assert body_of(chat(one_param(name, value)), target(row, model))[name] == value
