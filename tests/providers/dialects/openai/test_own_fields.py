"""Fields outside the unified request: to the vendor, which answers for them; settings of caches only where read."""

from dataclasses import replace

import pytest

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.openai.kit import DIALECT, body_of, chat, refusal_of, target


def asking(**unknown: JsonValue) -> UnifiedRequest:
    return replace(chat(), unknown=unknown)


@pytest.mark.parametrize(
    ("row", "name", "value"),
    [
        ("openai", "web_search_options", {"search_context_size": "low"}),
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
