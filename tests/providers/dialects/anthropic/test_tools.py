"""Tools on Anthropic's wire."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.anthropic.tools import ToolNames, put_tools
from providers.dialects.shared.tool_names import offered_names
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params
from tests.providers.dialects.anthropic.kit import DIALECT, TARGET, body_of, encode
from tests.providers.dialects.kit import chat_request

PARAMETERS: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str = "weather", **more: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": name, **more}}


def refusal_of(params: dict[str, object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        DIALECT.encode(chat_request(**params), TARGET)
    return caught.value


def test_a_function_becomes_a_tool_with_its_schema() -> None:
    body = body_of(chat_request(tools=[tool(description="Tells the weather.", parameters=PARAMETERS)]))
    assert body["tools"] == [{"name": "weather", "description": "Tells the weather.", "input_schema": PARAMETERS}]
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"properties": {}}, {"type": "object", "properties": {}}),
    ],
)
def test_arguments_are_an_object_even_where_nobody_says_so(parameters: JsonValue, schema: JsonObject) -> None:
    assert body_of(chat_request(tools=[tool(parameters=parameters)]))["tools"] == [
        {"name": "weather", "input_schema": schema}
    ]


def test_a_strict_tool_goes_out_strict() -> None:
    closed: JsonObject = {**PARAMETERS, "additionalProperties": False}
    match body_of(chat_request(tools=[tool(parameters=closed, strict=True)])):
        case {"tools": [{"strict": strict}]}:
            assert strict is True
        case other:
            pytest.fail(f"unexpected body {other}")


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", None),
        ("required", {"type": "any"}),
        ("none", {"type": "none"}),
        ({"type": "function", "function": {"name": "weather"}}, {"type": "tool", "name": "weather"}),
    ],
)
def test_the_choice_is_said_in_the_vendors_words(choice: JsonValue, expected: JsonObject | None) -> None:
    assert body_of(chat_request(tools=[tool()], tool_choice=choice)).get("tool_choice") == expected


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, {"type": "auto", "disable_parallel_tool_use": True}),
        ("required", {"type": "any", "disable_parallel_tool_use": True}),
        ("none", {"type": "none"}),
    ],
)
def test_one_call_at_a_time_is_part_of_the_choice(choice: JsonValue, expected: JsonObject) -> None:
    params = {"tools": [tool()], "parallel_tool_calls": False} | ({"tool_choice": choice} if choice else {})
    assert body_of(chat_request(**params))["tool_choice"] == expected


def test_without_tools_only_a_choice_that_asks_for_nothing_is_taken() -> None:
    for choice in ("auto", "none"):
        assert body_of(chat_request(tool_choice=choice, parallel_tool_calls=False)) == body_of(chat_request())
    assert refusal_of({"tool_choice": "required"}).param == "tool_choice"


@pytest.mark.parametrize(
    ("params", "param", "code"),
    [
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools", "unsupported_parameter"),
        ({"tools": [tool(), tool()]}, "tools", "invalid_value"),
        ({"tools": [tool(parameters={"type": "array"})]}, "tools", "invalid_value"),
        ({"tools": [tool()], "tool_choice": {"type": "allowed_tools"}}, "tool_choice", "unsupported_parameter"),
        (
            {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}},
            "tool_choice",
            "invalid_value",
        ),
    ],
)
def test_other_tools_and_choices_are_refused(params: dict[str, object], param: str, code: str) -> None:
    refusal = refusal_of(params)
    assert (refusal.param, refusal.code) == (param, code)


def test_names_that_do_not_fit_are_changed_and_remembered() -> None:
    tools = [tool("get weather"), tool("get_weather"), tool("get/weather"), tool("ü" * 200)]
    sent = encode(chat_request(tools=tools, tool_choice={"type": "function", "function": {"name": "get/weather"}}))
    body = orjson.loads(sent.body)
    assert [entry["name"] for entry in body["tools"]] == ["get_weather_2", "get_weather", "get_weather_3", "_" * 128]
    assert body["tool_choice"]["name"] == "get_weather_3"
    assert sent.tool_names == {"get_weather_2": "get weather", "get_weather_3": "get/weather", "_" * 128: "ü" * 200}


@given(st.lists(st.text(max_size=140), unique=True, max_size=8), st.lists(st.text(max_size=5), max_size=4))
def test_every_name_fits_is_unique_and_leads_back(offered: list[str], used: list[str]) -> None:
    names = ToolNames(offered)
    wire = [names[name] for name in offered] + [names.used(name) for name in dict.fromkeys(used) if name not in offered]
    assert len(set(wire)) == len(wire)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,128}", name) for name in wire)
    for name in offered:
        assert names.changed().get(names[name], names[name]) == name
        assert name in names


def test_only_names_that_no_tool_has_are_of_the_history() -> None:
    names = ToolNames(["a"])
    assert [names.used(name) for name in ("a", "b c", "b c")] == ["a", "b_c", "b_c"]
    assert names.history == ["b_c"]


def test_nothing_is_added_where_there_are_no_tools() -> None:
    body: JsonObject = {}
    params: Params = {"tools": []}
    assert offered_names(params) == []
    put_tools(body, params, ToolNames(()))
    assert body == {}
