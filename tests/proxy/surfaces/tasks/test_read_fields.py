"""The body of a task's request: nulls, other names, every problem at once, and bounds."""

import orjson
import pytest

from providers.json_types import JsonValue
from proxy.errors import GatewayError
from proxy.surfaces.request.rule_kinds import integer
from proxy.surfaces.tasks.read_fields import MAX_TASK_ELEMENTS, TaskFields, read_fields, truncation
from tests.support.looped import looped

CHECKS = {"size": integer(1)}
ALIASES = {"length": "size", "truncation": "truncate"}


def read(**members: JsonValue) -> TaskFields:
    return read_fields(orjson.dumps(members), CHECKS, ALIASES)


def test_null_is_absent_and_two_names_of_one_field_must_agree() -> None:
    fields = read(model="m", size=None, truncation=None, odd=None, user=None)
    assert fields.values == {"model": "m"}
    assert fields.unknown == {}
    assert read(length=3).get("size", int) == 3
    assert read(length=3, size=3).problems == []
    (problem,) = read(length=3, size=4).problems
    assert problem.code == "conflicting_parameters"


def test_what_is_not_known_is_kept_unless_the_gateway_decides_it_or_it_asks_for_nothing() -> None:
    assert read(odd={"a": 1}).unknown == {"odd": {"a": 1}}
    (problem,) = read(n=2).problems
    assert problem.param == "n"
    fields = read(stream=False, n=1, echo=False, stop=[], top_p=1, presence_penalty=0)
    assert (fields.unknown, fields.problems) == ({}, [])


def test_a_stream_is_refused_with_the_reason() -> None:
    (problem,) = read(stream=True).problems
    assert (problem.param, problem.code) == ("stream", "unsupported_parameter")
    assert "cannot be streamed" in problem.message
    assert read(stream="no").problems[0].param == "stream"


def test_every_problem_is_found() -> None:
    fields = read(size=0, user=3, inference_timeout=-1)
    fields.required("model", str, "")
    with pytest.raises(GatewayError) as caught:
        fields.end()
    assert [problem.param for problem in caught.value.facts.problems] == ["size", "user", "inference_timeout", "model"]


@looped("name", ["o/x\n", "o/x\r\ny", "o/\tx", "o/\0", " o/x", "o/" + "x" * 255, ""])
def test_a_model_s_name_is_short_and_printable(name: str) -> None:
    fields = read(model=name)
    assert [problem.param for problem in fields.problems] == ["model"]
    assert "model" not in fields.values


def test_a_field_that_is_invalid_is_not_missing_too() -> None:
    fields = read(model=3)
    fields.required("model", str, "")
    assert len(fields.problems) == 1


@looped(("value", "cut"), [(True, "end"), (False, "none"), ("NONE", "none"), ("start", "start"), ("End", "end")])
def test_a_cut_is_a_switch_or_one_of_cohere_s_words(value: JsonValue, cut: str) -> None:
    assert truncation(value) == cut
    assert read(truncation=value).truncate == cut


@looped("value", ["middle", 1, ["END"]])
def test_another_cut_is_a_problem(value: JsonValue) -> None:
    assert read(truncate=value).problems


def test_a_body_may_hold_openai_s_three_hundred_thousand_token_ids_and_not_any_number() -> None:
    assert MAX_TASK_ELEMENTS > 300_000 + 2 * 2048
    ids = b'{"odd":[' + b"1," * 300_000 + b"1]}"
    assert len(read_fields(ids, CHECKS, ALIASES).unknown) == 1
    with pytest.raises(GatewayError, match="invalid_value"):
        read_fields(b'{"odd":[' + b"1," * 400_000 + b"1]}", CHECKS, ALIASES)


@looped("body", [b"", b"[]", b"null", b"{", b'{"model":"a","model":"b"}'])
def test_what_is_no_plain_object_is_refused(body: bytes) -> None:
    with pytest.raises(GatewayError):
        read_fields(body, CHECKS, ALIASES)
