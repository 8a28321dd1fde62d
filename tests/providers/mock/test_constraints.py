"""The texts that a request's constraint or tool allows."""

import pytest

from providers.json_types import JsonObject, JsonValue
from providers.mock.constraints import options, tool
from providers.mock.errors import MockError
from providers.mock.fields import Fields
from tests.providers.mock.kit import refused
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 2}}, "required": ["n"]}
TOOLS: JsonValue = [
    {"type": "function", "function": {"name": "first"}},
    {"type": "function", "function": {"name": "second", "parameters": SCHEMA}},
]
NAMED: JsonValue = {"type": "function", "function": {"name": "second"}}


@looped(
    ("body", "expected"),
    [
        ({}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"guided_json": SCHEMA}, ('{"n":2}',)),
        ({"guided_json": '{"const": 1}'}, ("1",)),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}}, ('{"n":2}',)),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, ('{"n":2}',)),
        ({"response_format": {"type": "json_object"}}, ('{"answer":"text"}',)),
        ({"guided_choice": ["a", "b"]}, ("a", "b")),
        ({"guided_regex": r"\d{3}"}, ("000",)),
        ({"guided_json": {"const": 1}, "response_format": {"type": "text"}}, ("1",)),
    ],
)
def test_the_texts_keep_the_constraint(body: JsonObject, expected: tuple[str, ...] | None) -> None:
    assert options(Fields(body)) == expected


@looped(
    ("body", "reason"),
    [
        ({"guided_json": "{"}, "not JSON"),
        ({"guided_json": {"not": {}}}, "'not' is not supported"),
        ({"guided_choice": []}, "lists nothing"),
        ({"guided_regex": "(?=a)"}, "look-around"),
        ({"guided_grammar": "root ::= x"}, "grammars are not supported"),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}}, "json_schema with a schema"),
        ({"response_format": {"type": "strange"}}, "must be text"),
        ({"response_format": {}, "guided_choice": None}, "must be text"),
        ({"guided_choice": ["a"], "guided_regex": "a"}, "At most one constraint"),
        ({"guided_json": {}, "response_format": {"type": "json_object"}}, "At most one constraint"),
    ],
)
def test_what_cannot_be_kept_is_a_400(body: JsonObject, reason: str) -> None:
    with pytest.raises(MockError, match=reason) as caught:
        options(Fields(body))
    assert caught.value.param in body


@looped(
    ("choice", "expected"),
    [
        (None, (None, "")),
        ("auto", (None, "")),
        ("none", (None, "")),
        ("required", ("first", "{}")),
        (NAMED, ("second", '{"n":2}')),
    ],
)
def test_only_a_forced_choice_makes_a_call(choice: JsonValue, expected: tuple[str | None, str]) -> None:
    assert tool(Fields({"tools": TOOLS, "tool_choice": choice})) == expected


def test_no_tools_mean_no_call() -> None:
    assert tool(Fields({"tools": [], "tool_choice": "none"})) == (None, "")


@looped(
    ("body", "param"),
    [
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": "any"}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "third"}}}, "tool_choice"),
        ({"tools": TOOLS, "tool_choice": {"type": "function"}}, "tool_choice"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools"),
        ({"tools": [{"function": {"name": "f", "parameters": {"not": {}}}}], "tool_choice": "required"}, "tools"),
    ],
)
def test_a_bad_tool_or_choice_is_a_400(body: JsonObject, param: str) -> None:
    assert refused(tool, Fields(body)) == (400, param)
