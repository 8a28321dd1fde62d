"""References of a schema: alone, to the root's definitions, and followed only as long as they resolve."""

from functools import partial

import orjson
import pytest

from providers.constraints.fit_references import (
    MAX_HOPS,
    MAX_INLINED,
    MAX_MOVED,
    Unfittable,
    child_parts,
    fit_references,
    follow,
    has_cycle,
    inline_definitions,
    is_finite,
    lift_root,
    needs_itself,
    reachable,
)
from providers.constraints.json_schema import References
from providers.constraints.schema_rules import ANTHROPIC, COHERE, OPENAI, SchemaRules
from providers.json_types import JsonObject, JsonValue
from tests.support.cpu_growth import growth
from tests.support.looped import looped
from tests.support.nightly import some

TEXT: JsonObject = {"type": "string"}


RANGE = range(MAX_MOVED + 1)


def defs_of(name: str, node: JsonObject) -> JsonObject:
    return {"$defs": {name: node}}


def of(properties: JsonObject, **more: JsonValue) -> JsonObject:
    return {"type": "object", "properties": properties, **more}


def fitted(schema: JsonObject, rules: SchemaRules) -> tuple[JsonObject, bool]:
    weaker = fit_references(References(schema), rules)
    return schema, weaker


def test_definitions_are_reached_by_reference_only() -> None:
    schema: JsonObject = {**of({"a": {"$ref": "#/$defs/x"}}), "$defs": {"x": TEXT, "unused": {}}}
    assert [node for _, node in reachable(References(schema))] == [schema, {"$ref": "#/$defs/x"}, TEXT]
    assert [path for path, _ in child_parts(References(schema), schema)] == [".properties.a"]


def test_a_reference_at_the_root_gives_way_to_its_target() -> None:
    schema: JsonObject = {"$ref": "#/$defs/x", "$defs": {"x": of({"a": TEXT})}}
    lift_root(References(schema))
    assert schema == {**of({"a": TEXT}), "$defs": {"x": of({"a": TEXT})}}


def test_old_definitions_and_other_places_move_to_the_new_name() -> None:
    schema = of(
        {"a": {"$ref": "#/definitions/x"}, "b": {"$ref": "#/properties/c"}, "c": TEXT},
        definitions={"x": {"enum": ["a"]}},
    )
    properties: JsonObject = {"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/part_1"}, "c": TEXT}
    defs: JsonObject = {"$defs": {"x": {"enum": ["a"]}, "part_1": TEXT}}
    assert fitted(schema, OPENAI) == (of(properties, **defs), False)


def test_what_stands_beside_a_reference_goes_around_it_or_away() -> None:
    defs: JsonObject = {"$defs": {"x": TEXT}}
    noted: JsonObject = {"$ref": "#/$defs/x", "description": "A text."}
    around: JsonObject = {"anyOf": [{"$ref": "#/$defs/x"}], "description": "A text."}
    assert fitted(of({"a": dict(noted)}, **defs), OPENAI) == (of({"a": around}, **defs), False)
    alone = of({"a": {"$ref": "#/$defs/x"}}, **defs)
    assert fitted(of({"a": dict(noted)}, **defs), ANTHROPIC) == (alone, False)
    assert fitted(of({"a": {"$ref": "#/$defs/x", "minLength": 1}}, **defs), ANTHROPIC) == (alone, True)


def test_vendors_that_follow_every_reference_get_them_as_they_are() -> None:
    schema = of({"b": {"$ref": "#/properties/c", "minLength": 1}, "c": TEXT})
    assert fitted(schema, COHERE) == (schema, False)


@looped(
    "schema",
    [
        of({"a": {"$ref": "#/nowhere"}}),
        of({"a": {"$ref": "https://a.example/schema"}}),
        of({"a": {"$dynamicRef": "#x"}}),
        of({**{f"a{at}": {"$ref": f"#/properties/b{at}"} for at in RANGE}, **{f"b{at}": dict(TEXT) for at in RANGE}}),
    ],
)
def test_a_reference_that_cannot_be_written_has_no_form(schema: JsonObject) -> None:
    with pytest.raises(Unfittable):
        fitted(schema, OPENAI)


def test_a_chain_of_references_is_followed_a_few_steps() -> None:
    defs: JsonObject = {f"x{number}": {"$ref": f"#/$defs/x{number + 1}"} for number in range(MAX_HOPS)}
    references = References({"$defs": {**defs, f"x{MAX_HOPS}": TEXT}})
    assert follow(references, {"$ref": "#/$defs/x2"}) == TEXT
    with pytest.raises(Unfittable):
        follow(references, {"$ref": "#/$defs/x0"})
    with pytest.raises(Unfittable):
        follow(references, {"$ref": "#/$defs/none"})


NODE: JsonObject = {"$ref": "#"}


@looped(
    ("schema", "cyclic", "endless"),
    [
        (of({"a": TEXT}), False, False),
        (of({"a": {"$ref": "#/$defs/x"}, "b": {"$ref": "#/$defs/x"}}, **defs_of("x", TEXT)), False, False),
        (of({"a": NODE}), True, False),
        ({**of({"a": NODE}), "required": ["a"]}, True, True),
        ({**of({"a": {"anyOf": [NODE, {"type": "null"}]}}), "required": ["a"]}, True, True),
    ],
)
def test_a_schema_that_leads_back_to_itself_is_found(schema: JsonObject, cyclic: bool, endless: bool) -> None:
    assert has_cycle(References(schema)) is cyclic
    assert needs_itself(References(schema)) is endless


@looped(
    ("schema", "finite"),
    [
        (of({"a": TEXT}), True),
        (of({"a": NODE}), False),
        (of({"a": {"anyOf": [NODE, {"type": "null"}]}}), True),
        (of({"a": {"type": "array", "items": NODE}}), True),
        (of({"a": {"type": "array", "items": NODE, "minItems": 1}}), False),
    ],
)
def test_alternatives_and_empty_arrays_end_a_schema_that_needs_itself(schema: JsonObject, finite: bool) -> None:
    assert is_finite(References(schema)) is finite


REF_D: JsonObject = {"$ref": "#/$defs/d"}
DEFS_TWICE: JsonObject = {"$defs": {"d": {"anyOf": [{"$ref": "#/$defs/e"}]}, "e": TEXT}}
NUMBER: JsonObject = of({"n": {"type": "integer"}})


@looped(
    ("schema", "written_out"),
    [
        (of({"a": REF_D}, **defs_of("d", NUMBER)), of({"a": NUMBER})),
        (of({"a": {**REF_D, "description": "A"}}, **defs_of("d", NUMBER)), of({"a": {**NUMBER, "description": "A"}})),
        (
            of({"a": {**REF_D, "type": "object"}}, **defs_of("d", NUMBER)),
            of({"a": {"type": "object", "allOf": [NUMBER]}}),
        ),
        (
            of({"a": {"type": "array", "items": REF_D}}, **DEFS_TWICE),
            of({"a": {"type": "array", "items": {"anyOf": [TEXT]}}}),
        ),
        (of({"a": {"$ref": "#/definitions/d"}}, definitions={"d": TEXT, "unused": REF_D}), of({"a": TEXT})),
        ({**REF_D, **defs_of("d", NUMBER)}, NUMBER),
        (of({"a": TEXT, "b": {"$ref": "#/properties/a"}}), of({"a": TEXT, "b": TEXT})),
        (of({"$ref": TEXT, "c": {"const": REF_D}}, **defs_of("d", TEXT)), of({"$ref": TEXT, "c": {"const": REF_D}})),
    ],
)
def test_what_references_lead_to_is_written_in_their_places(schema: JsonObject, written_out: JsonObject) -> None:
    before = orjson.dumps(schema)
    assert inline_definitions(schema) == written_out
    assert orjson.dumps(schema) == before


def test_a_schema_without_references_is_the_clients_object() -> None:
    assert inline_definitions(NUMBER) is NUMBER


@looped(
    "schema",
    [
        of({"a": REF_D}, **defs_of("d", of({"next": REF_D}))),
        of({"a": {"$ref": "#"}}),
        of({"a": {"$ref": "#/$defs/none"}}),
        of({"a": {"$ref": "https://example.org/a"}}),
        of({"a": REF_D}, **defs_of("d", {"type": "string", "description": "d" * MAX_INLINED})),
    ],
)
def test_what_leads_back_or_nowhere_or_is_large_is_not_written_out(schema: JsonObject) -> None:
    assert inline_definitions(schema) is None


def test_references_that_double_at_each_step_cost_no_more_than_their_text() -> None:
    def doubling(steps: int) -> JsonObject:
        chain: JsonObject = {
            f"d{number}": of({"a": {"$ref": f"#/$defs/d{number + 1}"}, "b": {"$ref": f"#/$defs/d{number + 1}"}})
            for number in range(steps)
        }
        return of({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": {**chain, f"d{steps}": TEXT}})

    small, large = doubling(250), doubling(1000)
    assert inline_definitions(large) is None
    assert growth(partial(inline_definitions, small), partial(inline_definitions, large)) == ""


def test_what_would_be_nested_too_deeply_is_not_written_out() -> None:
    chain: JsonObject = {f"d{number}": {"items": {"$ref": f"#/$defs/d{number + 1}"}} for number in range(2000)}
    assert inline_definitions(of({"a": {"$ref": "#/$defs/d0"}}, **{"$defs": {**chain, "d2000": TEXT}})) is None
    deep: JsonObject = TEXT
    for _ in range(2000):
        deep = {"items": deep}
    assert inline_definitions(deep) is None


def test_what_is_written_out_is_no_larger_than_the_bound() -> None:
    wide: JsonObject = {f"p{number}": REF_D for number in range(3000)}
    for length in some((56, 45, 55, 57, 58, 60), 3):
        made = inline_definitions(of(wide, **defs_of("d", {"type": "string", "description": "d" * length})))
        assert made is None or len(orjson.dumps(made)) <= MAX_INLINED
