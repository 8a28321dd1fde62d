"""Response formats and guided values."""

import orjson
import pytest

from providers.unified import JsonObject, JsonValue
from proxy.surfaces.checks import Invalid
from proxy.surfaces.constraints import choice, response_format, schema

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
WRITTEN = orjson.dumps(SCHEMA).decode()


@pytest.mark.parametrize("value", [SCHEMA, WRITTEN])
def test_a_schema_may_be_an_object_or_a_string_of_one(value: JsonValue) -> None:
    assert schema(value) == SCHEMA


def test_a_property_may_be_called_ref() -> None:
    named: JsonObject = {"properties": {"$ref": {"type": "string"}}}
    assert schema(named) == named


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], "JSON Schema object"),
        (True, "JSON Schema object"),
        ("{", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"a":' + "[" * 70 + "]" * 70 + "}", "levels deep"),
        ({"$ref": "https://example.com/s.json"}, "another document"),
        ({"items": [{"$ref": "other.json#/a"}]}, "another document"),
        ('{"$ref":"other.json"}', "another document"),
    ],
)
def test_other_schemas_are_refused(value: JsonValue, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        schema(value)


def test_a_choice_lists_its_words_in_order() -> None:
    assert choice(["b", "a"]) == ("b", "a")


@pytest.mark.parametrize("value", [[], "a", {}, [""], [1], ["a", "b", "a"], [None]])
def test_a_choice_without_distinct_words_is_refused(value: JsonValue) -> None:
    with pytest.raises(Invalid):
        choice(value)


@pytest.mark.parametrize(
    "value",
    [
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_object", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "strict": True, "description": "d"}},
        {"type": "json_schema", "json_schema": {"name": "n", "strict": None}},
        {"type": "grammar", "grammar": 'root ::= "a"'},
        {"type": "structural_tag", "structures": []},
    ],
)
def test_a_response_format_is_an_object_with_a_type(value: JsonObject) -> None:
    assert response_format(value) == value


def test_schemas_written_as_strings_come_out_as_objects_and_the_input_stays() -> None:
    given: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": WRITTEN}}
    assert response_format(given) == {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert given == {"type": "json_schema", "json_schema": {"name": "n", "schema": WRITTEN}}
    assert response_format({"type": "json_object", "schema": WRITTEN}) == {"type": "json_object", "schema": SCHEMA}


@pytest.mark.parametrize(
    ("value", "loc"),
    [
        ("json_object", ()),
        ({}, ("type",)),
        ({"type": ""}, ("type",)),
        ({"type": ["text"]}, ("type",)),
        ({"type": "json_schema"}, ("json_schema",)),
        ({"type": "json_schema", "json_schema": "x"}, ("json_schema",)),
        ({"type": "json_schema", "json_schema": {"name": ""}}, ("json_schema", "name")),
        ({"type": "json_schema", "json_schema": {"strict": 1}}, ("json_schema", "strict")),
        ({"type": "json_schema", "json_schema": {"schema": []}}, ("json_schema", "schema")),
        ({"type": "json_object", "schema": 1}, ("schema",)),
        ({"type": "grammar"}, ("grammar",)),
    ],
)
def test_another_response_format_is_refused_at_its_place(value: JsonValue, loc: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        response_format(value)
    assert caught.value.loc == loc
