"""A tool that a vendor runs is recognized in any client's spelling, and each of its settings has one name."""

import pytest

from providers.failure import Refusal
from providers.hosted_tools.hosted_tool import hosted_tool, is_hosted, search_of_options
from providers.json_types import JsonObject
from tests.support.looped import looped

PLACE: JsonObject = {"type": "approximate", "country": "CH"}


@looped(
    ("tool", "read"),
    [
        ({"type": "web_search_20250305", "name": "web_search"}, ("web_search", "anthropic")),
        ({"type": "web_search"}, ("web_search", "openai")),
        ({"type": "web_search_preview"}, ("web_search", "openai")),
        ({"type": "web_search_2025_08_26"}, ("web_search", "openai")),
        ({"googleSearch": {}}, ("web_search", "gemini")),
        ({"google_search_retrieval": {"dynamic_retrieval_config": {}}}, ("web_search", "gemini")),
        ({"type": "google_search"}, ("web_search", "gemini")),
        ({"type": "openrouter:web_search"}, ("web_search", "openrouter")),
        ({"type": "browser_search"}, ("web_search", "groq")),
        ({"type": "web_search_premium"}, ("web_search", "mistral")),
        ({"systemTool": {"name": "nova_grounding"}}, ("web_search", "nova")),
        ({"type": "system_tool", "name": "nova_grounding"}, ("web_search", "nova")),
        ({"type": "web_fetch_20250910", "name": "web_fetch"}, ("web_fetch", "anthropic")),
        ({"url_context": {}}, ("web_fetch", "gemini")),
        ({"type": "code_interpreter"}, ("code_execution", "openai")),
        ({"type": "code_execution_20250825", "name": "code_execution"}, ("code_execution", "anthropic")),
        ({"type": "code_execution"}, ("code_execution", "gemini")),
    ],
)
def test_a_spelling_says_the_kind_of_the_tool_and_whose_it_is(tool: JsonObject, read: tuple[str, str]) -> None:
    found = hosted_tool(tool)
    assert found is not None
    assert is_hosted(tool)
    assert (found.kind, found.api, found.options, found.bound) == (*read, {}, "")


@looped(
    "tool",
    [
        {"type": "function", "function": {"name": "web_search"}},
        {"type": "custom", "custom": {"name": "web_search"}},
        {"type": "web_searching"},
        {"type": "web_search\n"},
        {"type": "web_search_20250305x"},
        {"type": "bash_20250124", "name": "bash"},
        {"googleSearch": True},
        {"googleSearch": {}, "name": "x"},
        {"systemTool": {"name": "other"}},
        {"name": "web_search"},
        {"type": 3},
        {},
    ],
)
def test_any_other_tool_is_none(tool: JsonObject) -> None:
    assert hosted_tool(tool) is None
    assert not is_hosted(tool)


@looped(
    ("tool", "options", "others"),
    [
        ({"type": "web_search", "filters": {"allowed_domains": ["a"], "blocked_domains": []}, "user_location": None},
         {"allowed_domains": ["a"]}, ()),
        ({"type": "web_search", "external_web_access": True, "search_context_size": "medium"}, {}, ()),
        ({"type": "web_search", "external_web_access": False}, {}, ("external_web_access",)),
        ({"googleSearch": {"excludeDomains": ["b"], "timeRangeFilter": {}}}, {"blocked_domains": ["b"]},
         ("timeRangeFilter",)),
        ({"type": "google_search", "google_search": {"exclude_domains": ["b"]}}, {"blocked_domains": ["b"]}, ()),
        ({"type": "openrouter:web_search", "parameters": {"excluded_domains": ["b"], "engine": "exa"}},
         {"blocked_domains": ["b"]}, ("engine",)),
        ({"type": "web_fetch_20250910", "name": "w", "max_content_tokens": 9, "citations": {"enabled": True}},
         {"max_content_tokens": 9}, ("citations",)),
        ({"type": "web_search_20250305", "name": "w", "user_location": {**PLACE, "city": ""}}, {"user_location": PLACE},
         ()),
    ],
)  # fmt: skip
def test_settings_have_one_name_each_and_what_asks_for_nothing_is_none(
    tool: JsonObject, options: JsonObject, others: tuple[str, ...]
) -> None:
    found = hosted_tool(tool)
    assert found is not None
    assert (found.options, found.others) == (options, others)


def test_options_of_a_chat_are_a_search() -> None:
    read = search_of_options({"user_location": {"type": "approximate", "approximate": {"country": "CH"}}})
    assert (read.kind, read.options) == ("web_search", {"user_location": PLACE})
    with pytest.raises(Refusal, match="'user_location' of a web search must be an object"):
        search_of_options({"user_location": "here"})


def test_files_in_a_container_bind_to_their_vendor() -> None:
    held: JsonObject = {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"]}}
    found = hosted_tool(held)
    assert found is not None
    assert found.bound == "files of its own vendor"
