"""Which schemas Anthropic can enforce."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.anthropic.schema import MAX_DEPTH, schema_problem
from providers.json_types import JsonObject, JsonValue


def closed(**properties: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def many(count: int, member: JsonValue) -> JsonObject:
    return closed(**{f"p{number}": member for number in range(count)})


STRING: JsonObject = {"type": "string"}
UNION: JsonObject = {"anyOf": [STRING, {"type": "null"}]}
GOOD: tuple[JsonObject, ...] = (
    closed(),
    closed(a={"type": "string", "description": "x", "title": "A", "default": "y"}),
    closed(a={"type": "array", "items": {"type": "integer"}, "minItems": 1}),
    closed(a={"anyOf": [{"type": "null"}, closed(b={"type": "number"})]}),
    closed(a={"allOf": [{"type": "string"}]}),
    closed(a={"enum": ["x", 1, None, True]}, b={"const": "y"}),
    closed(a={"type": ["string", "null"]}),
    closed(a={"type": "string", "format": "date-time"}, b={"type": "string", "pattern": "^[a-z]+(?:x|y)$"}),
    {**closed(a={"$ref": "#/$defs/a"}, b={"$ref": "#/$defs/a"}), "$defs": {"a": {"type": "string"}}},
    {"$ref": "#/definitions/a~1b", "definitions": {"a/b": closed(c={"type": "boolean"})}},
    {**closed(), "$defs": {"unused": {"anyOf": [{"$ref": "#/$defs/unused"}, {"type": "null"}]}}},
    {**many(24, STRING), "required": []},
    many(16, {"type": ["string", "null"]}),
    closed(a={"enum": ["x"], "description": "minimum 3", "examples": [{"oneOf": 1}]}, oneOf={"type": "string"}),
)
BAD: tuple[tuple[JsonValue, str], ...] = (
    ("{}", "not an object"),
    ({"type": "array", "items": {"type": "string"}}, "root"),
    ({"anyOf": [closed()]}, "root"),
    ({"type": "object"}, "$ must set 'additionalProperties' to false"),
    (closed(a={"type": "object", "properties": {}}), "$.properties.a must set"),
    (closed(a={"properties": {}}), "$.properties.a must set"),
    (closed(a={"type": ["object", "null"]}), "$.properties.a must set"),
    (closed(a={"type": "array", "items": {"type": "object"}}), "$.properties.a.items must set"),
    (closed(a={"anyOf": [{"type": "null"}, {"type": "object"}]}), "$.properties.a.anyOf[1] must set"),
    ({**closed(), "$defs": {"d": {"type": "object"}}}, "$.$defs.d must set"),
    (closed(a={}), "$.properties.a must say a type"),
    (closed(a=True), "$.properties.a must say a type"),
    (closed(a={"anyOf": [{"type": "null"}, False]}), "$.properties.a.anyOf[1] must say a type"),
    (closed(a={"type": "array", "items": True}), "$.properties.a.items must say a type"),
    (closed(a={"type": "array", "items": [{"type": "null"}]}), "$.properties.a.items may only be one schema"),
    ({**closed(), "additionalProperties": {"type": "null"}}, "$ must set 'additionalProperties' to false"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "root"),
    (
        {**many(25, STRING), "required": []},
        "$.properties brings the schema to more than 24 properties that are optional",
    ),
    (
        closed(a={**many(25, STRING), "required": []}),
        "$.properties.a.properties brings the schema to more than 24 properties",
    ),
    (many(17, UNION), "$.properties brings the schema to more than 16 properties that are of several types"),
    (closed(a={"oneOf": [{"type": "string"}]}), "$.properties.a.oneOf is not supported"),
    (closed(a={"type": "integer", "minimum": 1}), "$.properties.a.minimum is not supported"),
    (closed(a={"type": "number", "multipleOf": 2}), "$.properties.a.multipleOf is not supported"),
    (closed(a={"type": "string", "maxLength": 1}), "$.properties.a.maxLength is not supported"),
    (closed(a={"type": "array", "uniqueItems": True}), "$.properties.a.uniqueItems is not supported"),
    (closed(a={"type": "array", "prefixItems": []}), "$.properties.a.prefixItems is not supported"),
    (closed(a={"type": "array", "minItems": 2}), "$.properties.a.minItems may only be 0 or 1"),
    (closed(a={"type": "array", "maxItems": 2}), "$.properties.a.maxItems is not supported"),
    (closed(a={"not": {}}), "$.properties.a.not is not supported"),
    ({**closed(), "patternProperties": {}}, "$.patternProperties is not supported"),
    (closed(a={"type": "string", "format": "phone"}), "$.properties.a.format 'phone' is not supported"),
    (closed(a={"type": "string", "pattern": "(?=a)"}), "$.properties.a.pattern uses a look-around at position 0"),
    (closed(a={"type": "string", "pattern": r"(a)\1"}), "$.properties.a.pattern uses a back reference at position 3"),
    (closed(a={"type": "string", "pattern": r"\ba"}), "$.properties.a.pattern uses a word boundary at position 0"),
    (closed(a={"type": "string", "pattern": "("}), "$.properties.a.pattern has an unbalanced '(' at position 0"),
    (closed(a={"enum": [{"b": 1}]}), "$.properties.a.enum may only list plain values"),
    (closed(a={"enum": "x"}), "$.properties.a.enum"),
    (closed(a={"const": [1]}), "$.properties.a.const"),
    (closed(a={"allOf": [{"$ref": "#/$defs/b"}]}), "$.properties.a.allOf may not hold references"),
    (closed(a={"$ref": "https://example.com/x"}), "$.properties.a.$ref leads nowhere"),
    (closed(a={"$ref": "#/$defs/none"}), "$.properties.a.$ref leads nowhere"),
    (closed(a={"$ref": 3}), "$.properties.a.$ref leads nowhere"),
    (closed(a={"$ref": "#"}), "$.properties.a.$ref refers to itself"),
    (
        {**closed(a={"$ref": "#/$defs/n"}), "$defs": {"n": closed(next={"$ref": "#/$defs/n"})}},
        "$.properties.a.$ref.properties.next.$ref refers to itself",
    ),
)


@pytest.mark.parametrize("schema", GOOD)
def test_a_schema_of_the_supported_subset_passes(schema: JsonObject) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize(("schema", "problem"), BAD)
def test_another_schema_is_named_with_its_path(schema: JsonValue, problem: str) -> None:
    found = schema_problem(schema)
    assert found is not None
    assert problem in found


def test_depth_has_an_end() -> None:
    deep: JsonObject = {"type": "string"}
    for _ in range(MAX_DEPTH + 200):
        deep = {"type": "array", "items": deep}
    found = schema_problem(closed(a=deep))
    assert found is not None
    assert found.endswith("is nested too deeply")


@given(
    st.recursive(
        st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["type", "properties", "items", "anyOf", "allOf", "$ref", "$defs", "enum", "format"]),
                inner,
                max_size=4,
            ),
        ),
    )
)
def test_no_schema_breaks_the_check(schema: JsonValue) -> None:
    assert isinstance(schema_problem({**closed(), "$defs": {"x": schema}, "anyOf": [schema]}), str | None)
