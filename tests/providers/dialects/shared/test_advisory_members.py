"""Advisory fields outside the unified request, and a vendor's own tools beside a request's functions."""

from dataclasses import replace

import orjson

from providers.json_types import JsonObject
from tests.providers.dialects.kit import chat_request, sent_for, target_of, tool
from tests.support.looped import looped

SETTINGS: JsonObject = {
    "cache_control": {"type": "ephemeral"},
    "prompt_cache_options": {"mode": "explicit"},
    "prompt_cache_breakpoint": {"mode": "explicit"},
}


@looped("profile", ["gemini", "vertex", "cohere", "ollama_native"])
def test_settings_of_caches_that_a_vendor_lacks_are_left_out_and_named(profile: str) -> None:
    target = target_of(profile)
    sent = sent_for(replace(chat_request(), unknown=SETTINGS), target)
    assert sent.body == sent_for(chat_request(), target).body
    assert set(sent.dropped) == set(SETTINGS)


def test_bedrock_has_a_place_for_anthropics_marker_alone() -> None:
    sent = sent_for(replace(chat_request(), unknown=SETTINGS), target_of("bedrock", "anthropic.claude-haiku-4-5"))
    assert b"cachePoint" in sent.body
    assert set(sent.dropped) == {"prompt_cache_options", "prompt_cache_breakpoint"}


def test_bedrocks_own_tools_stand_beside_the_functions() -> None:
    own: JsonObject = {"systemTool": {"name": "nova_grounding"}}
    asked = replace(chat_request(tools=[tool()]), extra_params={"toolConfig": {"tools": [own]}})
    held = orjson.loads(sent_for(asked, target_of("bedrock", "amazon.nova-pro-v1:0")).body)["toolConfig"]["tools"]
    assert [next(iter(each)) for each in held] == ["toolSpec", "systemTool"]


@looped("profile", ["gemini", "cohere", "bedrock", "ollama_native"])
def test_a_custom_tool_that_becomes_a_function_is_named(profile: str) -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "run"}}
    model = "amazon.nova-pro-v1:0" if profile == "bedrock" else "tiny"
    assert sent_for(chat_request(tools=[custom]), target_of(profile, model)).emulated == ("tools",)
    assert sent_for(chat_request(tools=[tool()]), target_of(profile, model)).emulated == ()


@looped("profile", ["gemini", "cohere", "anthropic", "deepseek", "groq"])
def test_how_thinking_is_shown_is_left_out_and_named_where_a_vendor_cannot_say_it(profile: str) -> None:
    target = target_of(profile)
    sent = sent_for(replace(chat_request(), unknown={"reasoning": {"exclude": True}}), target)
    assert sent.body == sent_for(chat_request(), target).body
    assert sent.dropped == ("reasoning",)


def test_openrouter_gets_it_beside_the_effort() -> None:
    asked = replace(chat_request(reasoning_effort="low"), unknown={"reasoning": {"exclude": True}})
    sent = sent_for(asked, target_of("openrouter", "openai/gpt-5.1"))
    assert orjson.loads(sent.body)["reasoning"] == {"effort": "low", "exclude": True}
