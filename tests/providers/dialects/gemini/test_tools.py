"""Functions in Gemini's API."""

import re
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import ToolCall
from providers.dialects.gemini.tools import GeminiToolNames, server_tool
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.gemini.kit import DIALECT, OLD, TARGET, VERTEX, body_of, tool
from tests.providers.dialects.kit import chat_request, refusal_for, user
from tests.support.looped import looped

UNSUPPORTED_TOOLS = ("tools", "unsupported_parameter")
PARAMETERS: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


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


@looped(
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


@looped(
    ("params", "param", "code"),
    [
        ({"tool_choice": "required"}, "tool_choice", "invalid_value"),
        ({"tools": [{"type": "custom", "custom": {"name": "x", "format": {"type": "grammar"}}}]}, *UNSUPPORTED_TOOLS),
        ({"tools": [{"type": "web_search"}]}, *UNSUPPORTED_TOOLS),
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
    refusal = refusal_for(chat_request(**params), TARGET)
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
    assert body_of(chat_request(tools=[], tool_choice="none")) == body_of(chat_request())


def test_a_custom_tool_is_a_function_of_a_text_and_its_call_has_the_text() -> None:
    custom: JsonObject = {"type": "custom", "custom": {"name": "run code", "description": "Runs it."}}
    choice: JsonObject = {"type": "custom", "custom": {"name": "run code"}}
    request = chat_request(tools=[custom, tool()], tool_choice=choice)
    body = body_of(request)
    (held,) = cast(Any, body["tools"])
    declared = held["functionDeclarations"]
    assert [one["name"] for one in declared] == ["run_code", "get_weather"]
    assert declared[0]["parametersJsonSchema"]["required"] == ["input"]
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["run_code"]}}
    part: JsonObject = {"functionCall": {"id": "fc-1", "name": "run_code", "args": {"input": "print(1)\n"}}}
    candidate: JsonObject = {"content": {"parts": [part]}, "finishReason": "STOP"}
    (choice_made,) = DIALECT.decode(DIALECT.encode(request, TARGET), orjson.dumps({"candidates": [candidate]})).choices
    assert choice_made.tool_calls == (ToolCall("fc-1", "run code", "print(1)\n", "custom"),)
    said: JsonObject = {"id": "fc-1", "type": "custom", "custom": {"name": "run code", "input": "print(1)\n"}}
    again = chat_request(
        user("hi"),
        {"role": "assistant", "content": None, "tool_calls": [said]},
        {"role": "tool", "tool_call_id": "fc-1", "content": "1"},
        tools=[custom],
    )
    assert cast(Any, body_of(again)["contents"])[1]["parts"][0]["functionCall"] == part["functionCall"]


# Tools that Google runs ---------------------------------------------------------------------------------------------


@looped(
    ("given", "native"),
    [
        ({"type": "google_search"}, {"googleSearch": {}}),
        ({"type": "googleSearch", "googleSearch": {}}, {"googleSearch": {}}),
        ({"googleSearch": {}}, {"googleSearch": {}}),
        ({"url_context": {}}, {"urlContext": {}}),
        ({"type": "code_execution"}, {"codeExecution": {}}),
        ({"type": "google_maps", "enableWidget": True}, {"googleMaps": {"enableWidget": True}}),
        (
            {"type": "file_search", "file_search": {"fileSearchStoreNames": ["fileSearchStores/a"]}},
            {"fileSearch": {"fileSearchStoreNames": ["fileSearchStores/a"]}},
        ),
        (
            {"type": "computer_use", "environment": "ENVIRONMENT_BROWSER"},
            {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
        ),
        ({"type": "mcpServers", "mcpServers": [{"name": "a"}]}, {"mcpServers": [{"name": "a"}]}),
    ],
)
@looped("target", [OLD, TARGET, VERTEX], ids=["2.5", "3.1", "vertex"])
def test_googles_own_tools_are_sent_in_its_form(given: JsonObject, native: JsonObject, target: Target) -> None:
    body = body_of(chat_request(tools=[given]), target)
    assert body["tools"] == [native]
    assert "toolConfig" not in body
    assert server_tool(given) == native


@looped("other", [{"type": "web_search"}, {"type": "function"}, {"type": 3}, {"a": 1, "b": 2}, {}])
def test_other_tools_are_not_googles(other: JsonObject) -> None:
    assert server_tool(other) is None


def test_googles_tools_stand_beside_functions_from_gemini_3_on() -> None:
    request = chat_request(tools=[{"type": "google_search"}, tool()])
    declared = {"functionDeclarations": [{"name": "get_weather"}]}
    body = body_of(request, TARGET)
    assert body["tools"] == [{"googleSearch": {}}, declared]
    assert body["toolConfig"] == {"includeServerSideToolInvocations": True}
    assert "toolConfig" not in body_of(request, VERTEX)
    with pytest.raises(Refusal, match="models before Gemini 3 cannot use Google's own tools beside functions"):
        DIALECT.encode(request, OLD)


def test_a_choice_among_functions_keeps_googles_tools() -> None:
    request = chat_request(tools=[{"type": "google_search"}, tool()], tool_choice="required")
    config = {"functionCallingConfig": {"mode": "ANY"}, "includeServerSideToolInvocations": True}
    assert body_of(request)["toolConfig"] == config


def test_googles_tools_can_be_left_out_but_not_demanded() -> None:
    assert "tools" not in body_of(chat_request(tools=[{"type": "google_search"}], tool_choice="none"))
    refusal = refusal_for(chat_request(tools=[{"type": "google_search"}], tool_choice="required"), TARGET)
    assert (refusal.param, refusal.code) == ("tool_choice", "unsupported_parameter")


def test_a_cache_marker_of_a_tool_is_left_out_and_named() -> None:
    request = chat_request(tools=[{**tool(), "cache_control": {"type": "ephemeral"}}])
    assert DIALECT.encode(request, TARGET).dropped == ("cache_control",)
    assert body_of(request) == body_of(chat_request(tools=[tool()]))
