"""The checks of tools and of the tool choice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.rule_kinds import Invalid
from proxy.surfaces.request.tools import MAX_TOOLS, tool_choice, tools
from tests.support.looped import looped
from tests.support.usual_messages import of_subtypes

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


VALUES: st.SearchStrategy[JsonValue] = st.sampled_from([None, "", "f", 1, [], {}, {"type": "object"}])


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["function", "function", "custom", None, ""])},
        optional={
            "function": st.one_of(
                st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "description", "parameters"), VALUES)), VALUES
            ),
            "google_search": st.just({}),
        },
    )
)
def test_tools_that_are_accepted_at_once_are_those_that_the_rules_accept(tool: JsonObject) -> None:
    assert outcome(tool) == outcome(of_subtypes(tool))


def outcome(tool: JsonValue) -> object:
    try:
        return tools([tool])
    except Invalid as bad:
        return bad.message, bad.loc, bad.code
