"""Tools and the tool choice in OpenAI's chat format."""

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.surfaces.anthropic.kit import parse, refused
from tests.support.looped import looped
from tests.support.not_none import not_none

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOL: JsonObject = {"name": "f", "input_schema": SCHEMA}


def test_a_tool_becomes_a_function() -> None:
    tool: JsonObject = {
        **TOOL,
        "type": "custom",
        "description": "d",
        "strict": True,
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
    }
    request = parse(tools=[tool, {**TOOL, "name": "g", "strict": False}])
    assert request.params["tools"] == [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
            "cache_control": {"type": "ephemeral", "ttl": "1h"},
        },
        {"type": "function", "function": {"name": "g", "parameters": SCHEMA}},
    ]
    assert request.losses is None


def test_no_tools_are_as_good_as_an_empty_list() -> None:
    request = parse(tools=[], tool_choice={"type": "auto"})
    assert "tools" not in request.params
    assert "tool_choice" not in request.params


def test_how_anthropic_offers_a_function_is_left_out_and_named() -> None:
    request = parse(tools=[{**TOOL, "eager_input_streaming": True, "allowed_callers": ["direct"]}])
    assert not_none(request.losses).left_out == ("eager_input_streaming",)
    assert request.params["tools"] == [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


@looped("kind", ["tool_search_tool_regex_20251119", "tool_search_tool_bm25"])
def test_a_search_for_tools_is_left_out_and_named(kind: str) -> None:
    request = parse(tools=[{"type": kind, "name": "search"}, {**TOOL, "defer_loading": True}])
    assert not_none(request.losses).left_out == ("tools.tool_search", "defer_loading")
    assert not_none(request.losses).binding == {}
    assert request.params["tools"] == [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


@looped("kind", ["bash_20250124", "memory_20250818", "mcp_toolset", "of_tomorrow"])
def test_a_tool_of_the_vendor_s_own_is_binding(kind: str) -> None:
    request = parse(tools=[TOOL, {"type": kind, "name": "x"}])
    assert not_none(request.losses).binding == {"tools": f"'tools' with a tool of type '{kind}'"}


@looped(
    "tool",
    [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
        {"type": "web_fetch_20260318", "name": "web_fetch"},
        {"type": "code_execution_20250825", "name": "code_execution"},
        {"type": "google_search"},
        {"googleSearch": {}},
    ],
)
def test_a_tool_that_other_vendors_have_too_stays_for_the_target_to_translate(tool: JsonObject) -> None:
    request = parse(tools=[TOOL, tool])
    assert request.params["tools"][1] == tool
    assert request.losses is None
    assert refused(tools=[{**tool, "type": "web_search_20250305", "model": "m"}]).param == "tools.0.model"


@pytest.mark.parametrize(
    "form", [{"function": {"name": "f", "parameters": SCHEMA}}, {"name": "f", "parameters": SCHEMA}]
)
def test_a_tool_in_openai_s_form_is_refused_with_what_to_send(form: JsonObject) -> None:
    facts = refused(tools=[TOOL, {"type": "function", **form}])
    assert (facts.param, facts.code) == ("tools.1.type", "invalid_value")
    assert facts.message == (
        "'tools.1.type' is 'function', as in OpenAI's APIs; "
        "a tool has no type here, but 'name', 'description' and 'input_schema'."
    )


def test_a_tool_names_no_other_model() -> None:
    assert refused(tools=[{"type": "advisor_20260301", "model": "claude-opus"}]).param == "tools.0.model"


@looped(
    ("choice", "meant"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "any"}, "required"),
        ({"type": "none"}, "none"),
        ({"type": "tool", "name": "f"}, {"type": "function", "function": {"name": "f"}}),
    ],
)
def test_a_choice_has_its_word(choice: JsonObject, meant: JsonValue) -> None:
    params = parse(tools=[TOOL], tool_choice=choice).params
    assert params["tool_choice"] == meant
    assert "parallel_tool_calls" not in params


def test_one_call_at_a_time() -> None:
    choice: JsonObject = {"type": "auto", "disable_parallel_tool_use": True}
    assert parse(tools=[TOOL], tool_choice=choice).params["parallel_tool_calls"] is False


@looped(
    ("fields", "param"),
    [
        ({"tools": {}}, "tools"),
        ({"tools": [TOOL] * 513}, "tools"),
        ({"tools": [1]}, "tools.0"),
        ({"tools": [{"name": "f"}]}, "tools.0.input_schema"),
        ({"tools": [{"input_schema": SCHEMA}]}, "tools.0.name"),
        ({"tools": [{"type": 1}]}, "tools.0.type"),
        ({"tools": [{**TOOL, "description": 1}]}, "tools.0.description"),
        ({"tool_choice": "auto"}, "tool_choice"),
        ({"tool_choice": {"type": "some"}}, "tool_choice.type"),
        ({"tool_choice": {"type": "tool"}}, "tool_choice.name"),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}}, "tool_choice.disable_parallel_tool_use"),
    ],
)
def test_tools_that_make_no_sense_are_refused_at_their_place(fields: JsonObject, param: str) -> None:
    assert refused(**fields).param == param
