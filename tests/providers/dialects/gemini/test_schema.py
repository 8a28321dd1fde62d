"""Which schemas Gemini keeps, and how those are said that it knows under other words."""

import copy

import pytest

from providers.constraints.constraint_styles import Unenforceable
from providers.dialects.gemini.schema import native_schema
from providers.json_types import JsonObject, JsonValue

POINT: JsonObject = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}


def obj(**properties: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "string", "enum": ["a", "b"]},
        {"type": ["string", "null"], "format": "date-time", "title": "T", "description": "D", "default": "x"},
        {**obj(a={"type": "integer", "minimum": 0, "maximum": 9}), "additionalProperties": False},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "x", **obj(a={"anyOf": [POINT, POINT]})},
        {"type": "array", "prefixItems": [{"type": "string"}], "items": POINT, "minItems": 1, "maxItems": 3},
        {**obj(a={"oneOf": [{"type": "string"}, POINT]}), "propertyOrdering": ["a"]},
        {**obj(a={"type": "string", "minLength": 0}, b={"uniqueItems": False}), "minProperties": 0},
        obj(pattern={"type": "string"}, allOf={"type": "string"}, const={"type": "number", "enum": [1, 2.5]}),
        {"type": "object", "additionalProperties": POINT},
    ],
)
def test_what_the_vendor_keeps_goes_out_as_it_is(schema: JsonObject) -> None:
    assert native_schema(schema) is schema


@pytest.mark.parametrize(
    ("schema", "native"),
    [
        (obj(kind={"const": "circle"}), obj(kind={"enum": ["circle"]})),
        (obj(a={"allOf": [POINT], "title": "A"}), obj(a={"anyOf": [POINT], "title": "A"})),
        (
            {**obj(a={"$ref": "#/definitions/P", "description": "d"}), "definitions": {"P": POINT}},
            {**obj(a={"anyOf": [{"$ref": "#/$defs/P"}], "description": "d"}), "$defs": {"P": POINT}},
        ),
        ({"$ref": "#/$defs/P", "$defs": {"P": POINT}}, {"$ref": "#/$defs/P", "$defs": {"P": POINT}}),
    ],
)
def test_what_it_knows_under_another_word_is_said_so(schema: JsonObject, native: JsonObject) -> None:
    before = copy.deepcopy(schema)
    assert native_schema(schema) == native
    assert schema == before


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        (obj(a={"type": "string", "pattern": "^a$"}), "$.properties.a.pattern is not enforced"),
        (obj(a={"type": "string", "minLength": 2}), "$.properties.a.minLength is not enforced"),
        ({"type": "array", "items": {"exclusiveMinimum": 0}}, "$.items.exclusiveMinimum is not enforced"),
        ({"type": "array", "uniqueItems": True}, "$.uniqueItems is not enforced"),
        ({"not": {"type": "string"}}, "$.not is not enforced"),
        (obj(a={"allOf": [POINT, POINT]}), "$.properties.a.allOf is only enforced with a single part"),
        (obj(a={"enum": ["x", None]}), "$.properties.a.enum may only list strings and numbers"),
        (obj(a={"enum": [True]}), "$.properties.a.enum may only list strings and numbers"),
        (obj(a={"const": None}), "$.properties.a.const may only be a string or a number"),
        (obj(a={"const": 1, "enum": [1]}), "$.properties.a.const may only be a string or a number, without enum"),
        ({"type": "array", "items": [POINT]}, "$.items must be one schema"),
        (obj(a=True), "$.properties.a may not be true or false"),
        (
            {**obj(a={"$ref": "#/$defs/P", "minimum": 1}), "$defs": {"P": POINT}},
            "$.properties.a.minimum is not enforced beside $ref",
        ),
        (obj(a={"$ref": "#/properties/b"}, b=POINT), "$.properties.a.$ref may only lead to the definitions"),
        (obj(a={"definitions": {"P": POINT}}), "$.properties.a.definitions is only known at the root"),
        (obj(a={"$defs": {"P": POINT}}), "$.properties.a.$defs is only known at the root"),
    ],
)
def test_what_it_would_pass_over_is_refused_with_its_path(schema: JsonObject, path: str) -> None:
    with pytest.raises(Unenforceable) as caught:
        native_schema(schema)
    assert caught.value.reason.startswith("it would not keep this schema: ")
    assert path in caught.value.reason


def tree(*required: JsonValue) -> JsonObject:
    node: JsonObject = obj(next={"$ref": "#/$defs/N"}, more={"type": "array", "items": {"$ref": "#/$defs/N"}})
    return {"$ref": "#/$defs/N", "$defs": {"N": {**node, "required": [*required]}}}


def test_a_reference_may_lead_back_through_a_property_that_may_be_left_out() -> None:
    assert native_schema(tree()) == tree()
    assert native_schema({**obj(a={"$ref": "#"})})


@pytest.mark.parametrize("required", ["next", "more"])
def test_a_reference_that_leads_back_through_what_is_required_is_refused(required: str) -> None:
    with pytest.raises(Unenforceable, match="leads back to itself through what is required"):
        native_schema(tree(required))


def test_a_schema_without_bottom_is_refused() -> None:
    deep: JsonObject = {"type": "string"}
    for _ in range(300):
        deep = {"type": "array", "items": deep}
    with pytest.raises(Unenforceable, match="nested too deeply"):
        native_schema(deep)
