"""Responses checked against the request's constraint."""

import re

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from providers.completion import Chunk, ToolCallDelta
from providers.constraints.constraint_styles import Unenforceable
from providers.emulation.check_answer import (
    AnswerCheck,
    CheckKind,
    FinishedTexts,
    Verifier,
    compile_check,
    required_check,
)
from providers.json_types import JsonObject
from providers.unified_request import Guided, Params
from tests.providers.patterns import patterns, strange, texts
from tests.support.looped import looped

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0}},
    "required": ["a"],
    "additionalProperties": False,
}
NAMED: JsonObject = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
NOT_JSON, BROKEN = "it is not JSON", "it does not satisfy the schema"
OTHER, NO_MATCH, NO_OBJECT = "it is none of the choices", "it does not match the pattern", "it is not a JSON object"
PHONE = Guided("regex", r"\d{3}-\d{4}")


def constraint_params(guided: Guided | None = None, response_format: JsonObject | None = None) -> Params:
    params = Params()
    if guided is not None:
        params["guided"] = guided
    if response_format is not None:
        params["response_format"] = response_format
    return params


def verify_of(params: Params) -> Verifier:
    """Return the compiled check that the parameters require."""
    check = required_check(params)
    assert check is not None
    return compile_check(check)


@looped("params", [constraint_params(Guided("json", SCHEMA)), constraint_params(response_format=NAMED)])
@looped(
    ("text", "reason"),
    [
        ('{"a":1}', None),
        (' {\n "a": 1 }\n', None),
        ('{"a":1.0}', None),
        ('{"a":-1}', BROKEN),
        ('{"a":1,"b":2}', BROKEN),
        ("{}", BROKEN),
        ("3", BROKEN),
        ("", NOT_JSON),
        ('{"a":1', NOT_JSON),
        ('{"a":1} and more', NOT_JSON),
        ('```json\n{"a":1}\n```', NOT_JSON),
        ("[" * 5000, NOT_JSON),
        ('{"a":NaN}', NOT_JSON),
    ],
)
def test_an_answer_is_held_against_the_schema(params: Params, text: str, reason: str | None) -> None:
    verify = verify_of(params)
    assert verify(text) == reason


@looped(
    ("params", "text", "reason"),
    [
        (constraint_params(Guided("choice", ("yes", "no"))), "yes", None),
        (constraint_params(Guided("choice", ("yes", "no"))), "yes ", OTHER),
        (constraint_params(Guided("choice", ("yes", "no"))), "", OTHER),
        (constraint_params(PHONE), "555-0123", None),
        (constraint_params(PHONE), "555-0123\n", NO_MATCH),
        (constraint_params(PHONE), "call 555-0123", NO_MATCH),
        (constraint_params(Guided("regex", "^a|b$")), "ab", NO_MATCH),
        (constraint_params(Guided("regex", r"\w+ \w+")), "José García", None),
        (constraint_params(Guided("regex", r"\w+ \w+")), "José, García", NO_MATCH),
        (constraint_params(Guided("regex", ".*")), "a\nb", None),
        (constraint_params(Guided("regex", "(a*)*b")), "a" * 50_000, NO_MATCH),
        (constraint_params(response_format={"type": "json_object"}), '{"a":[]}', None),
        (constraint_params(response_format={"type": "json_object"}), "[]", NO_OBJECT),
        (constraint_params(response_format={"type": "json_object"}), "sorry", NOT_JSON),
        (constraint_params(response_format={"type": "json_object", "schema": SCHEMA}), '{"a":-1}', BROKEN),
        (constraint_params(response_format={"type": "json_schema", "json_schema": {"name": "n"}}), "[1]", None),
        (constraint_params(response_format={"type": "json_schema", "json_schema": {"name": "n"}}), "sorry", NOT_JSON),
    ],
)
def test_an_answer_is_held_against_other_constraints(params: Params, text: str, reason: str | None) -> None:
    verify = verify_of(params)
    assert verify(text) == reason


@looped(
    "params",
    [
        constraint_params(),
        constraint_params(Guided("grammar", 'root ::= "a"')),
        constraint_params(response_format={"type": "text"}),
        constraint_params(response_format={"type": "grammar", "grammar": "g"}),
        constraint_params(response_format={"type": "structural_tag"}),
    ],
)
def test_what_cannot_be_checked_has_no_verifier(params: Params) -> None:
    assert required_check(params) is None


@looped(
    ("params", "reason"),
    [
        (constraint_params(Guided("regex", r"\bword")), "since the pattern uses a word boundary at position 0"),
        (constraint_params(Guided("regex", "(")), r"since the pattern has an unbalanced '\(' at position 0"),
        (constraint_params(Guided("regex", "((a{900}){900}){900}")), "since the pattern is too large to be checked"),
        (
            constraint_params(Guided("regex", r"[^\x00-\U0010FFFF]")),
            "since the pattern has a class without a character",
        ),
        (constraint_params(Guided("json", {"$ref": "#/$defs/none"})), "since the schema cannot be compiled"),
        (constraint_params(Guided("json", {"pattern": "("})), "since the schema cannot be compiled"),
    ],
)
def test_a_constraint_that_no_answer_can_be_held_against_is_unenforceable(params: Params, reason: str) -> None:
    for _ in range(2):
        with pytest.raises(Unenforceable, match=reason):
            verify_of(params)


def test_the_same_schema_is_the_same_check_whatever_its_order() -> None:
    again: JsonObject = dict(reversed(SCHEMA.items()))
    assert required_check(constraint_params(Guided("json", SCHEMA))) == required_check(
        constraint_params(Guided("json", again))
    )


def test_a_huge_schema_is_not_checked() -> None:
    with pytest.raises(Unenforceable, match="since the schema is larger than 1048576 bytes"):
        required_check(constraint_params(Guided("json", {"description": "x" * (1 << 20)})))


def test_only_checks_whose_cost_the_text_bounds_are_brief() -> None:
    word = AnswerCheck("guided_choice", CheckKind.CHOICE, choices=frozenset("a"))
    plain = AnswerCheck("response_format", CheckKind.OBJECT)
    assert word.brief("a" * 10_000_000)
    assert (plain.brief("{}"), plain.brief(" " * 100_000)) == (True, False)
    assert not any(AnswerCheck("f", kind).brief("") for kind in (CheckKind.SCHEMA, CheckKind.PATTERN))


def test_an_answer_nested_beyond_what_the_native_stack_holds_keeps_no_schema() -> None:
    verify = verify_of(constraint_params(Guided("json", {"type": "array", "items": {"$ref": "#"}})))
    assert verify("[" * 200 + "]" * 200) is None
    assert verify("[" * 201 + "]" * 201) == BROKEN


@given(patterns, texts)
@example("(a?){2}b", "aab")
def test_a_pattern_is_kept_exactly_where_python_finds_a_full_match(pattern: str, text: str) -> None:
    verify = verify_of(constraint_params(Guided("regex", pattern)))
    assert (verify(text) is None) == bool(re.fullmatch(pattern, text))


@given(patterns, strange)
@example(r"\w", "é")
@example(r"\W", "„")
def test_beyond_ascii_what_python_matches_is_never_faulted(pattern: str, text: str) -> None:
    verify = verify_of(constraint_params(Guided("regex", pattern)))
    assert verify(text) is None or not re.fullmatch(pattern, text)


@given(st.lists(st.text(max_size=3), min_size=1, unique=True), st.text(max_size=3))
def test_a_choice_is_kept_by_its_members(choices: list[str], text: str) -> None:
    verify = verify_of(constraint_params(Guided("choice", tuple(choices))))
    assert (verify(text) is None) == (text in choices)


@given(st.text())
def test_no_reason_holds_any_of_the_text(text: str) -> None:
    for params in (
        constraint_params(Guided("json", SCHEMA)),
        constraint_params(PHONE),
        constraint_params(Guided("choice", ("a",))),
    ):
        verify = verify_of(params)
        assert verify(f"{text}#") in {NOT_JSON, NO_MATCH, OTHER}


def test_json_is_read_as_the_rest_of_the_gateway_reads_it() -> None:
    verify = verify_of(constraint_params(Guided("json", {"type": "string"})))
    assert verify(orjson.dumps("é\u2028").decode()) is None


# Finished texts ----- -------------------------------------------------------------------------------------------------


def test_a_text_is_whole_at_the_end_of_its_choice_in_any_pieces() -> None:
    texts = FinishedTexts()
    chunks = [Chunk(text="a"), Chunk(1, "x"), Chunk(text=""), Chunk(text="b"), Chunk(finish_reason="stop")]
    assert [texts.add(chunk) for chunk in chunks] == [None, None, None, None, "ab"]
    assert texts.add(Chunk(1, "y", "stop")) == "xy"


@looped(
    "last",
    [
        Chunk(text="x", finish_reason="length"),
        Chunk(text="x", finish_reason="content_filter"),
        Chunk(text="x", finish_reason="tool_calls"),
        Chunk(text="no", finish_reason="stop", refusal="no"),
        Chunk(text="x", finish_reason="stop", matched_stop="END"),
    ],
)
def test_a_text_that_was_cut_or_refused_promises_nothing(last: Chunk) -> None:
    assert FinishedTexts().add(last) is None


def test_a_refusal_that_was_streamed_before_the_end_is_one_too() -> None:
    texts = FinishedTexts()
    assert [texts.add(Chunk(text="no", refusal="no")), texts.add(Chunk(finish_reason="stop"))] == [None, None]


def test_a_text_beside_a_call_of_a_tool_is_no_answer_in_any_choice_but_its_own() -> None:
    texts = FinishedTexts()
    call = Chunk(text="Let me see.", tool_calls=(ToolCallDelta(0, "c", "f", "{}"),))
    chunks = [call, Chunk(1, "x"), Chunk(finish_reason="stop"), Chunk(1, "y", "stop")]
    assert [texts.add(chunk) for chunk in chunks] == [None, None, None, "xy"]


def test_a_token_that_ends_the_text_is_an_end_like_any_other() -> None:
    assert FinishedTexts().add(Chunk(text="x", finish_reason="stop", matched_stop=128009)) == "x"
