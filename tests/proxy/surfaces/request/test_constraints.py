"""Response formats and guided decoding values."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.constraints import choice, regex, response_format, schema, structured_outputs
from proxy.surfaces.request.rule_kinds import Invalid
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"type": "string"}}}
WRITTEN = orjson.dumps(SCHEMA).decode()


@pytest.mark.parametrize("value", [SCHEMA, WRITTEN])
def test_a_schema_may_be_an_object_or_a_string_of_one(value: JsonValue) -> None:
    assert schema(value) == SCHEMA


def test_a_property_may_be_called_ref() -> None:
    named: JsonObject = {"properties": {"$ref": {"type": "string"}}}
    assert schema(named) == named


@looped(
    ("value", "reason"),
    [
        ([], "JSON Schema object"),
        (True, "JSON Schema object"),
        ("{", "not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"a":' + "[" * 70 + "]" * 70 + "}", "levels deep"),
        ({"$ref": "https://example.com/s.json"}, "another document"),
        ({"items": [{"$ref": "other.json#/a"}]}, "another document"),
        ('{"$ref":"other.json"}', r"\$\.\$ref refers to another document"),
        ({"items": {"$dynamicRef": "other.json#a"}}, r"\$\.items\.\$dynamicRef refers to another document"),
        ({"properties": {"a": {"$id": "b"}}}, r"\$\.properties\.a\.\$id gives a part of the schema an address"),
        ({"items": {"$ref": "#/$defs/a"}}, r"\$\.items\.\$ref leads nowhere within the schema"),
        (
            {"properties": {"a": {"type": "strin"}}},
            r"valid JSON Schema; the value at \$\.properties\.a\.type is invalid for its keyword",
        ),
        ({"required": "a"}, r"valid JSON Schema; the value at \$\.required is invalid for its keyword"),
        ({"items": {"pattern": "(a"}}, r"\$\.items\.pattern has an unbalanced '\(' at position 0"),
    ],
)
def test_other_schemas_are_refused(value: JsonValue, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        schema(value)


def test_what_is_data_in_a_schema_is_no_reference() -> None:
    noted: JsonObject = {"enum": [{"$ref": "https://example.com"}], "default": {"$ref": "other.json"}}
    assert schema(noted) == noted


@looped(
    "pattern",
    [
        r"\d{3}-\d{4}",
        r"^[\w.-]+@[\w-]+\.(com|org)$",
        r'{"name": "\w+"}',
        r"(?i)yes|no",
        r"(?=a)\bword\b",
        r"(?P<year>\d{4})(?:-\p{L}+)?",
        "a{,3}",
        "x" * 4096,
    ],
)
def test_a_pattern_of_any_dialect_is_taken_as_it_is(pattern: str) -> None:
    assert regex(pattern) == pattern


@looped(
    ("value", "reason"),
    [
        ("", "must be a non-empty string"),
        (3, "must be a non-empty string"),
        ("(a", r"must be a regular expression; the pattern has an unbalanced '\(' at position 0"),
        ("[a", "the pattern has a class without an end at position 2"),
        ("a{3,2}", "the pattern has a repetition whose bounds are the wrong way round"),
        ("*a", r"the pattern has '\*' with nothing to repeat at position 0"),
        ("x" * 4097, "the pattern is longer than 4096 characters"),
    ],
)
def test_a_pattern_that_does_not_compile_is_refused_with_its_reason(value: JsonValue, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        regex(value)


def test_a_choice_lists_its_words_in_order() -> None:
    assert choice(["b", "a"]) == ("b", "a")


@looped("value", [[], "a", {}, [""], [1], ["a", "b", "a"], [None]])
def test_a_choice_without_distinct_words_is_refused(value: JsonValue) -> None:
    with pytest.raises(Invalid):
        choice(value)


@looped(
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


@looped(
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
        ({"type": "json_object", "schema": {"type": "strin"}}, ("schema",)),
        ({"type": "json_schema", "json_schema": {"schema": {"$ref": "x"}}}, ("json_schema", "schema")),
        ({"type": "grammar"}, ("grammar",)),
    ],
)
def test_another_response_format_is_refused_at_its_place(value: JsonValue, loc: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        response_format(value)
    assert caught.value.loc == loc


@looped(
    ("value", "meant"),
    [
        ({}, {}),
        ({"json": SCHEMA, "regex": None, "json_object": False}, {"guided_json": SCHEMA}),
        ({"choice": ["a", "b"]}, {"guided_choice": ("a", "b")}),
        ({"json_object": True}, {"response_format": {"type": "json_object"}}),
        (
            {"structural_tag": '{"structures": [], "triggers": []}'},
            {"response_format": {"type": "structural_tag", "structures": [], "triggers": []}},
        ),
        ({"structural_tag": {"format": {}}}, {"response_format": {"type": "structural_tag", "format": {}}}),
    ],
)
def test_an_object_of_outputs_is_one_constraint_under_the_unified_name(value: JsonObject, meant: object) -> None:
    assert structured_outputs(value) == meant


@looped(
    ("value", "loc"),
    [
        ("json", ()),
        ({"json": {"type": "strin"}}, ("json",)),
        ({"json": {}, "regex": "a"}, ("regex",)),
        ({"disable_fallback": True}, ("disable_fallback",)),
        ({"structural_tag": "{"}, ("structural_tag",)),
    ],
)
def test_other_outputs_are_refused_at_their_place(value: JsonValue, loc: tuple[str, ...]) -> None:
    with pytest.raises(Invalid) as caught:
        structured_outputs(value)
    assert caught.value.loc == loc
