"""The requests that are sent to the Responses API, and the form of their fields."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest

from providers.dialects.registry import DIALECTS
from providers.dialects.responses.request import effort_of, responses_profile, why_responses
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Guided, LogprobsWanted, Operation, Params, UnifiedRequest
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

TOOL: JsonObject = {"type": "function", "function": {"name": "f"}}
WITH_TOOLS: Params = {"tools": [TOOL]}
OF_SEARCH: JsonObject = {"type": "web_search_preview"}
GRAMMAR: JsonObject = {"syntax": "lark", "definition": 'start: "a"'}
CUSTOM: JsonObject = {
    "type": "custom",
    "custom": {"name": "g", "description": "d", "format": {"type": "grammar", "grammar": GRAMMAR}},
}
SCHEMA: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}

CHAT_ONLY = "gpt-4o gpt-5 gpt-5-mini gpt-5-chat-latest gpt-5.1 gpt-5.2 gpt-5.3-chat-latest o3 o4-mini gpt-4.1"
RESPONSES_ONLY = (
    "gpt-5-codex gpt-5.1-codex gpt-5.1-codex-mini gpt-5.1-codex-max gpt-5.3-codex codex-mini-latest gpt-5-pro "
    "gpt-5.2-pro gpt-5.5-pro gpt-6-pro o1-pro o1-pro-2025-03-19 o3-pro o3-deep-research o4-mini-deep-research "
    "computer-use-preview"
)


ASKED: Mapping[str, Params] = {
    "bare": {},
    "effort": {"reasoning_effort": "high"},
    "tools": {"tools": [TOOL]},
    "tools+effort": {"tools": [TOOL], "reasoning_effort": "high"},
    "tools+none": {"tools": [TOOL], "reasoning_effort": "none"},
    "search": {"tools": [{"type": "web_search"}], "reasoning_effort": "none"},
    "code": {"tools": [TOOL, {"type": "code_interpreter", "container": {"type": "auto"}}]},
}


@looped("row", ["openai", "azure", "azure_v1"])
@looped(
    ("models", "there"),
    [
        (CHAT_ONLY, "search code"),
        (RESPONSES_ONLY, "bare effort tools tools+effort tools+none search code"),
        ("gpt-5.4 gpt-5.4-mini gpt-5.5 gpt-5.5-2026-04-23", "tools+effort search code"),
        ("gpt-5.6 gpt-5.6-mini gpt-6 gpt-7", "tools tools+effort search code"),
        # The model has no effort `none`, so it always reasons.
        ("gpt-6-astra", "tools tools+effort tools+none search code"),
    ],
)
def test_the_model_decides_which_api_is_called(row: str, models: str, there: str) -> None:
    for model in models.split():
        profile = load_profiles()[row].for_model(model)
        found = [name for name, params in ASKED.items() if why_responses(profile, params)]
        assert found == there.split(), model


@looped(("effort", "said"), [(None, "unsaid"), ("none", "none"), (False, "none"), ("minimal", "some"), (7, "some")])
def test_an_effort_is_what_the_vendor_is_told(effort: str | bool | int | None, said: str) -> None:
    params: Params = {} if effort is None else {"reasoning_effort": effort}
    assert effort_of(load_profiles()["openai"].for_model("gpt-5.6"), params) == said


def body_of(params: Params, model: str = "gpt-5.6", row: str = "openai", **more: JsonValue) -> JsonObject:
    """Return the body of a call with a tool, without the fields that every body has."""
    asked = replace(chat_request(), params={**WITH_TOOLS, **params}, unknown=more or None)
    body: JsonObject = orjson.loads(encoded(asked, model, row))
    assert body.pop("model") == model
    assert body.pop("input")
    return body


def encoded(asked: UnifiedRequest, model: str, row: str) -> bytes:
    target = target_of(row, model, base_url="https://vendor.example/v1")
    sent = DIALECTS["openai"].encode(asked, target)
    assert sent.responses_because
    assert sent.url == f"https://vendor.example/v1{responses_profile(target.profile).wires[Operation.CHAT].path}"
    return sent.body


PLAIN: JsonObject = {
    "tools": [{"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}, "strict": False}],
    "include": ["reasoning.encrypted_content"],
    "store": False,
}


@looped(
    ("params", "members"),
    [
        ({}, {}),
        (
            {"max_tokens": 99, "temperature": 0.5, "top_p": 0.5},
            {"max_output_tokens": 99, "temperature": 0.5, "top_p": 0.5},
        ),
        (
            {"reasoning_effort": "max", "verbosity": "low"},
            {"reasoning": {"effort": "max"}, "text": {"verbosity": "low"}},
        ),
        ({"store": True, "metadata": {"a": "b"}}, {"store": True, "metadata": {"a": "b"}}),
        (
            {"parallel_tool_calls": False, "service_tier": "flex"},
            {"parallel_tool_calls": False, "service_tier": "flex"},
        ),
        (
            {"logprobs": LogprobsWanted(2, "content")},
            {"top_logprobs": 2, "include": ["reasoning.encrypted_content", "message.output_text.logprobs"]},
        ),
        ({"response_format": {"type": "json_object"}}, {"text": {"format": {"type": "json_object"}}}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}},
            {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}},
        ),
        (
            {"guided": Guided("json", SCHEMA), "verbosity": "high"},
            {
                "text": {
                    "format": {"type": "json_schema", "name": "guided_json", "schema": SCHEMA, "strict": True},
                    "verbosity": "high",
                }
            },
        ),
        ({"tool_choice": "required"}, {"tool_choice": "required"}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"tool_choice": {"type": "function", "name": "f"}},
        ),
        (
            {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}}},
            {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}},
        ),
        (
            {"tools": [CUSTOM, OF_SEARCH], "tool_choice": {"type": "custom", "custom": {"name": "g"}}},
            {
                "tools": [
                    {"type": "custom", "name": "g", "description": "d", "format": {"type": "grammar", **GRAMMAR}},
                    OF_SEARCH,
                ],
                "tool_choice": {"type": "custom", "name": "g"},
            },
        ),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}]},
            {"tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}]},
        ),
    ],
)
def test_each_field_has_its_name_and_form_there(params: Params, members: JsonObject) -> None:
    assert body_of(params) == {**PLAIN, **members}


def test_the_sources_of_a_search_are_asked_for() -> None:
    body = body_of({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "gpt-4o")
    assert (body["tools"], body["tool_choice"]) == ([{"type": "web_search"}], {"type": "web_search"})
    assert body["include"] == ["web_search_call.action.sources"]


def test_further_members_go_along_and_join() -> None:
    body = body_of({"reasoning_effort": "high"}, reasoning={"summary": "auto"}, text={"x": 1}, truncation="auto")
    assert (body["reasoning"], body["text"]) == ({"effort": "high", "summary": "auto"}, {"x": 1})
    assert body["truncation"] == "auto"


def test_a_classic_deployment_of_azure_is_named_in_the_body() -> None:
    assert body_of({}, row="azure") == PLAIN


def test_a_model_that_does_not_reason_is_not_asked_for_reasoning() -> None:
    assert "include" not in body_of({}, "computer-use-preview")


@looped(
    "extra", ["input", "instructions", "store", "include", "previous_response_id", "conversation", "background", "n"]
)
def test_what_the_gateway_decides_cannot_be_set(extra: str) -> None:
    asked = replace(chat_request(), params=WITH_TOOLS, extra_params={extra: 1})
    with pytest.raises(Refusal, match=extra):
        encoded(asked, "gpt-5.6", "openai")
