"""A tool choice that allows only some tools is enforced by offering only these tools."""

import pytest

from providers.adaptation.allowed_tools import allows_some, with_allowed_tools
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params
from tests.providers.kit import refusal_of
from tests.support.looped import looped

SEARCH: JsonObject = {"type": "web_search_20260209", "name": "web_search"}
GREP: JsonObject = {"type": "custom", "custom": {"name": "grep"}}


def function(name: str) -> JsonObject:
    return {"type": "function", "function": {"name": name}}


def choice(mode: JsonValue, *tools: JsonValue) -> JsonObject:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": [*tools]}}


def test_only_a_choice_of_this_type_allows_some() -> None:
    assert allows_some({"tool_choice": choice("auto")})
    for other in ("auto", "none", function("f")):
        assert not allows_some({"tool_choice": other})
    assert not allows_some({})


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_the_allowed_tools_are_offered_in_their_order_and_the_mode_is_the_choice(mode: str) -> None:
    tools: list[JsonObject] = [{**function("f"), "cache_control": {"type": "ephemeral"}}, function("g"), GREP, SEARCH]
    given: Params = {"tools": tools, "tool_choice": choice(mode, GREP, function("f")), "seed": 1}
    assert with_allowed_tools(given) == {"tools": [tools[0], GREP], "tool_choice": mode, "seed": 1}
    assert given["tools"] == tools


def test_a_tool_that_the_vendor_runs_is_allowed_by_its_type() -> None:
    given: Params = {"tools": [function("f"), SEARCH], "tool_choice": choice("auto", {"type": SEARCH["type"]})}
    assert with_allowed_tools(given)["tools"] == [SEARCH]


@looped(
    "wrong",
    [
        choice("none", function("f")),
        choice(None, function("f")),
        choice("auto", function("g")),
        choice("auto", "f"),
        choice("auto"),
        {"type": "allowed_tools", "mode": "auto", "tools": [function("f")]},
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": {}}},
    ],
)
def test_a_choice_without_a_mode_or_without_a_tool_that_is_offered_is_invalid(wrong: JsonObject) -> None:
    refusal = refusal_of(with_allowed_tools, {"tools": [function("f")], "tool_choice": wrong})
    assert (refusal.param, refusal.code) == ("tool_choice", "invalid_value")


def test_a_choice_without_tools_is_invalid() -> None:
    with pytest.raises(Refusal):
        with_allowed_tools({"tool_choice": choice("auto", function("f"))})
