"""Schemas within schemas: paths, references, patterns, and the number of evaluations that a validator needs."""

from hypothesis import given
from hypothesis import strategies as st

from providers.constraints.complexity_limits import (
    MAX_CHAIN,
    MAX_PATTERN,
    MAX_PATTERNS,
    MAX_RANGES,
    MAX_SCHEMAS,
    MAX_SPREAD,
)
from providers.constraints.json_schema import (
    References,
    count_evaluations,
    longest_chain,
    object_subschemas,
    required_names,
    resolve_pointer,
    schema_problem,
    walk_schemas,
)
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped

STRING: JsonObject = {"type": "string"}


def test_every_schema_within_a_schema_has_its_path_and_what_is_data_has_none() -> None:
    schema: JsonObject = {
        "properties": {"a": STRING, "$ref": STRING, "b": True},
        "patternProperties": {"^x": STRING},
        "$defs": {"d": {"items": {"anyOf": [STRING, False, STRING]}}},
        "items": [STRING],
        "not": STRING,
        "dependencies": {"a": ["b"], "b": STRING},
        "enum": [{"items": STRING}],
        "default": {"not": STRING},
        "x-note": {"not": STRING},
        "required": ["a"],
    }
    assert [path for path, _ in walk_schemas(schema)] == [
        "$",
        "$.properties.a",
        "$.properties.$ref",
        "$.patternProperties.^x",
        "$.$defs.d",
        "$.$defs.d.items",
        "$.$defs.d.items.anyOf[0]",
        "$.$defs.d.items.anyOf[2]",
        "$.items[0]",
        "$.not",
        "$.dependencies.b",
    ]


def test_a_long_name_is_shortened_in_a_path() -> None:
    assert [path for path, _ in object_subschemas({"properties": {"n" * 100: {}}}, "$")] == [
        f"$.properties.{'n' * 64}..."
    ]


@looped(
    ("reference", "found"),
    [
        ("#", ...),
        ("#/$defs/a", STRING),
        ("#/$defs/a~1b~0", {"const": 1}),
        ("#/$defs/a%20b", {"const": 2}),
        ("#/anyOf/1", True),
        ("#/$defs", ...),
        ("#/anyOf/2", None),
        ("#/anyOf/x", None),
        ("#/anyOf/-1", None),
        ("#/type/0", None),
        ("#/$defs/none", None),
        ("#name", None),
        ("other.json#/$defs/a", None),
        (3, None),
        (None, None),
    ],
)
def test_a_pointer_leads_to_its_place_or_nowhere(reference: JsonValue, found: object) -> None:
    definitions: JsonObject = {"a": STRING, "a/b~": {"const": 1}, "a b": {"const": 2}}
    root: JsonObject = {"type": "object", "$defs": definitions, "anyOf": [STRING, True]}
    if found is ...:
        found = root if reference == "#" else definitions
    assert resolve_pointer(root, reference) == found


@looped(
    ("schema", "problem"),
    [
        ({"$ref": "https://example.com/s.json"}, "$.$ref refers to another document"),
        ({"items": {"$ref": "other.json#/a"}}, "$.items.$ref refers to another document"),
        ({"items": {"$dynamicRef": "other.json#a"}}, "$.items.$dynamicRef refers to another document"),
        ({"not": {"$recursiveRef": "other.json"}}, "$.not.$recursiveRef refers to another document"),
        ({"$id": "https://example.com/a", "$ref": "b"}, "$.$ref refers to another document"),
        (
            {"properties": {"a": {"$id": "b", "$ref": "#/$defs/c"}}, "$defs": {"c": {}}},
            "$.properties.a.$id gives a part of the schema an address of its own",
        ),
        ({"properties": {"a": {"$ref": "#/$defs/a"}}}, "$.properties.a.$ref leads nowhere within the schema"),
        ({"anyOf": [{}, {"$ref": "#a"}]}, "$.anyOf[1].$ref leads nowhere within the schema"),
        ({"$ref": "#/type", "type": "object"}, "$.$ref leads nowhere within the schema"),
        ({"$ref": "#/components/a", "components": {"a": {"$ref": "x"}}}, "$.$ref.$ref refers to another document"),
        ({"items": {"pattern": "("}}, "$.items.pattern has an unbalanced '(' at position 0"),
        ({"patternProperties": {"[": {}}}, "$.patternProperties has a class without an end at position 1"),
    ],
)
def test_what_makes_a_schema_unusable_is_named_with_its_path(schema: JsonObject, problem: str) -> None:
    assert schema_problem(schema) == problem


@looped(
    "schema",
    [
        {},
        {"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}},
        {"enum": [{"$ref": "https://example.com"}], "default": {"$ref": "x"}, "const": {"$id": "y"}},
        {"$id": "https://example.com/a", "$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#"}}}},
        {"$ref": "#name", "$defs": {"a": {"$anchor": "name"}}},
        {"$dynamicRef": "#name", "$defs": {"a": {"$dynamicAnchor": "name"}}},
        {"$recursiveRef": "#"},
        {"$ref": "#old", "definitions": {"a": {"$id": "#old"}}},
        {
            "$ref": "#/components/schemas/a",
            "components": {"schemas": {"a": {"$ref": "#/components/schemas/b"}, "b": True}},
        },
        {"pattern": "(?=a)b"},
    ],
)
def test_a_schema_that_stays_within_itself_has_no_problem(schema: JsonObject) -> None:
    assert schema_problem(schema) is None


def doubling(steps: int) -> JsonObject:
    """Return definitions of which each refers twice to the next."""
    chain: JsonObject = {f"d{at}": {"allOf": [{"$ref": f"#/$defs/d{at + 1}"}] * 2} for at in range(steps)}
    return {"$ref": "#/$defs/d0", "$defs": {**chain, f"d{steps}": STRING}}


def test_a_schema_spreads_as_far_as_its_references_multiply() -> None:
    assert count_evaluations(STRING) == 1
    assert count_evaluations({"properties": {"a": STRING, "b": {"items": STRING}}}) == 4
    assert count_evaluations({"$defs": {"unused": {"items": STRING}}}) == 1
    assert count_evaluations(doubling(3)) == 1 + (1 + 2) + 2 * (1 + 2) + 4 * (1 + 2) + 8
    assert count_evaluations(doubling(60)) == MAX_SPREAD + 1


def test_a_schema_that_leads_back_to_itself_is_counted_once_around() -> None:
    assert count_evaluations({"items": {"$ref": "#"}}) == 3
    loop: JsonObject = {"a": {"items": {"$ref": "#/$defs/b"}}, "b": {"not": {"$ref": "#/$defs/a"}}}
    assert count_evaluations({"$ref": "#/$defs/a", "$defs": loop}) < 10


def test_a_chain_of_references_has_an_end() -> None:
    chain: JsonObject = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(5000)}
    schema: JsonObject = {"$ref": "#/$defs/d0", "$defs": {**chain, "d5000": STRING}}
    assert count_evaluations(schema) == longest_chain(References(schema)) == 5002
    assert schema_problem(schema) == f"it applies more than {MAX_CHAIN} schemas in a row to one value"


@given(
    st.recursive(
        st.one_of(
            st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.sampled_from(["#", "#/items", "#a"])
        ),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(
                st.sampled_from(["properties", "items", "anyOf", "$ref", "$defs", "$id", "$anchor", "pattern", "not"]),
                inner,
                max_size=4,
            ),
        ),
    )
)
def test_no_value_breaks_the_walk(value: JsonValue) -> None:
    schema: JsonObject = {"items": value, "anyOf": [value, {"$ref": "#/items"}]}
    assert isinstance(schema_problem(schema), str | None)
    assert 1 <= count_evaluations(schema) <= MAX_SPREAD + 1


def named_steps(count: int, keyword: str = "$anchor", reference: str = "$ref") -> JsonObject:
    """Return definitions of which each refers twice to the next, by name."""
    steps: JsonObject = {
        f"d{at}": {keyword: f"a{at}", "allOf": [{reference: f"#a{at + 1}"}, {reference: f"#a{at + 1}"}]}
        for at in range(count)
    }
    return {"$ref": "#a0", "$defs": {**steps, "last": {keyword: f"a{count}", "type": "string"}}}


@looped("keyword", ["$anchor", "$dynamicAnchor"])
@looped("reference", ["$ref", "$dynamicRef", "$recursiveRef"])
def test_names_are_followed_wherever_references_are_counted(keyword: str, reference: str) -> None:
    schema = named_steps(60, keyword, reference)
    assert schema_problem(schema) is None
    assert count_evaluations(schema) == MAX_SPREAD + 1
    assert longest_chain(References(schema)) == 1 + 2 * 60 + 1


def test_a_chain_through_names_is_refused_before_it_reaches_a_native_stack() -> None:
    links: JsonObject = {f"d{at}": {"$anchor": f"a{at}", "anyOf": [{"$ref": f"#a{at + 1}"}]} for at in range(1000)}
    schema: JsonObject = {"$ref": "#a0", "$defs": {**links, "end": {"$anchor": "a1000", "items": {"$ref": "#a0"}}}}
    assert schema_problem(schema) == f"it applies more than {MAX_CHAIN} schemas in a row to one value"


def test_a_chain_counts_only_what_applies_to_the_same_value() -> None:
    nested: JsonObject = {"type": "string"}
    for _ in range(30):
        nested = {"properties": {"a": nested}, "items": nested}
    assert longest_chain(References(nested)) == 1
    assert longest_chain(References({"not": {"anyOf": [{"$ref": "#/$defs/a"}, {}]}, "$defs": {"a": {"if": {}}}})) == 5
    assert longest_chain(References({"anyOf": [{"$ref": "#"}]})) == 3


def test_a_name_that_two_parts_have_is_refused() -> None:
    schema: JsonObject = {"$defs": {"a": {"$anchor": "x"}, "b": {"$dynamicAnchor": "x"}}}
    assert schema_problem(schema) == "$.$defs.b has the same name as another part"


def test_more_schemas_or_longer_patterns_than_the_budget_are_refused_by_path() -> None:
    many: JsonObject = {"properties": {f"p{at}": {} for at in range(MAX_SCHEMAS)}}
    assert schema_problem(many) == f"$.properties.p{MAX_SCHEMAS - 1} brings it to more than {MAX_SCHEMAS} schemas"
    long: JsonObject = {"properties": {f"p{at}": {"pattern": "a" * MAX_PATTERN} for at in range(5)}}
    assert schema_problem(long) == (
        f"$.properties.p4.pattern brings the patterns to more than {MAX_PATTERNS} characters together"
    )
    crowded: JsonObject = {"pattern": "".join(f"[\\d{chr(0x4E00 + at)}]" for at in range(200))}
    assert schema_problem(crowded) == (
        f"$.pattern has bracketed classes of more than {MAX_RANGES} ranges of characters together"
    )


def test_the_same_brackets_are_paid_for_once() -> None:
    assert schema_problem({"properties": {f"p{at}": {"pattern": r"[\d.]+[^\s,]*" * 20} for at in range(60)}}) is None


def test_the_names_in_required_are_its_strings() -> None:
    assert required_names({"required": ["a", 1, "b"]}) == {"a", "b"}
    assert required_names({"required": True}) == required_names({}) == set()
