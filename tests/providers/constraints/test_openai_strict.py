"""OpenAI's strict subset: each rule, with the path of the violation."""

from functools import partial

from providers.constraints.openai_strict import strict_problem
from providers.json_types import JsonObject, JsonValue
from tests.support.cpu_growth import growth
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
LOOSE: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}


def closed(**properties: JsonObject) -> JsonObject:
    names = list(properties)
    return {"type": "object", "properties": {**properties}, "required": [*names], "additionalProperties": False}


def nested(levels: int) -> JsonObject:
    schema = closed()
    for _ in range(levels - 1):
        schema = closed(a={"type": "array", "items": schema})
    return schema


TEXT: JsonObject = {"type": "string"}
REFERENCE: JsonObject = {"$ref": "#/$defs/d"}
WRAPPED: JsonObject = {"anyOf": [REFERENCE], "description": "D"}


def words(count: int, length: int) -> JsonObject:
    values: list[JsonValue] = [f"{number:0{length}}" for number in range(count)]
    return {"type": "string", "enum": values}


def wide(count: int) -> JsonObject:
    null: JsonObject = {"type": "null"}
    return closed(**{f"p{number}": null for number in range(count)})


LONG_NAME: JsonObject = {**SCHEMA, "$defs": {"d" * 60_000: {"type": "null"}, "e" * 60_000: {"const": "x"}}}


@looped(
    ("schema", "problem"),
    [
        ({"type": "array"}, "the root of the schema must have type object and no anyOf"),
        ({"$ref": "#/$defs/a"}, "the root of the schema must have type object and no anyOf"),
        ({**SCHEMA, "anyOf": []}, "the root of the schema must have type object and no anyOf"),
        (LOOSE, "$ must set additionalProperties to false"),
        ({**LOOSE, "additionalProperties": {"type": "string"}}, "$ must set additionalProperties to false"),
        ({**LOOSE, "additionalProperties": False}, "$.required must list 'a'"),
        (closed(a={"allOf": []}), "$.properties.a.allOf cannot be enforced"),
        (closed(a={"oneOf": []}), "$.properties.a.oneOf cannot be enforced"),
        (closed(a={"if": {}}), "$.properties.a.if cannot be enforced"),
        (closed(a={**SCHEMA, "dependentRequired": {}}), "$.properties.a.dependentRequired cannot be enforced"),
        (closed(a={**SCHEMA, "patternProperties": {}}), "$.properties.a.patternProperties cannot be enforced"),
        (closed(a={"type": "array", "items": LOOSE}), "$.properties.a.items must set additionalProperties to false"),
        (closed(a={"anyOf": [SCHEMA, {"not": {}}]}), "$.properties.a.anyOf[1].not cannot be enforced"),
        (closed(a={"type": ["object", "null"]}), "$.properties.a must set additionalProperties to false"),
        ({**SCHEMA, "$defs": {"d": LOOSE}}, "$.$defs.d must set additionalProperties to false"),
        ({**SCHEMA, "definitions": {"d": LOOSE}}, "$.definitions.d must set additionalProperties to false"),
        (wide(5001), "$ brings the schema to more than 5000 properties"),
        (closed(a=wide(4998), b=wide(1)), "$.properties.b brings the schema to more than 5000 properties"),
        (closed(a=words(1000, 4), b=words(1, 1)), "$.properties.b brings the schema to more than 1000 enum values"),
        (closed(a=words(251, 60)), "$.properties.a.enum lists more than 250 values of over 15000 characters"),
        (LONG_NAME, f"$.$defs.{'e' * 64}... brings the schema to more than 120000 characters of names and values"),
        (
            closed(a={"anyOf": [closed(kind={"const": "x"}, b=TEXT), closed(kind={"const": "y"})]}),
            "$.properties.a.anyOf has objects that share the first key 'kind'",
        ),
        (
            {**closed(a={"anyOf": [REFERENCE, WRAPPED, TEXT]}), "$defs": {"d": closed(b=TEXT)}},
            "$.properties.a.anyOf has objects that share the first key 'b'",
        ),
        (nested(11), "$" + ".properties.a.items" * 10 + " is more than 10 levels deep"),
    ],
)
def test_what_the_strict_mode_refuses_is_named_with_its_path(schema: JsonObject, problem: str) -> None:
    assert strict_problem(schema) == problem


@looped(
    "schema",
    [
        SCHEMA,
        closed(a={"$ref": "#/$defs/d"}, b={"anyOf": [SCHEMA, {"type": "null"}]}),
        closed(allOf={"type": "string"}, oneOf={"type": "null"}),
        {**SCHEMA, "$defs": {"oneOf": closed()}},
        closed(a={"enum": ["allOf"], "default": {"not": 1}}),
        wide(5000),
        closed(a=words(250, 100), b=words(251, 59)),
        {**closed(a={"anyOf": [WRAPPED, TEXT, closed(c=TEXT, b=TEXT), closed()]}), "$defs": {"d": closed(b=TEXT)}},
        {**closed(a={"anyOf": [REFERENCE, REFERENCE]}), "$defs": {"d": REFERENCE}},
        nested(10),
        {**nested(10), "$defs": {"d": nested(10)}},
    ],
)
def test_a_schema_within_the_rules_has_no_problem(schema: JsonObject) -> None:
    assert strict_problem(schema) is None


def test_unions_of_many_references_are_read_in_time_linear_in_their_text() -> None:
    pointer = "#/$defs/" + "d" * 50_000

    def schema(size: int) -> JsonObject:
        options: list[JsonValue] = [{"$ref": pointer} for _ in range(size)]
        rest: list[JsonValue] = [{"anyOf": [{"$ref": "#"}]} for _ in range(25 * size)]
        return {**closed(a={"anyOf": options}, b={"anyOf": rest}), "$defs": {"d" * 50_000: TEXT}}

    assert growth(partial(strict_problem, schema(50)), partial(strict_problem, schema(200))) == ""
