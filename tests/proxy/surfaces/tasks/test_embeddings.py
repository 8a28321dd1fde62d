"""Embeddings as clients send them, each as its SDK does, and the responses that they read."""

import base64
import struct
from array import array
from dataclasses import replace

import orjson
import pytest

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest
from proxy.errors import GatewayError
from proxy.surfaces.surface import AnswerFacts
from proxy.surfaces.tasks.embeddings import MAX_INPUTS, parse_embeddings, render_embeddings
from tests.support.looped import looped

FACTS = AnswerFacts("1", 2, "v/m")
ANSWER = Embeddings([array("d", [0.25, -2.0]), array("f", [0.5, 1.0])], Usage(7, 0))


def parsed(**members: JsonValue) -> EmbeddingsRequest:
    return parse_embeddings(orjson.dumps({"model": "v/m", "input": "a", **members}))


def problem(**members: JsonValue) -> tuple[str | None, str]:
    with pytest.raises(GatewayError) as caught:
        parsed(**members)
    return caught.value.facts.param, caught.value.facts.code


def rendered(request: EmbeddingsRequest, answer: Embeddings = ANSWER) -> JsonObject:
    found: JsonObject = orjson.loads(render_embeddings(request, answer, FACTS))
    return found


@looped(
    ("value", "inputs"),
    [
        ("text", ("text",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([[1, 2], [3]], ((1, 2), (3,))),
    ],
)
def test_the_four_forms_of_input(value: JsonValue, inputs: object) -> None:
    assert parsed(input=value).inputs == inputs


@looped(
    "value",
    ["", [], [""], ["a", ""], ["a", 1], [1, "a"], [[1], "a"], [[]], [-1], [1.5], [True], [[1], [2.5]], {}, 7, [{}]],
)
def test_other_inputs_are_refused(value: JsonValue) -> None:
    param, code = problem(input=value)
    assert (param or "").partition(".")[0] == "input"
    assert code == "invalid_value"


@looped("value", [[1.0], [True], [{}]])
def test_inputs_of_other_kinds_are_told_what_there_is(value: JsonValue) -> None:
    with pytest.raises(GatewayError) as caught:
        parsed(input=value)
    assert caught.value.facts.problems[0].message.startswith("'input.0' must be a text or token ids")


def test_the_documented_bounds() -> None:
    assert len(parsed(input=["a"] * MAX_INPUTS).inputs) == 2048
    assert problem(input=["a"] * (MAX_INPUTS + 1))[0] == "input"
    assert problem(dimensions=0)[0] == "dimensions"
    assert problem(encoding_format="hex")[0] == "encoding_format"
    assert len(parsed(input=[5] * 8191).inputs[0]) == 8191


def test_what_is_missing_is_named() -> None:
    with pytest.raises(GatewayError) as caught:
        parse_embeddings(b"{}")
    assert [each.param for each in caught.value.facts.problems] == ["input", "model"]


def test_the_body_of_the_openai_sdk() -> None:
    request = parsed(input=["a"], encoding_format="base64", dimensions=64, user="u")
    assert request == EmbeddingsRequest("v/m", ("a",), base64=True, dimensions=64, user="u")


def test_the_body_of_voyage_s_sdk_whose_nulls_are_absent() -> None:
    request = parsed(
        input=["a"],
        input_type=None,
        truncation=True,
        output_dtype=None,
        output_dimension=None,
        encoding_format="base64",
    )
    assert request == EmbeddingsRequest("v/m", ("a",), base64=True, truncate="end")


@looped("field", ["input_type", "task", "task_type"])
@looped(
    ("word", "ours"),
    [
        ("query", "search_query"),
        ("RETRIEVAL_DOCUMENT", "search_document"),
        ("retrieval.passage", "search_document"),
        ("text-matching", "similarity"),
        ("SEMANTIC_SIMILARITY", "similarity"),
        ("separation", "clustering"),
        ("classification", "classification"),
        ("Own.Word", "Own.Word"),
    ],
)
def test_the_use_is_told_in_any_vendor_s_words(field: str, word: str, ours: str) -> None:
    assert parsed(**{field: word}).input_type == ours


@looped(
    ("name", "neutral", "other"),
    [
        ("output_dtype", "float", "int8"),
        ("embedding_types", ["float"], ["binary"]),
        ("embedding_type", "float", "ubinary"),
        ("embed_dtype", "float32", "float16"),
        ("endianness", "little", "big"),
    ],
)
def test_vectors_of_other_numbers_than_floats_cannot_be_carried(
    name: str, neutral: JsonValue, other: JsonValue
) -> None:
    assert parsed(**{name: neutral}).unknown is None
    assert problem(**{name: other}) == (name, "unsupported_parameter")
    assert problem(inference_extra_params={name: other}) == (name, "unsupported_parameter")


def test_numbers_are_written_as_numbers() -> None:
    assert rendered(parsed()) == {
        "id": "embd-1",
        "object": "list",
        "data": [
            {"object": "embedding", "index": 0, "embedding": [0.25, -2.0]},
            {"object": "embedding", "index": 1, "embedding": [0.5, 1.0]},
        ],
        "model": "v/m",
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }


def test_the_vendor_s_own_members_stay_but_for_those_that_are_written() -> None:
    answer = replace(ANSWER, own={"id": "v1", "created": 5, "object": "x", "data": 1}, details={"image_tokens": 2})
    body = rendered(parsed(), answer)
    assert (body["id"], body["created"], body["object"]) == ("v1", 5, "list")
    assert body["usage"] == {"prompt_tokens": 7, "total_tokens": 7, "image_tokens": 2}


def test_base64_is_written_whatever_the_vendor_answered() -> None:
    data = rendered(parsed(encoding_format="base64"))["data"]
    assert isinstance(data, list)
    texts = [entry["embedding"] for entry in data if isinstance(entry, dict)]
    assert [struct.unpack("<2f", base64.b64decode(str(text))) for text in texts] == [(0.25, -2.0), (0.5, 1.0)]


def test_an_estimate_says_so() -> None:
    usage = rendered(parsed(), Embeddings([array("d", [1.0])], Usage(7, 0, estimated=True)))["usage"]
    assert usage == {"prompt_tokens": 7, "total_tokens": 7, "estimated": True}


def test_a_request_without_a_model_goes_to_the_task_s_own() -> None:
    assert parse_embeddings(b'{"input": "a"}', "v/own").model == "v/own"
    assert parse_embeddings(b'{"input": "a", "model": "v/m"}', "v/own").model == "v/m"
