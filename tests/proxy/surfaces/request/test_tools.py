"""What tools and the choice among them must look like."""

import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.surfaces.request.tools import MAX_TOOLS, tool_choice, tools
from tests.support.looped import looped

TOOL: JsonObject = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}


@looped(
    "tool",
    [
        TOOL,
        {"type": "function", "function": {"name": "f"}},
        {"type": "function", "function": {"name": "f", "parameters": None, "description": None, "strict": True}},
        {**TOOL, "cache_control": {"type": "ephemeral"}},
        {"type": "web_search"},
    ],
)
def test_a_tool_is_passed_on_untouched(tool: JsonObject) -> None:
    assert tools([tool]) == [tool]


def test_no_tools_are_an_empty_list() -> None:
    assert tools([]) == []


@looped(
    ("tool", "loc"),
    [
        ("f", (0,)),
        ({}, (0, "type")),
        ({"type": "function"}, (0, "function")),
        ({"type": "function", "function": {}}, (0, "function", "name")),
        ({"type": "function", "function": {"name": ""}}, (0, "function", "name")),
        ({"type": "function", "function": {"name": "f", "parameters": []}}, (0, "function", "parameters")),
        ({"type": "function", "function": {"name": "f", "description": 1}}, (0, "function", "description")),
    ],
)
def test_a_malformed_tool_is_refused_at_its_place(tool: JsonValue, loc: tuple[str | int, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        tools([tool])
    assert caught.value.loc == loc


def test_tools_are_a_list_of_bounded_length() -> None:
    assert len(tools([TOOL] * MAX_TOOLS)) == MAX_TOOLS
    with pytest.raises(Invalid, match=f"at most {MAX_TOOLS}"):
        tools([TOOL] * (MAX_TOOLS + 1))
    with pytest.raises(Invalid, match="list of tools"):
        tools(TOOL)


@looped(
    "choice", ["none", "auto", "required", {"type": "function", "function": {"name": "f"}}, {"type": "allowed_tools"}]
)
def test_a_choice_is_a_word_or_an_object(choice: JsonValue) -> None:
    assert tool_choice(choice) == choice


@looped(
    ("choice", "loc"),
    [
        ("f", ()),
        (True, ()),
        ([], ()),
        ({}, ("type",)),
        ({"type": "function"}, ("function",)),
        ({"type": "function", "function": {"name": 1}}, ("function", "name")),
    ],
)
def test_another_choice_is_refused_at_its_place(choice: JsonValue, loc: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        tool_choice(choice)
    assert caught.value.loc == loc
