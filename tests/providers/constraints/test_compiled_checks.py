"""Compiled checks: invalid schemas, and schemas that can be checked in bounded time."""

import subprocess
import sys

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.constraints.compiled_checks import Uncompilable, expression_check, first_invalid_keyword, schema_check
from providers.constraints.complexity_limits import MAX_SPREAD
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


LATEST = "https://json-schema.org/draft/2020-12/schema"
DRAFT_4, DRAFT_7 = (f"http://json-schema.org/draft-0{number}/schema#" for number in (4, 7))


@looped(
    ("schema", "path"),
    [
        ({"type": "strin"}, "$.type"),
        ({"properties": {"a": {"type": "strin"}}}, "$.properties.a.type"),
        ({"properties": {"a": {"items": {"anyOf": [{}, {"minimum": "1"}]}}}}, "$.properties.a.items.anyOf[1].minimum"),
        ({"$defs": {"d": {"required": "a"}}}, "$.$defs.d.required"),
        ({"properties": []}, "$.properties"),
        ({"properties": {"a": 1}}, "$.properties"),
        ({"$schema": LATEST, "items": [{}]}, "$.items"),
        ({"items": [{}], "minimum": "1"}, "$.minimum"),
        ({"anyOf": []}, "$.anyOf"),
        ({"$ref": 3}, "$.$ref"),
        ({"$schema": 3}, "$.$schema"),
        ({"$schema": DRAFT_7, "items": [{"type": "strin"}]}, "$.items[0].type"),
        ({"$schema": DRAFT_7, "dependencies": {"a": {"minLength": -1}}}, "$.dependencies.a.minLength"),
        ({"$schema": "https://example.com/own", "type": 1}, "$.type"),
        ({"exclusiveMinimum": True, "minimum": 1}, "$.exclusiveMinimum"),
        ({"$schema": DRAFT_7, "exclusiveMinimum": True, "minimum": 1}, "$.exclusiveMinimum"),
    ],
)
def test_the_first_keyword_that_json_schema_does_not_allow_is_named(schema: JsonObject, path: str) -> None:
    assert first_invalid_keyword(schema) == path


@looped(
    "schema",
    [
        {},
        {"type": ["object", "null"], "x-own": {"type": "strin"}, "default": {"type": "strin"}},
        {"$schema": DRAFT_7, "items": [{}], "definitions": {}},
        {"items": [{}], "additionalItems": False},
        {"$schema": DRAFT_4, "exclusiveMinimum": True, "minimum": 1},
        {"$schema": "https://example.com/own"},
        {"items": {"$schema": "https://example.com/own"}},
        {"$ref": "#/nowhere"},
    ],
)
def test_a_schema_by_its_own_draft_or_the_latest_fits(schema: JsonObject) -> None:
    assert first_invalid_keyword(schema) is None


def test_a_deep_and_wrong_schema_of_an_old_draft_is_named_at_once() -> None:
    schema: JsonObject = {"type": "strin"}
    for _ in range(60):
        schema = {"items": schema, "dependencies": {"a": {"anyOf": [{}, {}]}}}
    assert first_invalid_keyword({**schema, "$schema": DRAFT_7}) == "$" + ".items" * 60 + ".type"


@looped(
    ("schema", "good", "bad"),
    [
        ({"type": "integer", "minimum": 2}, 2, 1),
        ({"type": "string", "format": "email"}, "no address", 1),
        ({"pattern": "^(?=a)[a-c]+$"}, "abc", "bca"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "type": "array"}}}, [[], [[]]], [[1]]),
        ({"$schema": DRAFT_7, "items": [{"type": "null"}]}, [None, 1], [1]),
        ({"items": [{"type": "null"}]}, [None, 1], [1]),
        ({"$schema": "https://example.com/own", "prefixItems": [{"type": "null"}]}, [None, 1], [1]),
        ({"type": "object", "additionalProperties": False}, {}, {"a": 1}),
    ],
)
def test_a_check_tells_good_values_from_bad(schema: JsonObject, good: JsonValue, bad: JsonValue) -> None:
    keeps = schema_check(schema)
    assert (keeps(good), keeps(bad)) == (True, False)


@looped(
    "schema",
    [
        {"$ref": "https://example.com/s.json"},
        {"$ref": "#/$defs/none"},
        {"pattern": "("},
        {"type": "strin"},
        {"pattern": "(((a{1000}){1000}){1000})"},
    ],
)
def test_what_cannot_be_compiled_says_so_and_fetches_nothing(schema: JsonObject) -> None:
    with pytest.raises(Uncompilable):
        schema_check(schema)


def test_references_that_double_at_every_step_are_not_followed() -> None:
    chain: JsonObject = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(60)}
    with pytest.raises(Uncompilable, match=f"spreads over more than {MAX_SPREAD} parts"):
        schema_check({"$ref": "#/$defs/d0", "$defs": {**chain, "d60": {}}})


def test_branches_that_lead_back_are_met_once_for_each_value() -> None:
    # Four branches at each of fifty levels: 4 to the power of 50 visits for a validator without memoization.
    branches: list[JsonValue] = [
        {"type": "object", "properties": {"next": {"$ref": "#"}, "kind": {"const": kind}}} for kind in range(4)
    ]
    keeps = schema_check({"anyOf": [{"type": "null"}, *branches]})
    value: JsonValue = None
    for _ in range(50):
        value = {"next": value, "kind": 4}
    assert keeps(value) is False


def test_a_pattern_that_backtracks_ends() -> None:
    keeps = schema_check({"pattern": r"^(?=(a+)+$)(a+)+b|^(a+)+\3$"})
    assert keeps("a" * 3000 + "!") is False
    assert expression_check("^(?:(?:a{0,}){0,}b)$")("a" * 10_000) is False


def test_an_expression_too_large_is_refused() -> None:
    with pytest.raises(Uncompilable, match="is too large"):
        expression_check("^(?:(?:(?:a{1000}){1000}){1000})$")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
SCHEMAS = st.recursive(
    st.sampled_from(
        [
            {},
            {"type": "integer", "maximum": 1},
            {"type": ["string", "null"], "minLength": 1},
            {"enum": [1, "a", None]},
            {"const": []},
            {"type": "object", "required": ["a"]},
        ]
    ),
    lambda inner: st.one_of(
        st.builds(lambda a: {"type": "array", "items": a}, inner),
        st.builds(lambda a: {"properties": {"a": a}, "additionalProperties": False}, inner),
        st.builds(lambda a, b: {"anyOf": [a, b]}, inner, inner),
        st.builds(lambda a: {"not": a}, inner),
    ),
    max_leaves=4,
)


@given(SCHEMAS, VALUES)
def test_it_agrees_with_another_validator(schema: JsonObject, value: JsonValue) -> None:
    assert schema_check(schema)(value) == jsonschema.Draft202012Validator(schema).is_valid(value)


def test_the_library_is_loaded_only_when_a_check_is_made() -> None:
    script = "import sys, providers.emulation.check_answer, providers.constraints.compiled_checks as c; "
    script += "assert 'jsonschema_rs' not in sys.modules; "
    script += "c.schema_check({}); assert 'jsonschema_rs' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)
