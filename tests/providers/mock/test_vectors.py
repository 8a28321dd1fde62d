"""The mock's vectors and rankings: equal for equal texts, close for texts that share words."""

import base64
import struct
from math import isclose
from typing import cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.mock.server import respond
from providers.mock.vectors import DIMENSIONS, MAX_INPUTS, is_task, task_body, task_model
from tests.providers.mock.kit import refused
from tests.support.looped import looped


def ask(path: str, **members: JsonValue) -> JsonObject:
    model, body = task_model(path, orjson.dumps({"model": "m", **members}))
    return cast(JsonObject, orjson.loads(task_body(path, model, body)))


def vectors(**members: JsonValue) -> list[list[float]]:
    return [entry["embedding"] for entry in cast("list[dict[str, list[float]]]", ask("/embeddings", **members)["data"])]


def _near(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_a_vector_depends_on_its_text_alone_and_has_length_one() -> None:
    (alone,) = vectors(input="red cars")
    _, second = vectors(input=["blue", "red cars"])
    assert alone == second
    assert len(alone) == DIMENSIONS
    assert isclose(_near(alone, alone), 1.0, abs_tol=1e-5)


def test_texts_that_share_words_are_nearer() -> None:
    query, same, other = vectors(input=["fast red cars", "Red cars are fast", "the sky is blue"])
    assert _near(query, same) > 0.5 > _near(query, other)


def test_token_ids_are_words_too() -> None:
    assert len(vectors(input=[1, 2])) == 1
    assert len(vectors(input=[[1, 2], [3]], dimensions=8)[0]) == 8


def test_base64_holds_the_same_numbers() -> None:
    (plain,) = vectors(input="a b", dimensions=4)
    (entry,) = cast(
        "list[dict[str, str]]", ask("/embeddings", input="a b", dimensions=4, encoding_format="base64")["data"]
    )
    found = struct.unpack("<4f", base64.b64decode(entry["embedding"]))
    assert all(isclose(a, b, abs_tol=1e-6) for a, b in zip(plain, found, strict=True))


def test_a_ranking_puts_what_shares_words_first() -> None:
    body = ask("/rerank", query="red cars", documents=["blue sky", "fast red cars"], top_n=1)
    (best,) = cast("list[JsonObject]", body["results"])
    assert best["index"] == 1


@looped(
    "members",
    [
        {"input": []},
        {"input": ""},
        {"input": ["a"] * (MAX_INPUTS + 1)},
        {"input": [[]]},
        {"input": {}},
        {"input": "a", "dimensions": 0},
        {"input": "a", "encoding_format": "hex"},
        {"input": "a", "odd": 1},
        {"input": "a", "model": ""},
    ],
)
def test_the_mock_is_strict(members: dict[str, JsonValue]) -> None:
    assert refused(ask, "/embeddings", **members)[0] == 400


@looped("members", [{}, {"query": "a"}, {"documents": ["a"]}, {"query": "a", "documents": ["a"] * 1001}])
def test_a_ranking_needs_a_query_and_documents(members: dict[str, JsonValue]) -> None:
    assert refused(ask, "/rerank", **members)[0] == 400


@pytest.mark.parametrize("body", [b"[]", b"{"])
def test_what_is_no_object_is_refused(body: bytes) -> None:
    assert refused(task_model, "/embeddings", body)[0] == 400


def test_only_its_own_paths_are_tasks() -> None:
    assert is_task("/rerank")
    assert not is_task("/completions")


@looped(
    ("model", "status", "whole"),
    [("echo", 200, True), ("error-429", 429, True), ("malformed", 200, False), ("cut-1", 200, False)],
)
def test_a_model_s_name_says_how_it_fails(model: str, status: int, whole: bool) -> None:
    found = respond("/embeddings", orjson.dumps({"model": model, "input": "a"}))
    data = b"".join(piece.data for piece in found.chunks)
    assert found.status == status
    if whole:
        assert orjson.loads(data)
    else:
        with pytest.raises(orjson.JSONDecodeError):
            orjson.loads(data)


def test_an_error_with_status_200_and_an_overflow() -> None:
    odd = respond("/embeddings", orjson.dumps({"model": "midstream-error-1", "input": "a"}))
    assert odd.status == 200
    assert b'"error"' in b"".join(piece.data for piece in odd.chunks)
    assert respond("/rerank", orjson.dumps({"model": "overflow", "input": "a"})).status == 400
