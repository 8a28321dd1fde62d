"""Functions on Gemini's wire."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.gemini.tools import GeminiToolNames, put_tools
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.gemini.kit import DIALECT, TARGET, body_of, tool
from tests.providers.dialects.kit import chat_request

PARAMETERS: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def refusal_of(**params: object) -> Refusal:
    with pytest.raises(Refusal) as caught:
        DIALECT.encode(chat_request(**params), TARGET)
    return caught.value


def test_functions_are_declared_with_their_schemas_as_they_are() -> None:
    odd: JsonObject = {**PARAMETERS, "minProperties": 1}
    body = body_of(chat_request(tools=[tool(description="Tells it.", parameters=odd), tool("now")]))
    declared = [{"name": "get_weather", "description": "Tells it.", "parametersJsonSchema": odd}, {"name": "now"}]
    assert body["tools"] == [{"functionDeclarations": declared}]
    assert "toolConfig" not in body


def test_arguments_are_an_object_even_where_nobody_says_so() -> None:
    body = body_of(chat_request(tools=[tool(parameters={"properties": {}})]))
    assert body["tools"] == [
        {
            "functionDeclarations": [
                {"name": "get_weather", "parametersJsonSchema": {"type": "object", "properties": {}}}
            ]
        }
    ]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        (
            {"type": "function", "function": {"name": "get weather"}},
            {"mode": "ANY", "allowedFunctionNames": ["get_weather"]},
        ),
    ],
)
def test_a_choice_is_a_mode(choice: JsonValue, config: JsonObject) -> None:
    body = body_of(chat_request(tools=[tool("get weather")], tool_choice=choice))
    assert body["toolConfig"] == {"functionCallingConfig": config}


def test_a_free_choice_needs_no_saying() -> None:
    assert "toolConfig" not in body_of(chat_request(tools=[tool()], tool_choice="auto"))


def test_strict_functions_are_validated() -> None:
    strict = tool(parameters=PARAMETERS, strict=True)
    assert body_of(chat_request(tools=[strict]))["toolConfig"] == {"functionCallingConfig": {"mode": "VALIDATED"}}
    forced = body_of(chat_request(tools=[strict], tool_choice="required"))
    assert forced["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}


@pytest.mark.parametrize(
    ("params", "param", "code"),
    [
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools", "unsupported_parameter"),
        ({"tools": [tool(), tool()]}, "tools", "invalid_value"),
        ({"tools": [tool(parameters={"type": "array"})]}, "tools", "invalid_value"),
        ({"tools": [tool()], "tool_choice": {"type": "allowed_tools"}}, "tool_choice", "unsupported_parameter"),
        (
            {"tools": [tool()], "tool_choice": {"type": "function", "function": {"name": "other"}}},
            "tool_choice",
            "invalid_value",
        ),
        ({"tools": [tool()], "parallel_tool_calls": False}, "parallel_tool_calls", "unsupported_parameter"),
    ],
)
def test_what_cannot_be_said_is_refused(params: dict[str, object], param: str, code: str) -> None:
    refusal = refusal_of(**params)
    assert (refusal.param, refusal.code) == (param, code)


@given(st.lists(st.text(max_size=70), unique=True, max_size=8))
def test_every_name_fits_and_leads_back(offered: list[str]) -> None:
    names = GeminiToolNames(offered)
    wire = [names[name] for name in offered]
    assert len(set(wire)) == len(wire)
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}", name) for name in wire)
    assert [names.changed().get(name, name) for name in wire] == offered


def test_a_name_that_begins_with_a_digit_gets_a_lead() -> None:
    assert GeminiToolNames(["7days", "a.b:c-d"])["7days"] == "_7days"
    assert GeminiToolNames(["a.b:c-d"])["a.b:c-d"] == "a.b:c-d"


def test_nothing_is_added_where_there_are_no_functions() -> None:
    body: JsonObject = {}
    put_tools(body, {"tools": [], "tool_choice": "none"}, GeminiToolNames(()))
    assert body == {}
