"""Constraints in every vendor's own form: exact fields, refusals, escaping."""

import re
from collections.abc import Mapping

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.capabilities import NATIVE, Cell, emulated, refused
from providers.constraints.constraint_styles import (
    BY_PROMPT,
    IN_PROMPT_ONLY,
    LOOSELY,
    ConstraintFields,
    Unenforceable,
    choice_grammar,
    choice_regex,
    choice_schema,
    constraint_cells,
    constraint_fields,
    json_schema_format,
    unwrap_choice,
)
from providers.constraints.style_table import STYLES
from providers.json_types import JsonObject
from providers.unified_request import Guided, Operation
from tests.providers.gbnf import unescaped
from tests.support.looped import looped

CHAT, COMPLETIONS = Operation.CHAT, Operation.COMPLETIONS
SCHEMA: JsonObject = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
LOOSE: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}
JSON, REGEX = Guided("json", SCHEMA), Guided("regex", "a+")
CHOICE, GRAMMAR = Guided("choice", ("a", "b")), Guided("grammar", 'root ::= "a"')
STRICT: JsonObject = {"response_format": json_schema_format(SCHEMA, strict=True)}
WRAPPED: JsonObject = {"response_format": json_schema_format(choice_schema(("a", "b")), strict=True)}
NAMED: JsonObject = {"type": "json_schema", "json_schema": {"name": "guided_json", "schema": SCHEMA}}
GBNF = 'root ::= "a" | "b"'

# The fields for json, regex, choice and grammar; `None` if the style cannot enforce the constraint.
Row = tuple[JsonObject | None, JsonObject | None, JsonObject | None, JsonObject | None]
SAME: Row = (
    {"guided_json": SCHEMA},
    {"guided_regex": "a+"},
    {"guided_choice": ["a", "b"]},
    {"guided_grammar": GRAMMAR.value_text},
)
NEWER: Row = (
    {"structured_outputs": {"json": SCHEMA}},
    {"structured_outputs": {"regex": "a+"}},
    {"structured_outputs": {"choice": ["a", "b"]}},
    {"structured_outputs": {"grammar": GRAMMAR.value_text}},
)
NIM: Row = (
    {"nvext": {"guided_json": SCHEMA}},
    {"nvext": {"guided_regex": "a+"}},
    {"nvext": {"guided_choice": ["a", "b"]}},
    {"nvext": {"guided_grammar": GRAMMAR.value_text}},
)
BOTH: Row = (
    STRICT,
    {"structured_outputs": {"regex": "a+"}, "guided_regex": "a+"},
    {"structured_outputs": {"choice": ["a", "b"]}, "guided_choice": ["a", "b"]},
    {"structured_outputs": {"grammar": GRAMMAR.value_text}, "guided_grammar": GRAMMAR.value_text},
)
LLAMACPP: Row = (
    {"json_schema": SCHEMA},
    {"grammar": "root ::= [a]+"},
    {"grammar": GBNF},
    {"grammar": GRAMMAR.value_text},
)
FIREWORKS: Row = (
    {"response_format": NAMED},
    {"response_format": {"type": "grammar", "grammar": "root ::= [a]+"}},
    {"response_format": {"type": "grammar", "grammar": GBNF}},
    {"response_format": {"type": "grammar", "grammar": GRAMMAR.value_text}},
)
SGLANG: Row = (STRICT, {"regex": "a+"}, {"regex": "(a|b)"}, {"ebnf": GRAMMAR.value_text})
SGLANG_TEXT: Row = ({"json_schema": orjson.dumps(SCHEMA).decode()}, *SGLANG[1:])
NOTHING: Row = (None, None, None, None)
SCHEMAS: Row = (STRICT, None, WRAPPED, None)
LOOSELY_WRAPPED: JsonObject = {"response_format": json_schema_format(choice_schema(("a", "b")), strict=False)}
UNHELD: Row = ({"response_format": json_schema_format(SCHEMA, strict=False)}, None, LOOSELY_WRAPPED, None)
TGI: Row = (
    {"response_format": {"type": "json", "value": SCHEMA}},
    {"response_format": {"type": "regex", "value": "a+"}},
    {"response_format": {"type": "regex", "value": "(a|b)"}},
    None,
)
WRAPPED_BY_MODE: JsonObject = {"response_format": {"type": "json_object", "schema": choice_schema(("a", "b"))}}
BY_MODE: Row = ({"response_format": {"type": "json_object", "schema": SCHEMA}}, None, WRAPPED_BY_MODE, None)
LOCALAI: Row = (STRICT, *LLAMACPP[1:])
TABLE: Mapping[str, tuple[Row, Row]] = {
    "guided": (SAME, SAME),
    "structured_outputs": (NEWER, NEWER),
    "vllm_both": (BOTH, BOTH),
    "nvext": (NIM, NIM),
    "sglang": (SGLANG, SGLANG_TEXT),
    "llamacpp": (LLAMACPP, LLAMACPP),
    "ollama": (SCHEMAS, SCHEMAS),
    "fireworks": (FIREWORKS, FIREWORKS),
    "tgi": (TGI, NOTHING),
    "openai": (SCHEMAS, NOTHING),
    "azure": (SCHEMAS, NOTHING),
    "json_schema": (SCHEMAS, SCHEMAS),
    "strict": (SCHEMAS, SCHEMAS),
    "best_effort": (UNHELD, UNHELD),
    "schema_only": (SCHEMAS, SCHEMAS),
    "schema_in_mode": (BY_MODE, BY_MODE),
    "localai": (LOCALAI, LOCALAI),
    "json_object_only": (({}, None, {}, None), NOTHING),
    "none": (NOTHING, NOTHING),
}
CELLS = [
    (style, operation, guided, members)
    for style, rows in TABLE.items()
    for operation, row in zip((CHAT, COMPLETIONS), rows, strict=True)
    for guided, members in zip((JSON, REGEX, CHOICE, GRAMMAR), row, strict=True)
]
OBJECT: JsonObject = {"type": "json_object"}
WITH_SCHEMA: JsonObject = {"type": "json_object", "schema": SCHEMA}
OWN: JsonObject = {"type": "json_schema", "json_schema": {"name": "mine", "schema": LOOSE, "strict": False}}
ANY_OBJECT: JsonObject = {"type": "object"}


def members_of(style: str, value: object, operation: Operation) -> ConstraintFields:
    return constraint_fields(STYLES[style][operation], value)


def test_the_table_has_every_style() -> None:
    assert set(TABLE) == set(STYLES)


@looped(("style", "operation", "guided", "members"), CELLS)
def test_a_constraint_has_the_styles_members_or_is_refused(
    style: str, operation: Operation, guided: Guided, members: JsonObject | None
) -> None:
    if members is None:
        with pytest.raises(Unenforceable, match=r"^it"):
            members_of(style, guided, operation)
    else:
        assert members_of(style, guided, operation).fields == members


EMULATED: Mapping[str, Mapping[str, Cell]] = {
    "guided_choice": {
        **dict.fromkeys(("sglang", "tgi"), emulated("a regular expression")),
        **dict.fromkeys(("llamacpp", "localai", "fireworks"), emulated("a grammar")),
        **dict.fromkeys(
            ("openai", "azure", "json_schema", "strict", "best_effort", "schema_only", "schema_in_mode", "ollama"),
            emulated("a JSON object with one enum property"),
        ),
        "json_object_only": BY_PROMPT,
    },
    "guided_json": {"best_effort": LOOSELY, "json_object_only": BY_PROMPT},
    "guided_regex": dict.fromkeys(("llamacpp", "localai", "fireworks"), emulated("a grammar")),
}


@looped(("style", "operation", "guided", "members"), CELLS)
def test_what_is_said_of_a_constraint_is_what_is_done(
    style: str, operation: Operation, guided: Guided, members: JsonObject | None
) -> None:
    held = constraint_cells(STYLES[style][operation])[guided.field]
    if members is None:
        with pytest.raises(Unenforceable) as caught:
            members_of(style, guided, operation)
        assert held == refused(caught.value.reason)
        return
    made = members_of(style, guided, operation)
    assert held == EMULATED.get(guided.field, {}).get(style, NATIVE)
    assert made.emulated == held.emulated
    assert made.unwrap == (members in (WRAPPED, WRAPPED_BY_MODE, LOOSELY_WRAPPED))


FORMATS: Mapping[str, JsonObject] = {
    "response_format.json_object": {"type": "json_object"},
    "response_format.json_schema": NAMED,
    "response_format.grammar": {"type": "grammar", "grammar": 'root ::= "a"'},
    "response_format.structural_tag": {"type": "structural_tag", "structures": []},
}


@looped("kind", FORMATS)
@looped("operation", Operation)
@looped("style", STYLES)
def test_what_is_said_of_a_response_format_is_what_is_done(style: str, operation: Operation, kind: str) -> None:
    held = constraint_cells(STYLES[style][operation])[kind]
    if held.refused:
        with pytest.raises(Unenforceable) as caught:
            members_of(style, FORMATS[kind], operation)
        assert held.how == caught.value.reason
    else:
        told = (style, kind.partition(".")[2]) in (("json_object_only", "json_schema"), ("tgi", "json_object"))
        loosely = style == "best_effort" and kind == "response_format.json_schema"
        assert held == (BY_PROMPT if told else LOOSELY if loosely else NATIVE)
        # Without `strict` the format promises nothing that the gateway would have to take over.
        assert members_of(style, FORMATS[kind], operation).emulated == told


def test_every_kind_of_constraint_is_told_of() -> None:
    told = {frozenset(constraint_cells(STYLES[style][operation])) for style in STYLES for operation in Operation}
    assert told == {frozenset({*(f"guided_{kind}" for kind in ("json", "regex", "choice", "grammar")), *FORMATS})}


def passed(value: JsonObject) -> JsonObject:
    return {"response_format": value}


@looped(
    ("style", "operation", "value", "members"),
    [
        *[(style, operation, {"type": "text"}, {}) for style in STYLES for operation in Operation],
        *[(style, CHAT, OWN, passed(OWN)) for style in ("openai", "json_schema", "schema_only", "sglang", "vllm_both")],
        *[(style, CHAT, OBJECT, passed(OBJECT)) for style in ("openai", "json_object_only", "llamacpp", "guided")],
        ("vllm_both", COMPLETIONS, OWN, passed(OWN)),
        ("vllm_both", COMPLETIONS, OBJECT, passed(OBJECT)),
        ("fireworks", COMPLETIONS, OBJECT, passed(OBJECT)),
        ("fireworks", CHAT, WITH_SCHEMA, passed(WITH_SCHEMA)),
        ("fireworks", CHAT, {"type": "grammar", "grammar": "g"}, passed({"type": "grammar", "grammar": "g"})),
        ("vllm_both", CHAT, {"type": "structural_tag", "x": 1}, passed({"type": "structural_tag", "x": 1})),
        ("openai", CHAT, WITH_SCHEMA, STRICT),
        ("json_schema", COMPLETIONS, WITH_SCHEMA, STRICT),
        ("llamacpp", CHAT, WITH_SCHEMA, passed(WITH_SCHEMA)),
        ("llamacpp", COMPLETIONS, OBJECT, {"json_schema": ANY_OBJECT}),
        ("llamacpp", COMPLETIONS, OWN, {"json_schema": LOOSE}),
        ("llamacpp", COMPLETIONS, WITH_SCHEMA, {"json_schema": SCHEMA}),
        ("llamacpp", CHAT, {"type": "grammar", "grammar": "g"}, {"grammar": "g"}),
        ("sglang", COMPLETIONS, OBJECT, {"json_schema": '{"type":"object"}'}),
        ("sglang", COMPLETIONS, {"type": "grammar", "grammar": "g"}, {"ebnf": "g"}),
        ("schema_only", CHAT, OBJECT, passed(json_schema_format(ANY_OBJECT, strict=True))),
        ("schema_in_mode", CHAT, OWN, passed({"type": "json_object", "schema": LOOSE})),
        ("schema_in_mode", CHAT, WITH_SCHEMA, passed(WITH_SCHEMA)),
        ("schema_in_mode", CHAT, OBJECT, passed(OBJECT)),
        ("localai", CHAT, OWN, passed(OWN)),
        ("tgi", CHAT, OWN, passed({"type": "json", "value": LOOSE})),
        ("nvext", CHAT, OWN, {"nvext": {"guided_json": LOOSE}}),
        ("nvext", COMPLETIONS, OBJECT, {"nvext": {"guided_json": ANY_OBJECT}}),
        ("nvext", CHAT, {"type": "grammar", "grammar": "g"}, {"nvext": {"guided_grammar": "g"}}),
    ],
)
def test_a_response_format_has_the_styles_form(
    style: str, operation: Operation, value: JsonObject, members: JsonObject
) -> None:
    assert members_of(style, value, operation) == ConstraintFields(members)


@looped(
    ("style", "operation", "value"),
    [
        ("openai", COMPLETIONS, OBJECT),
        ("openai", COMPLETIONS, OWN),
        ("openai", CHAT, {"type": "grammar", "grammar": "g"}),
        ("openai", CHAT, {"type": "structural_tag"}),
        ("json_object_only", COMPLETIONS, OWN),
        ("json_object_only", COMPLETIONS, WITH_SCHEMA),
        ("json_object_only", CHAT, {"type": "json_schema", "json_schema": {"name": "no schema"}}),
        ("tgi", COMPLETIONS, OWN),
        ("none", CHAT, OBJECT),
        ("llamacpp", COMPLETIONS, {"type": "json_schema", "json_schema": {"name": "no schema"}}),
        ("llamacpp", CHAT, {"type": "structural_tag"}),
        ("vllm_both", CHAT, {}),
    ],
)
def test_a_response_format_that_cannot_be_held_is_refused(style: str, operation: Operation, value: JsonObject) -> None:
    with pytest.raises(Unenforceable):
        members_of(style, value, operation)


def test_a_choice_beyond_the_strict_mode_is_refused() -> None:
    with pytest.raises(Unenforceable, match="its strict mode refuses this schema"):
        members_of("openai", Guided("choice", tuple(map(str, range(1001)))), CHAT)


def test_a_schema_is_narrowed_to_the_strict_mode_unless_the_client_wants_no_promise() -> None:
    narrowed: JsonObject = {**LOOSE, "additionalProperties": False, "required": ["a"]}
    made = members_of("openai", Guided("json", LOOSE), CHAT)
    assert made.fields == {"response_format": json_schema_format(narrowed, strict=True)}
    assert not made.unenforced
    strict: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": LOOSE, "strict": True}}
    assert members_of("openai", strict, CHAT).fields == passed(
        {"type": "json_schema", "json_schema": {"name": "n", "schema": narrowed, "strict": True}}
    )
    assert members_of("openai", OWN, CHAT).fields == passed(OWN)


def test_a_map_goes_to_openai_without_the_strict_mode_and_the_answer_is_checked() -> None:
    mapped: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}
    made = members_of("openai", Guided("json", mapped), CHAT)
    assert made.fields == {"response_format": json_schema_format(mapped, strict=False)}
    assert made.unenforced
    assert members_of("openai", Guided("json", {"type": "array"}), CHAT) == IN_PROMPT_ONLY


@pytest.mark.parametrize("operation", Operation)
def test_a_schema_is_narrowed_wherever_the_strict_mode_demands_it(operation: Operation) -> None:
    made = members_of("strict", Guided("json", LOOSE), operation)
    narrowed: JsonObject = {**LOOSE, "additionalProperties": False, "required": ["a"]}
    assert made == ConstraintFields({"response_format": json_schema_format(narrowed, strict=True)})
    mapped: JsonObject = {"type": "object", "additionalProperties": {"type": "integer"}}
    loose = json_schema_format(mapped, strict=False)
    assert members_of("strict", Guided("json", mapped), operation) == ConstraintFields(
        {"response_format": loose}, unenforced=True
    )


def test_a_model_that_is_not_held_to_a_schema_never_gets_a_strict_one_and_its_answer_is_checked() -> None:
    strict: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": LOOSE, "strict": True}}
    loose: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": LOOSE, "strict": False}}
    for value in (Guided("json", LOOSE), Guided("choice", ("a",)), strict):
        made = members_of("best_effort", value, CHAT)
        assert made.unenforced
        assert made.emulated
        assert b'"strict":false' in orjson.dumps(made.fields)
    assert members_of("best_effort", strict, CHAT).fields == passed(loose)
    assert members_of("best_effort", loose, CHAT) == ConstraintFields(passed(loose))


COUNTED: JsonObject = {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 2}}}


@looped("style", ["sglang", "llamacpp", "ollama", "fireworks", "tgi"])
def test_what_an_engine_would_pass_over_is_told_and_checked_whichever_way_the_schema_comes(style: str) -> None:
    named: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": COUNTED}}
    mode: JsonObject = {"type": "json_object", "schema": COUNTED}
    for value in (Guided("json", COUNTED), named, mode):
        made = members_of(style, value, CHAT)
        assert made.unenforced
        written = orjson.dumps(made.fields)
        assert b'"multipleOf"' not in written
        assert b"(multipleOf: 2)" in written


@looped(
    ("pattern", "reason"),
    [
        (r"\bx", r"as a grammar the pattern uses a word boundary at position 0"),
        ("(", r"as a grammar the pattern has an unbalanced '\(' at position 0"),
        ("a{3000}", r"as a grammar the pattern counts more than 2000 repetitions"),
    ],
)
def test_a_pattern_that_no_grammar_stands_for_is_refused_by_construct_and_position(pattern: str, reason: str) -> None:
    for style in ("llamacpp", "fireworks"):
        with pytest.raises(Unenforceable, match=reason):
            members_of(style, Guided("regex", pattern), CHAT)


choices = st.lists(st.text(st.characters(codec="utf-8"), min_size=1), min_size=1, max_size=6, unique=True)


@given(choices, st.text(max_size=5))
def test_the_expression_of_a_choice_matches_the_choices_and_nothing_else(words: list[str], other: str) -> None:
    pattern = re.compile(choice_regex(words))
    assert all(pattern.fullmatch(word) for word in words)
    assert bool(pattern.fullmatch(other)) == (other in words)


@given(choices)
def test_a_backslash_stands_only_before_what_every_engine_lets_it(words: list[str]) -> None:
    escaped = re.findall(r"\\(.)", choice_regex(words), re.DOTALL)
    assert set(escaped) <= set("\\.+*?()|[]{}^$nrt")


@given(choices)
def test_the_literals_of_a_grammar_read_back_as_the_choices(words: list[str]) -> None:
    grammar = choice_grammar(words)
    assert grammar.startswith("root ::= ")
    literals = re.findall(r'"((?:[^"\\]|\\.)*)"', grammar)
    assert [unescaped(literal) for literal in literals] == words
    assert grammar.isprintable()


@given(st.text(st.characters(codec="utf-8")))
def test_a_choice_comes_out_of_the_object_that_held_it(choice: str) -> None:
    assert unwrap_choice(orjson.dumps({"choice": choice}).decode()) == choice


@looped("text", ["", "{", "[]", "{}", '{"choice": 1}', '"a"', "sorry"])
def test_what_holds_no_choice_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        unwrap_choice(text)


def test_a_constraint_of_another_kind_than_it_says_is_a_mistake_of_ours() -> None:
    for wrong in (Guided("json", "x"), Guided("choice", "x"), Guided("regex", ("x",))):
        with pytest.raises(TypeError):
            members_of("llamacpp", wrong, COMPLETIONS)
