"""The keywords that an engine's converter ignores are found with their paths, and no others."""

from collections.abc import Mapping

from providers.constraints.engine_gaps import FIREWORKS, LLAMACPP, SGLANG, TGI, Engine, unenforced
from providers.constraints.json_schema import walk_schemas
from providers.json_types import JsonObject
from tests.support.looped import looped

ENGINES: Mapping[str, Engine] = {"llamacpp": LLAMACPP, "sglang": SGLANG, "tgi": TGI, "fireworks": FIREWORKS}
STRING: JsonObject = {"type": "string"}


def within(schema: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


def engine_problem(engine: Engine, schema: JsonObject) -> str | None:
    """Return the first keyword that the engine would not enforce, with its path and the reason; `None` if there is
    none."""
    for path, node in walk_schemas(schema):
        if found := unenforced(engine, schema, node):
            reasons = (problem for check in engine.checks if (problem := check(schema, node)))
            return f"{path}{next(reasons, f'.{found[0]} is not enforced')}"
    return None


@looped("engine", ENGINES)
@looped(
    ("keyword", "value"),
    [
        ("not", {}),
        ("if", {}),
        ("contains", {}),
        ("uniqueItems", True),
        ("multipleOf", 2),
        ("dependentRequired", {"a": ["b"]}),
        ("dependentSchemas", {"a": {}}),
    ],
)
def test_no_grammar_keeps_some_keywords(engine: str, keyword: str, value: JsonObject) -> None:
    assert engine_problem(ENGINES[engine], within({keyword: value})) == f"$.properties.a.{keyword} is not enforced"


@looped("engine", ENGINES)
@looped(
    "schema",
    [
        {"type": "object", "properties": {"a": {"enum": ["x", 1]}, "b": {"const": "y"}, "not": STRING}},
        {"type": "array", "items": {"type": ["integer", "null"]}, "minItems": 1, "maxItems": 3, "uniqueItems": False},
        {"$ref": "#/$defs/d", "$defs": {"d": {"type": "object", "properties": {"next": {"$ref": "#/$defs/d"}}}}},
        {"anyOf": [STRING, {"type": "null"}], "title": "t", "description": "d", "default": None},
        {"type": "string", "minLength": 1, "maxLength": 20},
        {"type": "string", "pattern": "^[a-z]{2,}$"},
        {"type": "string", "format": "email"},
        {"allOf": [{"$ref": "#/$defs/d"}], "$defs": {"d": {"type": "object", "properties": {}}}},
        {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
        {"type": "object", "additionalProperties": STRING},
        {"enum": [{"not": 1, "multipleOf": 2}]},
    ],
)
def test_what_every_engine_keeps_has_no_problem(engine: str, schema: JsonObject) -> None:
    assert engine_problem(ENGINES[engine], within(schema) | {"$defs": schema.get("$defs", {})}) is None


@looped(
    ("schema", "engines"),
    [
        ({"type": "number", "minimum": 0}, {"llamacpp", "tgi", "fireworks"}),
        ({"type": "integer", "minimum": 0, "maximum": 9}, {"tgi", "fireworks"}),
        ({"type": "object", "patternProperties": {"^a": STRING}}, {"llamacpp", "tgi", "fireworks"}),
        ({"type": "object", "maxProperties": 2}, {"llamacpp", "tgi", "fireworks"}),
        ({"type": "object", "minProperties": 0}, set()),
        ({"type": "array", "prefixItems": [STRING]}, {"fireworks"}),
        ({"type": "object", "unevaluatedProperties": False}, {"llamacpp", "tgi"}),
        ({"type": "string", "pattern": "^(?=a)b$"}, {"llamacpp", "fireworks"}),
        ({"type": "string", "pattern": "a"}, {"llamacpp"}),
    ],
)
def test_the_engines_differ(schema: JsonObject, engines: set[str]) -> None:
    assert {name for name, engine in ENGINES.items() if engine_problem(engine, within(schema))} == engines


@looped(
    ("schema", "problem"),
    [
        ({"type": "number", "minimum": 0}, ".minimum is only enforced with type integer"),
        ({"type": ["integer", "number"], "maximum": 0}, ".maximum is only enforced with type integer"),
        ({"minimum": 0}, ".minimum is only enforced with type integer"),
        ({"type": "integer", "minimum": 0.5}, ".minimum is only enforced with type integer"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": 3}, ".minimum is only enforced with type integer"),
        ({"type": ["integer", "null"], "exclusiveMinimum": 0, "maximum": 5}, None),
        ({"maxLength": 3}, ".maxLength is only enforced with type string"),
        ({"type": "string", "pattern": "^a$", "maxLength": 3}, ".maxLength is only enforced with type string"),
        ({"type": ["string", "null"], "minLength": 3}, None),
        ({"type": "array", "minItems": 3}, ".minItems is only enforced with items that are a schema"),
        ({"prefixItems": [STRING], "items": STRING}, ".items is not enforced beside prefixItems"),
        ({"prefixItems": [STRING], "minItems": 2}, ".minItems is only enforced with the number of positions"),
        ({"prefixItems": [STRING, STRING], "minItems": 2, "maxItems": 2}, None),
        ({"items": [STRING, STRING]}, None),
        (
            {"properties": {"b": STRING}, "required": ["c"]},
            ".required is only enforced for properties, and 'c' is not a property",
        ),
        ({"$ref": "#", "minLength": 3}, ".minLength is only enforced with type string"),
        ({"$ref": "#", "enum": ["a"]}, ".enum is not enforced beside $ref"),
        ({"anyOf": [STRING], "properties": {}}, ".properties is not enforced beside anyOf"),
        ({"type": "object", "oneOf": [STRING], "title": "t"}, None),
        ({"allOf": [{"properties": {}}, {"$ref": "#"}]}, None),
        ({"allOf": [{"enum": ["a"]}]}, None),
        ({"allOf": [STRING]}, ".allOf is only enforced with parts that have properties or an enum"),
        ({"allOf": [True]}, ".allOf is only enforced with parts that have properties or an enum"),
        ({"allOf": [{"$ref": "#/$defs/loop"}]}, ".allOf is only enforced with parts that have properties or an enum"),
        ({"properties": {}, "allOf": [{"properties": {}}]}, ".allOf is only enforced with parts"),
        ({"type": "integer", "allOf": [{"enum": [1]}]}, ".allOf is only enforced with parts"),
        ({"pattern": "^(a$"}, ".pattern is not enforced: it has an unbalanced '(' at position 1"),
        ({"type": "string", "pattern": "a"}, ".pattern is only enforced if it begins with '^' and ends with '$'"),
    ],
)
def test_llamacpp_keeps_some_keywords_in_some_places_only(schema: JsonObject, problem: str | None) -> None:
    found = engine_problem(LLAMACPP, {**within(schema), "$defs": {"loop": {"$ref": "#/$defs/loop"}}})
    if problem is None:
        assert found is None
    else:
        assert found is not None
        assert found.startswith(f"$.properties.a{problem}")
