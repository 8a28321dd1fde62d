"""Tools and choices as each vendor takes them: its own types beside functions, others refused by name."""

from typing import cast

import pytest

from providers.json_types import JsonObject
from providers.unified_request import Params
from tests.providers.dialects.openai.kit import DIALECT, body_of, chat, refusal_of, target

FUNCTION: JsonObject = {"type": "function", "function": {"name": "f"}}
CUSTOM: JsonObject = {"type": "custom", "custom": {"name": "grep"}}
SEARCH: JsonObject = {"type": "openrouter:web_search"}
BROWSER: JsonObject = {"type": "browser_search"}
MARKED: JsonObject = {**FUNCTION, "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("row", "tool"),
    [("openai", CUSTOM), ("azure", CUSTOM), ("openrouter", SEARCH), ("groq", BROWSER), ("openai_compatible", BROWSER)],
)
def test_a_vendor_s_own_tool_stands_beside_functions(row: str, tool: JsonObject) -> None:
    assert body_of(chat({"tools": [FUNCTION, tool]}), target(row))["tools"] == [FUNCTION, tool]


@pytest.mark.parametrize(("row", "tool"), [("groq", CUSTOM), ("openai", SEARCH), ("together", BROWSER)])
def test_another_vendor_s_tool_is_refused_by_its_type(row: str, tool: JsonObject) -> None:
    refusal = refusal_of(chat({"tools": [FUNCTION, tool]}), target(row))
    assert refusal.param == "tools"
    assert f"no tools of type '{tool['type']}'" in refusal.message


def test_a_choice_of_a_type_that_the_vendor_has_not_is_refused() -> None:
    choice: JsonObject = {"type": "custom", "custom": {"name": "grep"}}
    params: Params = {"tools": [CUSTOM], "tool_choice": choice}
    assert body_of(chat(params), target("openai"))["tool_choice"] == choice
    params = {"tools": [FUNCTION], "tool_choice": choice}
    assert "no choice of type 'custom'" in refusal_of(chat(params), target("groq")).message


def test_a_choice_among_some_of_the_tools_offers_only_those_where_the_vendor_has_no_such_choice() -> None:
    other: JsonObject = {"type": "function", "function": {"name": "g"}}
    choice: JsonObject = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [other]}}
    for params in (
        {"tools": [FUNCTION, other], "tool_choice": choice},
        {"tool_choice": choice, "tools": [FUNCTION, other]},
    ):
        given = cast(Params, params)
        body = body_of(chat(given), target("openai"))
        assert (body["tools"], body["tool_choice"]) == ([FUNCTION, other], choice)
        body = body_of(chat(given), target("groq"))
        assert (body["tools"], body["tool_choice"]) == ([other], "required")
        assert DIALECT.encode(chat(given), target("groq")).emulated == ("tool_choice",)
        assert refusal_of(chat(given), target("ollama")).param == "tool_choice"
    wrong: Params = {"tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "x"}}}
    assert refusal_of(chat(wrong), target("groq")).code == "invalid_value"
    unknown: JsonObject = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [other]}}
    assert refusal_of(chat({"tools": [FUNCTION], "tool_choice": unknown}), target("groq")).param == "tool_choice"


def test_a_cache_marker_on_a_tool_goes_to_vendors_that_read_it_and_is_named_elsewhere() -> None:
    params: Params = {"tools": [MARKED, FUNCTION]}
    assert body_of(chat(params), target("openrouter"))["tools"] == [MARKED, FUNCTION]
    assert body_of(chat(params), target("fireworks"))["tools"] == [FUNCTION, FUNCTION]
    assert DIALECT.encode(chat(params), target("fireworks")).dropped == ("cache_control",)


@pytest.mark.parametrize("row", ["openai", "fireworks", "ollama", "vllm"])
def test_one_call_at_a_time_asks_for_nothing_without_tools(row: str) -> None:
    assert "parallel_tool_calls" not in body_of(chat({"parallel_tool_calls": False}), target(row))


def test_one_call_at_a_time_is_kept_or_refused_beside_tools() -> None:
    params: Params = {"tools": [FUNCTION], "parallel_tool_calls": False}
    assert body_of(chat(params), target("openai"))["parallel_tool_calls"] is False
    assert refusal_of(chat(params), target("fireworks")).param == "parallel_tool_calls"
