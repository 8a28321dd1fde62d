"""The form of each field for each row: neutral values, bounds, counts, refusals by name."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import orjson
import pytest

from providers.dialects.openai.fields import writers
from providers.dialects.shared.field_writers import LONGEST_IDS
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import is_advisory, is_neutral
from providers.unified_request import Guided, LogprobsWanted, Operation, Params, TextPrompt, UnifiedRequest
from tests.providers.dialects.openai.kit import (
    DIALECT,
    ROWS,
    SCHEMA,
    body_of,
    chat,
    completion,
    every_row,
    one_param,
    refusal_of,
    target,
)
from tests.providers.neutral import NEUTRAL
from tests.support.looped import looped

ASKING: Mapping[str, object] = {
    "max_tokens": 5,
    "temperature": 1,
    "top_p": 0.5,
    "top_k": 40,
    "min_p": 0.1,
    "typical_p": 0.9,
    "repetition_penalty": 1.1,
    "presence_penalty": 1,
    "frequency_penalty": 1,
    "mirostat_lr": 0.1,
    "mirostat_target": 5,
    "ignore_eos": True,
    "n": 2,
    "best_of": 3,
    "stop": ("a",),
    "include_stop_str_in_output": True,
    "logprobs": LogprobsWanted(1, "content"),
    "echo": True,
    "echo_last": 3,
    "suffix": "end",
    "logit_bias": {"1": 1.0},
    "seed": 1,
    "user": "u",
    "response_format": {"type": "json_object"},
    "guided": Guided("json", SCHEMA),
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "tool_choice": "auto",
    "web_search_options": {},
    "parallel_tool_calls": False,
    "audio": {"voice": "x"},
    "prediction": {"type": "content", "content": "x"},
    "prompt_cache_key": "k",
    "prompt_cache_isolation_key": "k",
    "metadata": {"a": "b"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "u",
    "store": True,
    "verbosity": "low",
    "service_tier": "auto",
    "reasoning_effort": "low",
    "reasoning_history": "disabled",
    "thinking": {"type": "enabled"},
    "raw_output": True,
    "return_token_ids": True,
    "perf_metrics_in_response": True,
    "speculation": "x",
}
OUR_OWN = {"images", "modalities", "context_length_exceeded_behavior"}


def test_the_tables_hold_every_field() -> None:
    assert set(ASKING) | OUR_OWN == set(Params.__annotations__)
    assert all(is_neutral(name, value) for name, values in NEUTRAL.items() for value in values)


@every_row
@looped("name", ASKING)
def test_a_field_is_honoured_on_the_wire_left_out_and_named_or_refused_by_its_own_name(row: str, name: str) -> None:
    profile = load_profiles()[row].for_model(target(row).upstream_model)
    params = {**one_param(name, ASKING[name]), **BESIDE.get(name, {})}
    if other := profile.needs.get(name):
        params |= one_param(other, value=True)
    without = {each: value for each, value in params.items() if each != name}
    honoured = profile.for_version(profile.api_version).wires[Operation.CHAT].accepts
    if (name, profile.structured) in TOLD_FORMS:
        call = DIALECT.encode(chat(cast(Params, params)), target(row))
        field = {"guided": "guided_json"}.get(name, name)
        assert (call.in_prompt, call.unenforced, call.emulated) == (True, (field,), (field,))
    elif name in honoured:
        assert body_of(chat(cast(Params, params)), target(row)) != body_of(chat(cast(Params, without)), target(row))
    elif is_advisory(name, ASKING[name]):
        call = DIALECT.encode(chat(one_param(name, ASKING[name])), target(row))
        assert (call.body, call.dropped) == (DIALECT.encode(chat(), target(row)).body, (name,))
    else:
        # The default tool choice is neutral.
        params = {"tool_choice": "required"} if name == "tool_choice" else params
        refusal = refusal_of(chat(cast(Params, params)), target(row))
        assert refusal.param == {"guided": "guided_json"}.get(name, name)
        assert f"'{refusal.param}' is not supported by v/m/d" in refusal.message


_TOOLS: Params = {"tools": [{"type": "function", "function": {"name": "f"}}]}
BESIDE: Mapping[str, Params] = {"parallel_tool_calls": _TOOLS, "tool_choice": _TOOLS}
"""The companion fields without which a field has no effect, on some rows."""

TOLD_FORMS = (("guided", "json_object_only"), ("response_format", "tgi"))
"""The fields that styles express in the prompt, in the form that ASKING has."""


@looped(
    ("row", "name", "value", "members"),
    [
        ("sglang", "include_stop_str_in_output", True, {"no_stop_trim": True}),
        ("llamacpp", "repetition_penalty", 1.2, {"repeat_penalty": 1.2}),
        ("lm_studio", "repetition_penalty", 1.2, {"repeat_penalty": 1.2}),
        ("vllm", "top_k", 0, {"top_k": -1}),
        ("sglang", "top_k", -1, {"top_k": -1}),
        ("llamacpp", "top_k", -1, {"top_k": 0}),
        ("together", "top_k", -1, {}),
        ("vllm", "echo", False, {}),
        ("vllm", "echo", True, {"echo": True}),
        ("tgi", "top_p", 1, {}),
        ("tgi", "top_p", 0.9, {"top_p": 0.9}),
        ("fireworks", "images", (("data:x", "data:y"),), {"images": ["data:x", "data:y"]}),
        ("fireworks", "context_length_exceeded_behavior", "error", {"context_length_exceeded_behavior": "error"}),
        ("vllm", "context_length_exceeded_behavior", "truncate", {}),
        ("llamacpp", "context_length_exceeded_behavior", "error", {}),
    ],
)
def test_a_field_has_the_vendors_own_spelling(row: str, name: str, value: object, members: dict[str, object]) -> None:
    plain = {"model": "m", "prompt": "hello"}
    assert body_of(completion(one_param(name, value)), target(row)) == {**plain, **members}


def test_images_come_one_list_a_prompt() -> None:
    request = completion({"images": (("data:x",), ("data:y",))}, TextPrompt(("a", "b")))
    assert body_of(request, target("fireworks"))["images"] == [["data:x"], ["data:y"]]


@looped(
    ("row", "name", "value", "message"),
    [
        ("fireworks", "top_k", 101, "'top_k' must be at least 0 and at most 100 on v/m/d."),
        ("llamacpp", "max_tokens", 0, "'max_tokens' must be at least 1 on v/m/d."),
        ("tgi", "top_p", 0, "'top_p' must be at least 0.001 and at most 0.999 on v/m/d."),
    ],
)
def test_a_value_out_of_the_vendors_bounds_is_refused_with_the_bounds(
    row: str, name: str, value: object, message: str
) -> None:
    refusal = refusal_of(completion(one_param(name, value)), target(row))
    assert (refusal.param, refusal.code, refusal.message) == (name, "invalid_value", message)


def test_too_many_stops_are_refused() -> None:
    stops = tuple("abcde")
    assert "at most 4" in refusal_of(chat({"stop": stops}), target("openai")).message
    assert body_of(chat({"stop": stops}), target("deepseek"))["stop"] == list(stops)


@looped(
    ("row", "wanted", "on_completions", "on_chat"),
    [
        ("vllm", LogprobsWanted(0, "legacy"), {"logprobs": 0}, {"logprobs": True}),
        ("vllm", LogprobsWanted(3, "legacy"), {"logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ("vllm", LogprobsWanted(3, "content"), {"logprobs": 3}, {"logprobs": True, "top_logprobs": 3}),
        ("llamacpp", LogprobsWanted(0, "legacy"), {"logprobs": 1}, {"logprobs": True, "top_logprobs": 1}),
        ("together", LogprobsWanted(0, "content"), {"logprobs": 1}, {"logprobs": 1}),
        ("together", LogprobsWanted(7, "content"), {"logprobs": 7}, {"logprobs": 7}),
        ("fireworks", LogprobsWanted(2, "legacy"), {"logprobs": 2}, {"logprobs": 2}),
        ("fireworks", LogprobsWanted(0, "legacy"), {"logprobs": True}, {"logprobs": True}),
        (
            "fireworks",
            LogprobsWanted(2, "content"),
            {"logprobs": True, "top_logprobs": 2},
            {"logprobs": True, "top_logprobs": 2},
        ),
    ],
)
def test_log_probabilities_are_asked_for_in_the_vendors_form(
    row: str, wanted: LogprobsWanted, on_completions: dict[str, object], on_chat: dict[str, object]
) -> None:
    text = body_of(completion({"logprobs": wanted}), target(row))
    talk = body_of(chat({"logprobs": wanted}), target(row))
    assert {name: text[name] for name in text if "logprobs" in name} == on_completions
    assert {name: talk[name] for name in talk if "logprobs" in name} == on_chat


def test_more_alternatives_than_the_vendor_lists_are_refused_and_never_fewer_given() -> None:
    many: Params = {"logprobs": LogprobsWanted(6, "content")}
    assert refusal_of(chat(many), target("fireworks")).code == "invalid_value"
    two: Params = {"logprobs": LogprobsWanted(2, "content")}
    assert "when streaming" in refusal_of(chat(two, stream=True), target("together")).message


def test_log_probabilities_of_a_choice_inside_an_object_are_refused() -> None:
    params: Params = {"guided": Guided("choice", ("a", "b")), "logprobs": LogprobsWanted(0, "content")}
    assert refusal_of(chat(params), target("openai")).param == "logprobs"
    assert body_of(completion(params), target("llamacpp"))["logprobs"] == 1


def test_a_choice_inside_an_object_is_marked_for_the_answer() -> None:
    call = DIALECT.encode(chat({"guided": Guided("choice", ("a", "b"))}), target("openai"))
    assert (call.unwrap_choice, call.emulated) == (True, ("guided_choice",))


@looped(
    ("row", "value", "refused"),
    [
        ("ollama", "auto", False),
        ("lm_studio", "none", False),
        ("ollama", "required", True),
        ("lm_studio", {"type": "function", "function": {"name": "f"}}, True),
        ("openai", {"type": "function", "function": {"name": "f"}}, False),
        ("vllm", "none", False),
    ],
)
def test_a_tool_choice_is_sent_only_where_it_is_kept(row: str, value: object, refused: bool) -> None:
    params: Params = {"tools": [{"type": "function", "function": {"name": "f"}}]}
    params["tool_choice"] = value  # type: ignore[typeddict-item]
    if refused:
        assert refusal_of(chat(params), target(row)).param == "tool_choice"
    else:
        assert body_of(chat(params), target(row))["tool_choice"] == value


def test_no_tools_need_no_choice_of_tools() -> None:
    assert "tool_choice" not in body_of(chat({"tool_choice": "none"}), target("openai"))


@pytest.mark.parametrize(
    ("row", "value", "reason"),
    [("ollama", "error", "cuts the prompt by itself"), ("ollama", "truncate", "cuts the prompt by itself")],
)
def test_what_the_vendor_does_at_its_window_by_itself_is_refused(row: str, value: object, reason: str) -> None:
    params: Params = {**one_param("context_length_exceeded_behavior", value), "max_tokens": 9}
    assert reason in refusal_of(chat(params), target(row)).message


@every_row
def test_a_window_that_the_gateway_knows_is_no_reason_to_refuse(row: str) -> None:
    for value in ("truncate", "error"):
        params: Params = {**one_param("context_length_exceeded_behavior", value), "max_tokens": 9}
        assert body_of(chat(params), replace(target(row), context_window=100))


def test_a_windows_behaviour_is_each_operations_own() -> None:
    params: Params = {"context_length_exceeded_behavior": "truncate", "max_tokens": 9}
    assert body_of(chat(params), target("together"))["context_length_exceeded_behavior"] == "truncate"
    assert "context_length_exceeded_behavior" not in body_of(completion(params), target("together"))


def test_rows_are_compiled_once() -> None:
    for row in ROWS:
        profile = load_profiles()[row]
        assert writers(profile, Operation.CHAT) is writers(profile, Operation.CHAT)


@looped("row", ["openai", "groq", "ollama"])
def test_no_chat_is_asked_for_nothing(row: str) -> None:
    refusal = refusal_of(chat({"max_tokens": 0}), target(row))
    assert (refusal.param, refusal.code) == ("max_tokens", "invalid_value")
    assert "at least 1" in refusal.message


@looped(("name", "longest"), LONGEST_IDS.items())
def test_a_long_id_goes_to_a_hosted_vendor_as_its_digest(name: str, longest: int) -> None:
    for text in ("x" * longest, "x" * (longest + 1)):
        written = text if len(text) <= longest else hashlib.sha256(text.encode()).hexdigest()
        assert body_of(chat(one_param(name, text)), target("openai"))[name] == written


def test_metadata_that_openai_does_not_take_is_left_out_pair_by_pair() -> None:
    many: dict[str, object] = {"nested": {"a": "b"}, "number": 1, "x" * 65: "a", "long": "x" * 513}
    many |= {str(number): "v" for number in range(20)}
    call = DIALECT.encode(chat(cast(Params, {"metadata": many, "store": True})), target("openai"))
    assert orjson.loads(call.body)["metadata"] == {str(number): "v" for number in range(16)}
    assert call.dropped == ("metadata",)


def test_metadata_goes_to_openai_with_stored_answers_alone() -> None:
    kept: Params = {"metadata": {"a": "b"}, "store": True}
    assert body_of(chat(kept), target("openai"))["metadata"] == {"a": "b"}
    for params in (cast(Params, {"metadata": {"a": "b"}}), cast(Params, {"metadata": {"a": "b"}, "store": False})):
        call = DIALECT.encode(chat(params), target("openai"))
        assert call.dropped == ("metadata",)
        assert "metadata" not in orjson.loads(call.body)
    assert body_of(chat({"metadata": {"a": "b"}}), target("groq"))["metadata"] == {"a": "b"}


def test_an_answer_is_stored_only_where_it_can_be() -> None:
    assert refusal_of(chat({"store": True}), target("together")).param == "store"
    assert DIALECT.encode(chat({"store": False}), target("together")).dropped == ("store",)
    assert body_of(chat({"store": False}), target("openai"))["store"] is False


@looped("model", ["gpt-4o", "o3", "gpt-5"])
def test_an_old_version_of_azure_is_not_sent_what_it_does_not_know(model: str) -> None:
    params: Params = {"metadata": {"a": "b"}, "store": False, "safety_identifier": "u", "prompt_cache_key": "k"}
    call = DIALECT.encode(chat(params), target("azure", model, api_version="2024-10-21"))
    assert set(call.dropped) == set(params)
    assert set(orjson.loads(call.body)) == {"model", "messages"}


# Fields outside the unified request -----------------------------------------------------------------------------------


def asking(**unknown: JsonValue) -> UnifiedRequest:
    return replace(chat(), unknown=unknown)


@looped(
    ("row", "name", "value"),
    [
        ("openai", "functions", [{"name": "f"}]),
        ("openai", "function_call", "auto"),
        ("azure", "data_sources", [{"type": "azure_search"}]),
        ("groq", "compound_custom", {"tools": {"enabled_tools": ["web_search"]}}),
        ("mistral", "safe_prompt", True),
        ("dashscope", "enable_search", True),
        ("ollama", "options", {"num_ctx": 9}),
    ],
)
def test_a_vendor_s_own_field_goes_to_it(row: str, name: str, value: JsonValue) -> None:
    assert body_of(asking(**{name: value}), target(row))[name] == value


def test_an_object_goes_into_the_profile_s_own_member() -> None:
    body = body_of(asking(provider={"order": ["a"]}), target("openrouter"))
    assert body["provider"] == {"require_parameters": True, "order": ["a"]}
    again = body_of(asking(provider={"require_parameters": False}), target("openrouter"))
    assert again["provider"] == {"require_parameters": False}
    assert body_of(chat(), target("openrouter"))["provider"] == {"require_parameters": True}


def test_a_name_that_is_taken_or_protected_is_a_conflict() -> None:
    request = asking(max_completion_tokens=3)
    with_limit = replace(request, params={"max_tokens": 5})
    assert refusal_of(with_limit, target("openai")).code == "conflicting_parameters"
    assert refusal_of(asking(model="x"), target("openai")).code == "conflicting_parameters"


def test_settings_of_caches_are_left_out_and_named_where_nobody_reads_them() -> None:
    marker: JsonObject = {"type": "ephemeral"}
    request = asking(cache_control=marker, prompt_cache_options={"mode": "explicit"})
    sent = DIALECT.encode(request, target("fireworks"))
    assert sent.dropped == ("cache_control", "prompt_cache_options")
    assert body_of(request, target("fireworks")) == body_of(chat(), target("fireworks"))
    assert body_of(request, target("openrouter"))["cache_control"] == marker


def test_where_no_such_fields_are_taken_they_are_refused_by_name() -> None:
    to = target("openai")
    closed = replace(to, profile=replace(to.profile, forwards_unknown=False, overrides=(), versions=()))
    assert refusal_of(asking(own=1), closed).param == "own"
