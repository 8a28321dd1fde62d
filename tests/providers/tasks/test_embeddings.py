"""Requests for embeddings as values."""

from array import array

import pytest

from providers.tasks.embeddings import Embeddings, as_json
from tests.providers.tasks.kit import embed, embed_ids


def test_a_request_knows_whether_its_inputs_are_token_ids() -> None:
    assert embed("a").texts == ("a",)
    assert not embed("a").tokenized
    assert embed_ids((1, 2)).tokenized
    with pytest.raises(TypeError):
        _ = embed_ids((1, 2)).texts


def test_members_that_go_along_are_known_to_do_so() -> None:
    assert not embed().passes_unknown
    assert embed(unknown={"a": 1}).passes_unknown
    assert embed(extra_params={"a": 1}).passes_unknown
    assert embed(extra_headers={"a": "b"}).passes_unknown


def test_an_answer_counts_its_numbers() -> None:
    assert Embeddings((array("d", [1, 2]), array("f", [3, 4]))).numbers == 4


def test_inputs_are_not_copied_for_a_body() -> None:
    inputs = ("a", "b")
    shown: object = as_json(inputs)
    assert shown is inputs
