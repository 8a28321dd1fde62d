"""Tools in Anthropic's API."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.capabilities import BY_FORMAT
from providers.completion import ToolCallDelta
from providers.dialects.anthropic.tools import ToolNames
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.anthropic.kit import DIALECT, TARGET, answer, body_of, encode, stream
from tests.providers.dialects.kit import chat_request, chunks, only, refusal_for, streamed, target_of
from tests.support.looped import looped

PARAMETERS: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str = "weather", **more: JsonValue) -> JsonObject:
    return {"type": "function", "function": {"name": name, **more}}


def test_a_function_becomes_a_tool_with_its_schema() -> None:
    body = body_of(chat_request(tools=[tool(description="Tells the weather.", parameters=PARAMETERS)]))
    assert body["tools"] == [{"name": "weather", "description": "Tells the weather.", "input_schema": PARAMETERS}]
    assert "tool_choice" not in body


@looped(
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


@looped(
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


@looped(
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
    assert refusal_for(chat_request(tool_choice="required"), TARGET).param == "tool_choice"


@looped(
    ("params", "param", "code"),
    [
        ({"tools": [{"type": "mcp", "server_url": "https://x"}]}, "tools", "unsupported_parameter"),
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
    refusal = refusal_for(chat_request(**params), TARGET)
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


def test_nothing_is_added_where_there_are_no_tools() -> None:
    body = body_of(chat_request(tools=[], parallel_tool_calls=False))
    assert body.keys() == {"model", "max_tokens", "messages"}


SEARCH: JsonObject = {"type": "web_search_20260318", "name": "web_search", "max_uses": 3}
BASH: JsonObject = {"type": "bash_20250124", "name": "bash"}


def test_tools_of_the_vendors_own_go_beside_functions_as_they_came() -> None:
    named: JsonObject = {"type": "function", "function": {"name": "bash"}}
    body = body_of(chat_request(tools=[SEARCH, tool(), BASH], tool_choice=named))
    plain: JsonObject = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    assert body["tools"] == [SEARCH, plain, BASH]
    assert body["tool_choice"] == {"type": "tool", "name": "bash"}


@looped("kind", ["web_search", "file_search", "mcp", "bash_20250124; drop"])
def test_tools_of_other_vendors_are_refused_by_their_type(kind: str) -> None:
    refusal = refusal_for(chat_request(tools=[{"type": kind, "name": "x"}]), TARGET)
    assert refusal.param == "tools"
    assert kind in refusal.message


CUSTOM: JsonObject = {"type": "custom", "custom": {"name": "apply patch", "description": "Applies a patch."}}


def test_a_custom_tool_is_a_function_of_one_text() -> None:
    chosen: JsonObject = {"type": "custom", "custom": {"name": "apply patch"}}
    sent = encode(chat_request(tools=[CUSTOM, tool()], tool_choice=chosen))
    assert (sent.emulated, sent.custom_tools) == (("tools",), frozenset({"apply patch"}))
    match orjson.loads(sent.body):
        case {"tools": [{"name": "apply_patch", "input_schema": {"required": required}}, _], "tool_choice": choice}:
            assert required == ["input"]
            assert choice == {"type": "tool", "name": "apply_patch"}
        case other:
            pytest.fail(f"unexpected body {other}")
    grammar: JsonObject = {"type": "grammar", "grammar": {"syntax": "lark", "definition": "x"}}
    assert (
        refusal_for(chat_request(tools=[{"type": "custom", "custom": {"name": "f", "format": grammar}}]), TARGET).param
        == "tools"
    )


@looped("size", [1, 7, 4096])
def test_a_call_of_a_custom_tool_comes_back_as_its_text(size: int) -> None:
    weather: JsonObject = {"type": "custom", "custom": {"name": "get_weather"}}
    sent = encode(chat_request(tools=[weather, tool("now")]))
    body = answer("tools").replace(b'"city": "Oslo"', rb'"input": "a\n\"b\""')
    first, second = only(DIALECT.decode(sent, body)).tool_calls
    assert (first.kind, first.name, first.arguments) == ("custom", "get_weather", 'a\n"b"')
    assert (second.kind, second.arguments) == ("function", "{}")
    data = stream("tools").replace(rb"{\"city\": \"Os", rb"{\"input\": \"Os")
    deltas = [delta for chunk in chunks(streamed(sent, data, size)) for delta in chunk.tool_calls]
    assert deltas == [
        ToolCallDelta(0, "toolu_01Qz", "get_weather", kind="custom"),
        ToolCallDelta(0, arguments="Os", kind="custom"),
        ToolCallDelta(0, arguments="lo", kind="custom"),
        ToolCallDelta(1, "toolu_02Qz", "now"),
        ToolCallDelta(1, arguments="{}"),
    ]


@looped(
    ("profile", "kind", "offered"),
    [
        ("vertex_anthropic", "web_search_20250305", True),
        ("vertex_anthropic", "code_execution_20260120", False),
        ("bedrock_anthropic", "web_search_20250305", False),
        ("bedrock_anthropic", "bash_20250124", True),
    ],
)
def test_clouds_refuse_the_vendors_tools_that_they_do_not_offer(profile: str, kind: str, offered: bool) -> None:
    request = chat_request(tools=[{"type": kind, "name": "x"}])
    target = target_of(profile, "claude-haiku-4-5")
    if offered:
        assert kind.encode() in target.dialect.encode(request, target).body
    else:
        assert kind in refusal_for(request, target).message


def test_a_definition_keeps_its_cache_mark_and_what_else_the_vendor_takes() -> None:
    mark: JsonObject = {"type": "ephemeral"}
    given: JsonObject = {**tool(), "cache_control": mark, "defer_loading": True, "strange": 1}
    expected: JsonObject = {"name": "weather", "input_schema": {"type": "object", "properties": {}}}
    assert body_of(chat_request(tools=[given]))["tools"] == [{**expected, "cache_control": mark, "defer_loading": True}]


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
def test_a_model_that_cannot_be_made_to_call_is_never_asked_to(choice: JsonValue) -> None:
    target = target_of("anthropic", "claude-opus-5-5")
    request = chat_request(tools=[tool()], tool_choice=choice)
    assert refusal_for(request, target).param == "tool_choice"
    assert DIALECT.capabilities(request, target)["tool_choice.required"] == BY_FORMAT
    assert body_of(request)["tool_choice"]
