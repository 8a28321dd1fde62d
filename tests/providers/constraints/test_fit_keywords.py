"""One subschema is rewritten in a vendor's keywords: exact replacements, weaker ones, which are reported, and keywords
that the vendor cannot express."""

import pytest

from providers.constraints.fit_keywords import MOST_NOTED_CHARACTERS, fit_node
from providers.constraints.fit_references import Unfittable
from providers.constraints.json_schema import References
from providers.constraints.schema_rules import ANTHROPIC, AZURE, COHERE, GEMINI, OPENAI, SchemaRules
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped


def fitted(node: JsonObject, rules: SchemaRules, **root: JsonValue) -> tuple[JsonObject, bool]:
    whole: JsonObject = {**root, "properties": {"a": node}}
    weaker = fit_node(References(whole), node, rules)
    return node, weaker


CAT: JsonObject = {"type": "object", "properties": {"kind": {"const": "cat"}}, "required": ["kind"]}
DOG: JsonObject = {"type": "object", "properties": {"kind": {"const": "dog"}}, "required": ["kind"]}


@looped(
    ("rules", "node", "sent", "weaker"),
    [
        (OPENAI, {"oneOf": [CAT, DOG]}, {"anyOf": [CAT, DOG]}, False),
        (OPENAI, {"oneOf": [CAT, CAT]}, {"anyOf": [CAT, CAT]}, True),
        (OPENAI, {"allOf": [{"type": "string"}]}, {"type": "string"}, False),
        (GEMINI, {"const": "a"}, {"enum": ["a"], "type": "string"}, False),
        (GEMINI, {"const": True}, {"type": "boolean", "description": "(enum: [true])"}, True),
        (AZURE, {"type": "integer", "minimum": 1}, {"type": "integer", "description": "(minimum: 1)"}, True),
        (
            AZURE,
            {"type": "string", "description": "A code.", "minLength": 2, "maxLength": 3},
            {"type": "string", "description": "A code. (minLength: 2; maxLength: 3)"},
            True,
        ),
        (AZURE, {"type": "string", "minLength": 0}, {"type": "string"}, False),
        (OPENAI, {"type": "string", "format": "uri"}, {"type": "string", "description": '(format: "uri")'}, False),
        (OPENAI, {"type": "string", "title": "T", "examples": ["a"], "x-own": 1}, {"type": "string"}, False),
        (OPENAI, {"enum": ["a", 1]}, {"enum": ["a", 1], "type": ["string", "integer"]}, False),
        (
            ANTHROPIC,
            {"type": "array", "items": {"type": "string"}, "minItems": 3},
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "(minItems: 3)"},
            True,
        ),
        (
            ANTHROPIC,
            {"type": "string", "pattern": "a(?=b)"},
            {"type": "string", "description": '(pattern: "a(?=b)")'},
            True,
        ),
        (
            OPENAI,
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "string"}]},
            {
                "type": "array",
                "items": {"type": "string"},
                "description": '(prefixItems: [{"type":"string"},{"type":"string"}])',
            },
            True,
        ),
        (GEMINI, {"items": [{"type": "string"}]}, {"prefixItems": [{"type": "string"}]}, False),
        (GEMINI, {"type": "array", "items": True}, {"type": "array", "items": {}}, False),
        (COHERE, {"properties": {"b": {}}}, {"properties": {"b": {}}, "required": ["b"]}, False),
    ],
)  # fmt: skip
def test_a_part_goes_out_in_the_vendors_keywords(
    rules: SchemaRules, node: JsonObject, sent: JsonObject, weaker: bool
) -> None:
    assert fitted(node, rules) == (sent, weaker)


def test_the_parts_of_all_of_become_one_object_where_they_are_no_more_than_objects() -> None:
    parts: JsonObject = {
        "allOf": [{"$ref": "#/$defs/x"}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}],
        "title": "Both",
    }
    definition: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    defs: JsonObject = {"$defs": {"x": definition}}
    node, weaker = fitted(parts, OPENAI, **defs)
    assert node == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert not weaker


def test_other_parts_of_all_of_are_told() -> None:
    node, weaker = fitted({"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 2}]}, OPENAI)
    assert node == {"type": "integer", "description": '(allOf: [{"minimum":1},{"maximum":2}])'}
    assert weaker


@looped(
    "node",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {}, "required": ["a"]},
        {},
        {"type": "array"},
        {"anyOf": [True, {"type": "string"}]},
    ],
)
def test_what_may_be_anything_has_no_form_where_everything_is_closed_and_typed(node: JsonObject) -> None:
    with pytest.raises(Unfittable):
        fitted(node, ANTHROPIC)


def test_what_may_be_nothing_has_no_form_for_gemini() -> None:
    with pytest.raises(Unfittable):
        fitted({"anyOf": [False]}, GEMINI)


def test_a_long_value_is_told_in_part() -> None:
    node, _ = fitted({"type": "string", "pattern": "a" * 1000}, AZURE)
    assert len(str(node["description"])) < MOST_NOTED_CHARACTERS + 30
