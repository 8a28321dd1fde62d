"""Schemas whose root is not an object, and names of formats."""

from providers.constraints.object_root import fitting_name, is_object, with_root_type, wrapped_schema
from providers.json_types import JsonObject
from tests.support.looped import looped

A: JsonObject = {"type": "string"}


def test_a_value_that_is_no_object_is_a_property_of_one_beside_its_definitions() -> None:
    schema: JsonObject = {"type": "array", "items": {"$ref": "#/$defs/A"}, "$defs": {"A": A}}
    wrapped = wrapped_schema(schema)
    assert wrapped is not None
    assert wrapped["properties"] == {"value": {"type": "array", "items": {"$ref": "#/$defs/A"}}}
    assert (wrapped["$defs"], wrapped["required"]) == ({"A": A}, ["value"])


def test_a_schema_that_refers_to_its_own_root_is_not_wrapped() -> None:
    assert wrapped_schema({"type": "array", "items": {"$ref": "#"}}) is None


@looped(
    ("schema", "is_one"),
    [({"type": "object"}, True), ({}, True), ({"$ref": "#/$defs/A"}, True), (A, False), ({"anyOf": [A]}, False)],
)
def test_objects_without_alternatives_need_no_wrapping(schema: JsonObject, is_one: bool) -> None:
    assert is_object(schema) is is_one


def test_a_schema_of_properties_gets_the_type_of_objects() -> None:
    typed: JsonObject = {"type": "object", "properties": {}}
    assert with_root_type({"properties": {}}) == typed
    assert with_root_type(typed) is typed


@looped(
    ("given", "name"),
    [
        ("ok-1_a", "ok-1_a"),
        ("my schema", "my_schema"),
        ("", "guided_json"),
        (None, "guided_json"),
        ("x" * 70, "x" * 64),
    ],
)
def test_a_name_is_in_the_vendors_pattern(given: object, name: str) -> None:
    assert fitting_name(given) == name
