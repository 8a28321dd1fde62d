"""Splitting inputs by the vendor's limits, and joining the results."""

import random
from array import array

import pytest

from providers.completion import Usage
from providers.failure import UpstreamError
from providers.profile import TaskWire
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest
from providers.tasks.split_inputs import join_parts, split_inputs
from tests.providers.kit import failure_of
from tests.providers.tasks.kit import embed, embed_ids
from tests.support.looped import looped


def _wire(most: int | None = None, most_tokens: int | None = None) -> TaskWire:
    return TaskWire("/e", "openai", most, most_tokens, frozenset(), {})


def _sizes(request: EmbeddingsRequest, wire: TaskWire, most: int = 1000) -> list[int]:
    return [len(part) for part in split_inputs(request, wire, most)]


def test_inputs_are_split_by_their_number() -> None:
    assert _sizes(embed(*"abcdefg"), _wire(3)) == [3, 3, 1]
    assert _sizes(embed(*"abcdefg"), _wire(None), 4) == [4, 3]
    assert _sizes(embed(*"abcdefg"), _wire(None)) == [7]


def test_token_ids_are_split_by_their_sum() -> None:
    assert _sizes(embed_ids((1,) * 6, (2,) * 5, (3,) * 5, (4,)), _wire(10, 10)) == [1, 2, 1]


def test_texts_are_split_by_an_estimate_that_is_rather_too_high() -> None:
    words = "word " * 100
    assert _sizes(embed(words, words, words), _wire(10, 400)) == [2, 1]
    assert _sizes(embed("漢" * 100, "漢" * 100), _wire(10, 160)) == [1, 1]


def test_an_input_that_is_too_long_by_itself_is_a_call_of_its_own() -> None:
    assert _sizes(embed("a", "b" * 10_000, "c"), _wire(10, 100)) == [1, 1, 1]


def test_a_list_whose_vectors_depend_on_each_other_is_never_split() -> None:
    assert _sizes(embed(*"abcdefg", unknown={"late_chunking": True}), _wire(3)) == [7]
    assert _sizes(embed(*"abcdefg", unknown={"late_chunking": False}), _wire(3)) == [3, 3, 1]


@looped("seed", range(60))
def test_whatever_the_limits_are_every_vector_comes_back_at_its_place(seed: int) -> None:
    draw = random.Random(seed)
    inputs = tuple("x" * draw.randint(1, 400) for _ in range(draw.randint(1, 60)))
    most, most_tokens = draw.choice([None, 1, 3, 17]), draw.choice([None, 40, 200, 10_000])
    request = embed(*inputs)
    parts = split_inputs(request, _wire(most, most_tokens), draw.choice([2, 500]))
    assert tuple(text for part in parts for text in part) == inputs
    assert all(parts)
    for part in parts:
        assert most is None or len(part) <= most
        assert most_tokens is None or len(part) == 1 or sum(len(text) // 3 + 1 for text in part) <= most_tokens
    answers = [
        Embeddings([array("d", [float(len(text)), 1.0]) for text in part], Usage(sum(map(len, part)), 0))
        for part in parts
    ]
    joined = join_parts(request, [len(part) for part in parts], answers)
    assert [vector[0] for vector in joined.vectors] == [len(text) for text in inputs]
    assert joined.usage == Usage(sum(map(len, inputs)), 0)


def _part(*lengths: int, usage: Usage | None = None) -> Embeddings:
    return Embeddings([array("d", [1.0] * length) for length in lengths], usage)


@looped(
    ("parts", "said"),
    [
        ([_part(2), _part(2)], "1 vectors for 2 inputs"),
        ([_part(2, 2, 2), _part(2)], "3 vectors for 2 inputs"),
        ([_part(2, 3), _part(2)], "different lengths"),
        ([_part(2, 2), _part(3)], "different lengths"),
    ],
)
def test_answers_that_do_not_fit_the_inputs_are_no_answer(parts: list[Embeddings], said: str) -> None:
    assert said in failure_of(join_parts, embed("a", "b", "c"), [2, 1], parts).message


def test_vectors_of_another_length_than_asked_for_are_no_answer() -> None:
    with pytest.raises(UpstreamError):
        join_parts(embed("a", dimensions=3), [1], [_part(2)])
    assert join_parts(embed("a", dimensions=2), [1], [_part(2)]).numbers == 2


def test_too_many_numbers_together_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("providers.tasks.split_inputs.MOST_NUMBERS", 3)
    with pytest.raises(UpstreamError):
        join_parts(embed("a", "b"), [1, 1], [_part(2), _part(2)])


def test_a_usage_that_one_call_does_not_tell_is_estimated_for_that_call() -> None:
    request = embed("12345678", "1234", "ü" * 4)
    joined = join_parts(request, [1, 2], [_part(1, usage=Usage(100, 0)), _part(1, 1)])
    assert joined.usage == Usage(100 + 1 + 2, 0, estimated=True)
    counted = join_parts(embed_ids((1, 2, 3)), [1], [_part(1)])
    assert counted.usage == Usage(3, 0, estimated=True)
