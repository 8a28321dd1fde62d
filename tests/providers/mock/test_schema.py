"""The smallest values of schemas, checked by a JSON Schema validator."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import Unsupported
from providers.mock.schema import instance
from tests.support.looped import looped

SUPPORTED: tuple[tuple[JsonObject, JsonValue], ...] = (
    ({"type": "string"}, "text"),
    ({"type": "integer"}, 0),
    ({"type": "number"}, 0),
    ({"type": "boolean"}, True),
    ({"type": "null"}, None),
    ({"type": ["string", "null"]}, "text"),
    ({}, "text"),
    ({"const": {"a": 1}}, {"a": 1}),
    ({"enum": ["red", "blue"]}, "red"),
    ({"type": "object", "properties": {"a": {"type": "integer"}}}, {}),
    (
        {"properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["b", "a"]},
        {"b": "text", "a": 0},
    ),
    (
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"], "minProperties": 2},
        {"b": "text", "a": "text"},
    ),
    ({"required": ["x"], "additionalProperties": {"type": "integer"}}, {"x": 0}),
    ({"type": "array", "items": {"type": "integer"}}, []),
    ({"items": {"type": "integer"}, "minItems": 2}, [0, 0]),
    ({"prefixItems": [{"type": "boolean"}], "items": {"type": "null"}, "minItems": 2}, [True, None]),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 0),
    ({"oneOf": [{"const": 3}, {"const": 4}]}, 3),
    (
        {"allOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b", "a"]}]},
        {"a": "text", "b": "text"},
    ),
    ({"type": "integer", "anyOf": [{"minimum": 5}]}, 5),
    ({"$defs": {"n": {"type": "integer", "minimum": 7}}, "$ref": "#/$defs/n"}, 7),
    ({"$defs": {"a/b~": {"const": 1}}, "allOf": [{"$ref": "#/$defs/a~1b~0"}]}, 1),
    ({"type": "integer", "exclusiveMinimum": 3}, 4),
    ({"type": "integer", "maximum": -2}, -2),
    ({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, 0.5),
    ({"type": "number", "minimum": 0.3, "multipleOf": 0.25}, 0.5),
    ({"type": "integer", "minimum": 11, "multipleOf": 5}, 15),
    ({"type": "string", "minLength": 6}, "textxx"),
    ({"type": "string", "maxLength": 2}, "te"),
    ({"type": "string", "pattern": "^[A-Z]{3}$"}, "AAA"),
    ({"type": "string", "format": "date"}, "2024-01-01"),
)
REFUSED: tuple[JsonValue, ...] = (
    False,
    3,
    {"not": {}},
    {"type": "strange"},
    {"type": []},
    {"enum": []},
    {"anyOf": {}},
    {"$ref": "https://example.com/schema"},
    {"$ref": "#/$defs/none"},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {"properties": {"a": {"$ref": "#"}}, "required": ["a"]},
    {"required": ["a"], "additionalProperties": False},
    {"required": ["a"], "patternProperties": {"^a": {"type": "integer"}}},
    {"minProperties": 1, "type": "object"},
    {"allOf": [{"type": "string"}, {"type": "integer"}]},
    {"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"a": {"const": 2}}}]},
    {"allOf": {}},
    {"properties": []},
    {"minItems": 2, "uniqueItems": True},
    {"minItems": -1},
    {"minItems": 10**9},
    {"prefixItems": {}, "minItems": 1},
    {"type": "string", "minLength": 10**9},
    {"type": "string", "minLength": 3, "maxLength": 2},
    {"type": "string", "format": "date", "maxLength": 3},
    {"type": "integer", "minimum": 2, "maximum": 1},
    {"type": "integer", "multipleOf": 1.5, "minimum": 1},
    {"minimum": "3"},
)


@looped(("schema", "expected"), SUPPORTED)
def test_the_instance_is_small_and_valid(schema: JsonObject, expected: JsonValue) -> None:
    made = instance(schema)
    assert made == expected
    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(made)


@looped("schema", REFUSED)
def test_what_is_not_supported_is_refused(schema: JsonValue) -> None:
    with pytest.raises(Unsupported):
        instance(schema)


def test_references_that_multiply_are_refused() -> None:
    levels: JsonObject = {f"l{n}": {"minItems": 9, "items": {"$ref": f"#/$defs/l{n + 1}"}} for n in range(12)}
    with pytest.raises(Unsupported, match="too large"):
        instance({"$defs": {**levels, "l12": {"type": "null"}}, "$ref": "#/$defs/l0"})


_SCALARS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            "minimum": st.integers(-20, 20),
            "maximum": st.integers(-20, 20),
            "exclusiveMinimum": st.integers(-20, 20),
            "multipleOf": st.integers(1, 5),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string")}, optional={"minLength": st.integers(0, 9), "maxLength": st.integers(0, 9)}
    ),
)


@given(
    st.recursive(
        _SCALARS,
        lambda inner: st.one_of(
            st.fixed_dictionaries({"items": inner, "minItems": st.integers(0, 3)}),
            st.fixed_dictionaries({"properties": st.fixed_dictionaries({"a": inner}), "required": st.just(["a"])}),
            st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)}),
        ),
        max_leaves=5,
    )
)
def test_whatever_is_not_refused_is_valid(schema: JsonObject) -> None:
    try:
        made = instance(schema)
    except Unsupported:
        return
    jsonschema.Draft202012Validator(schema).validate(made)
