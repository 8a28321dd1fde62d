"""The common parts of tool definitions."""

import pytest

from providers.dialects.shared.tool_definitions import offers_tools, read_parameters, with_properties
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_no_tools_need_no_choice(choice: str) -> None:
    assert not offers_tools({})
    assert not offers_tools({"tools": [], "tool_choice": choice})


def test_a_choice_needs_tools() -> None:
    assert offers_tools({"tools": [{"type": "function"}], "tool_choice": "required"})
    with pytest.raises(Refusal, match="needs 'tools'"):
        offers_tools({"tool_choice": "required"})


def test_parameters_are_those_of_an_object() -> None:
    assert read_parameters({"name": "f"}) == {}
    assert read_parameters({"parameters": {"properties": {}}}) == {"properties": {}}


@pytest.mark.parametrize("parameters", [["a"], {"type": "string"}])
def test_other_parameters_are_refused(parameters: JsonValue) -> None:
    with pytest.raises(Refusal, match="type 'object'"):
        read_parameters({"parameters": parameters})


A: JsonObject = {"type": "object", "properties": {"a": {}, "k": {}}, "required": ["a", "k"]}
B: JsonObject = {"type": "object", "properties": {"b": {}, "k": {}}, "required": ["b", "k"]}


@looped(
    ("parameters", "required"),
    [
        ({"anyOf": [A, B]}, ["k"]),
        ({"oneOf": [A, {"$ref": "#/$defs/B"}], "$defs": {"B": B}}, ["k"]),
        ({"allOf": [A, B]}, ["a", "b", "k"]),
        ({"type": "object", "properties": {"c": {}}, "required": ["c"], "anyOf": [A, B]}, ["c", "k"]),
    ],
)
def test_alternatives_at_the_root_become_one_object(parameters: JsonObject, required: JsonValue) -> None:
    made = read_parameters({"parameters": parameters})
    properties = made["properties"]
    assert isinstance(properties, dict)
    assert {"a", "b", "k"} <= properties.keys()
    assert made["required"] == required
    assert made["type"] == "object"
    assert made.keys().isdisjoint({"anyOf", "oneOf", "allOf"})


def test_a_reference_at_the_root_is_followed() -> None:
    made = read_parameters({"parameters": {"$ref": "#/$defs/A", "$defs": {"A": A}}})
    assert made == {**A, "$defs": {"A": A}}


def test_a_reference_at_the_root_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(Refusal, match="leads nowhere"):
        read_parameters({"parameters": {"$ref": "#/$defs/A"}})


@pytest.mark.parametrize("bare", [{"type": "object"}, {"type": "object", "properties": None, "title": "t"}])
def test_a_bare_object_gets_empty_properties_and_nothing_else_changes(bare: JsonObject) -> None:
    function: JsonObject = {"name": "f", "parameters": bare}
    assert with_properties(function) == {"name": "f", "parameters": {**bare, "properties": {}}}
    assert function["parameters"] is bare


@looped("kind", ["string", ["string", "null"]])
def test_parameters_that_are_no_objects_are_refused(kind: JsonValue) -> None:
    with pytest.raises(Refusal, match="must be a schema of type 'object'"):
        with_properties({"name": "f", "parameters": {"type": kind}})


@looped(
    ("given", "sent"),
    [
        ({"properties": {"a": {}}}, {"type": "object", "properties": {"a": {}}}),
        ({"type": ["object", "null"], "properties": {}}, {"type": "object", "properties": {}}),
        (
            {"anyOf": [{"type": "object", "properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
            {"type": "object", "properties": {"a": {}, "b": {}}},
        ),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {}}}}},
            {"type": "object", "properties": {"a": {}}, "$defs": {"A": {"type": "object", "properties": {"a": {}}}}},
        ),
    ],
)
def test_parameters_get_the_type_of_objects_and_no_alternatives_at_their_root(
    given: JsonObject, sent: JsonObject
) -> None:
    assert with_properties({"name": "f", "parameters": given})["parameters"] == sent


@looped(
    "function",
    [
        {"name": "f"},
        {"name": "f", "parameters": None},
        {"name": "f", "parameters": {}},
        {"name": "f", "parameters": {"type": "object", "properties": {}}},
        {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "object"}}}},
    ],
)
def test_any_other_function_is_the_very_same(function: JsonObject) -> None:
    assert with_properties(function) is function
