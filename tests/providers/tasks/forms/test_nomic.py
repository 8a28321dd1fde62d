"""Nomic Atlas's embeddings."""

from providers.completion import Usage
from tests.providers.tasks.kit import answered, at, body_of, embed, numbers, url_of

ANSWER = b'{"embeddings":[[0.01,0.02]],"usage":{"prompt_tokens":5,"total_tokens":5},"model":"nomic-embed-text-v1.5"}'


def test_texts_their_use_and_their_length() -> None:
    request = embed("a", input_type="search_query", dimensions=64, truncate="end")
    assert body_of(request, at("nomic", "nomic-embed-text-v1.5")) == {
        "model": "nomic-embed-text-v1.5",
        "texts": ["a"],
        "task_type": "search_query",
        "dimensionality": 64,
        "long_text_mode": "truncate",
    }
    assert url_of(request, at("nomic")) == "https://api-atlas.nomic.ai/v1/embedding/text"


def test_vectors_and_tokens_are_read() -> None:
    answer = answered(embed("a"), at("nomic"), ANSWER)
    assert (numbers(answer), answer.usage) == ([[0.01, 0.02]], Usage(5, 0))
