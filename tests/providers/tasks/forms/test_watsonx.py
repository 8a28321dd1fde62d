"""watsonx.ai's embeddings and rankings."""

import pytest

from providers.completion import Usage
from providers.failure import UpstreamError
from tests.providers.tasks.kit import answered, at, body_of, embed, numbers, places, rank, ranked, url_of

HOST = "https://us-south.ml.cloud.ibm.com"
VECTORS = (
    b'{"model_id":"ibm/slate","created_at":"2026-11-01T00:00:00Z","results":[{"embedding":[-0.0053,0.1]},'
    b'{"embedding":[0.2,0.3]}],"input_token_count":10}'
)
SCORES = (
    b'{"model_id":"m","results":[{"index":0,"score":-2.5},{"index":1,"score":1.5},{"index":2,"score":0.5}],'
    b'"input_token_count":20}'
)


@pytest.mark.parametrize(("base", "member"), [(f"{HOST}/projects/p", "project_id"), (f"{HOST}/spaces/p", "space_id")])
def test_calls_belong_to_a_project_or_a_space(base: str, member: str) -> None:
    target = at("watsonx", "ibm/slate", base_url=base)
    assert body_of(embed("a"), target) == {"model_id": "ibm/slate", member: "p", "inputs": ["a"]}
    assert url_of(embed("a"), target) == f"{HOST}/ml/v1/text/embeddings?version=2025-10-01"


def test_without_either_the_service_answers_for_it() -> None:
    assert body_of(embed("a"), at("watsonx", base_url=HOST)) == {"model_id": "tiny", "inputs": ["a"]}


def test_vectors_and_tokens_are_read() -> None:
    answer = answered(embed("a", "b"), at("watsonx", base_url=HOST), VECTORS)
    assert (numbers(answer), answer.usage) == ([[-0.0053, 0.1], [0.2, 0.3]], Usage(10, 0))


def test_documents_are_ranked() -> None:
    target = at("watsonx", base_url=f"{HOST}/projects/p")
    body = body_of(rank("x", "y", "z", top_n=2), target)
    assert body["inputs"] == [{"text": "x"}, {"text": "y"}, {"text": "z"}]
    assert body["parameters"] == {"return_options": {"top_n": 2}}
    ranking = ranked(rank("x", "y", "z"), target, SCORES)
    assert places(ranking) == [(1, 1.5), (2, 0.5), (0, -2.5)]
    assert ranking.usage == Usage(20, 0)
    with pytest.raises(UpstreamError):
        ranked(rank(), target, b'{"results":[{"index":0}]}')
