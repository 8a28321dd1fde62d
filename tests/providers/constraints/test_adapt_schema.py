"""Schemas in vendors' forms: narrowed if that is exact, otherwise weakened and reported, at a bounded cost for any
schema."""

from itertools import product

import orjson
from hypothesis import given
from hypothesis import strategies as st

from providers.constraints.adapt_schema import FittedSchema, count_limited, fit_schema
from providers.constraints.compiled_checks import schema_check
from providers.constraints.schema_rules import ANTHROPIC, AZURE, GEMINI, OPENAI, TOOL_RULES, SchemaRules
from providers.json_types import JsonObject, JsonValue
from tests.providers.constraints.pydantic_models import MODELS
from tests.support.cpu_growth import excess
from tests.support.looped import looped
from tests.support.nightly import some


def of_a(node: JsonValue, **more: JsonValue) -> JsonObject:
    return {"type": "object", "properties": {"a": node}, "required": ["a"], "additionalProperties": False, **more}


def test_a_schema_within_the_rules_is_the_clients_own_object() -> None:
    schema = of_a({"type": "string"})
    for rules in (OPENAI, AZURE, ANTHROPIC, GEMINI):
        assert fit_schema(schema, rules) == FittedSchema(schema, False)
        assert fit_schema(schema, rules).schema is schema


def test_the_clients_object_stays_as_it_is() -> None:
    schema = of_a({"type": "integer", "minimum": 1, "default": 2})
    written = orjson.dumps(schema)
    assert fit_schema(schema, AZURE).weakened
    assert orjson.dumps(schema) == written


def test_closing_and_requiring_weakens_nothing() -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "string", "default": "b"}}}
    told: JsonObject = {"type": "string", "description": '(default: "b")'}
    assert fit_schema(schema, OPENAI) == FittedSchema(of_a(told), False)


@looped("model", MODELS)
@looped("rules", TOOL_RULES)
def test_what_is_not_weakened_admits_no_more_than_the_model_and_what_is_admits_all_of_its_own(
    model: str, rules: str
) -> None:
    schema, good, bad = MODELS[model]
    fitted = fit_schema(schema, TOOL_RULES[rules])
    if fitted.schema is None:
        assert fitted.reason
        return
    takes = schema_check(fitted.schema)
    assert takes(good)
    assert fitted.weakened or not takes(bad)


@looped("model", MODELS)
@looped("rules", TOOL_RULES)
def test_a_fitted_schema_fits(model: str, rules: str) -> None:
    once = fit_schema(MODELS[model][0], TOOL_RULES[rules])
    if once.schema is not None:
        again = fit_schema(once.schema, TOOL_RULES[rules])
        assert (again.schema, again.weakened) == (once.schema, False)


def test_properties_beyond_those_that_may_be_absent_are_required_first_those_that_may_be_null() -> None:
    plain: JsonObject = {f"p{number}": {"type": "string"} for number in range(24)}
    nullable: JsonObject = {f"n{number}": {"type": ["string", "null"]} for number in range(3)}
    schema: JsonObject = {"type": "object", "properties": {**plain, **nullable}, "additionalProperties": False}
    fitted = fit_schema(schema, ANTHROPIC)
    assert fitted.schema is not None
    assert fitted.schema["required"] == ["n0", "n1", "n2"]
    assert count_limited(fitted.schema) == (24, 3)
    assert not fitted.weakened


def test_more_alternatives_than_a_vendor_takes_lose_their_null_where_they_may_be_absent() -> None:
    union: JsonObject = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    schema: JsonObject = {"type": "object", "properties": {f"n{number}": union for number in range(20)}}
    fitted = fit_schema(schema, ANTHROPIC)
    assert fitted.schema is not None
    assert count_limited(fitted.schema) == (20, 16)
    assert not fitted.weakened


# Hostile schemas -----------------------------------------------------------------------------------------------------

ALL = sorted(TOOL_RULES)


def doubling(steps: int) -> JsonObject:
    """Return definitions of which each refers twice to the next: 2 ** steps nodes if references are followed."""
    defs: JsonObject = {
        f"d{number}": of_a(
            {"$ref": f"#/$defs/d{number + 1}"},
            properties={"a": {"$ref": f"#/$defs/d{number + 1}"}, "b": {"$ref": f"#/$defs/d{number + 1}"}},
        )
        for number in range(steps)
    }
    return {**of_a({"$ref": "#/$defs/d0"}), "$defs": {**defs, f"d{steps}": {"type": "string"}}}


def nested(levels: int) -> JsonObject:
    schema: JsonObject = {"type": "string"}
    for _ in range(levels):
        schema = of_a(schema)
    return schema


def chain(length: int) -> JsonObject:
    defs: JsonObject = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(length)}
    return {**of_a({"$ref": "#/$defs/d0"}), "$defs": {**defs, f"d{length}": {"type": "string"}}}


def pointing(amount: int) -> JsonObject:
    """Return references to paths that are not definitions, each within the previous one."""
    deep = nested(60)
    path = "#"
    refs: JsonObject = {}
    for number in range(amount):
        path = f"#{'/properties/a' * (number % 60 + 1)}"
        refs[f"r{number}"] = {"$ref": path}
    properties = deep["properties"]
    assert isinstance(properties, dict)
    return {**deep, "properties": {**properties, **refs}}


def unions(amount: int) -> JsonObject:
    branches: list[JsonValue] = [of_a({"const": f"c{number}", "type": "string"}) for number in range(amount)]
    properties: JsonObject = {f"p{number}": {"oneOf": branches[:20]} for number in range(300)}
    return of_a({}, properties={"a": {"oneOf": branches}, **properties})


def merging(amount: int) -> JsonObject:
    parts: list[JsonValue] = [
        {"type": "object", "properties": {f"p{number}": {"type": "string"}}} for number in range(9)
    ]
    return of_a({"allOf": parts}, properties={f"p{number}": {"allOf": parts} for number in range(amount)})


def looping() -> JsonObject:
    return {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}


def wide(amount: int) -> JsonObject:
    return of_a({}, properties={f"p{number}": {"type": "string", "minLength": 1} for number in range(amount)})


HOSTILE: dict[str, JsonObject] = {
    "doubling": doubling(200),
    "nested": nested(100),
    "chain": chain(9000),
    "pointing": pointing(3000),
    "unions": unions(2000),
    "merging": merging(2000),
    "looping": looping(),
    "wide": wide(9000),
    "too_wide": wide(30_000),
    "a_megabyte": of_a({"type": "string", "description": "a" * 2**20}),
    "long_enum": of_a({"enum": [*range(100_000)]}),
    "catastrophic": of_a({"type": "string", "pattern": "(a+)+" * 500 + "$"}),
    "names": {"$defs": {f"a{'_2' * number}": {} for number in range(300)}, "definitions": {"a": {}}, **of_a({})},
}


@looped(("name", "rules"), some(list(product(HOSTILE, ALL)), 7))
def test_a_hostile_schema_costs_little_more_than_its_text(name: str, rules: str) -> None:
    schema = HOSTILE[name]
    size = len(orjson.dumps(schema))
    fits = []
    assert excess(lambda: fits.append(fit_schema(schema, TOOL_RULES[rules])), 300) == ""
    fitted = fits[0]
    if fitted.schema is not None:
        assert len(orjson.dumps(fitted.schema)) < 20 * size + 100_000


_NODES = st.recursive(
    st.sampled_from(
        [
            {"type": "string"},
            {"type": "integer", "minimum": 1},
            {"$ref": "#"},
            {"$ref": "#/$defs/d"},
            {"$ref": "#/properties/a"},
            {"const": 1},
            {"enum": ["a", None, [1]]},
            {},
            True,
            False,
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda node: {"type": "object", "properties": {"a": node}}, inner),
        st.builds(lambda node: {"type": "array", "items": node, "minItems": 2}, inner),
        st.builds(lambda nodes: {"type": "array", "prefixItems": nodes}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda nodes: {"anyOf": nodes}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda nodes: {"oneOf": nodes}, st.lists(inner, min_size=1, max_size=2)),
        st.builds(lambda nodes: {"allOf": nodes}, st.lists(inner, min_size=1, max_size=2)),
    ),
    max_leaves=8,
)


@given(_NODES, _NODES, st.sampled_from(ALL))
def test_any_schema_is_fitted_or_has_a_reason(node: JsonValue, definition: JsonValue, rules: str) -> None:
    schema: JsonObject = {"type": "object", "properties": {"a": node}, "$defs": {"d": definition}}
    fitted = fit_schema(schema, TOOL_RULES[rules])
    assert fitted.schema is not None or fitted.reason


def test_without_rules_everything_stays() -> None:
    assert fit_schema({"not": {}}, SchemaRules()) == FittedSchema({"not": {}}, False)
