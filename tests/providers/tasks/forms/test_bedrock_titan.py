"""Titan's embeddings: a call for each text."""

from providers.completion import Usage
from providers.failure import FailureKind
from providers.tasks.forms.prepare_task import embeddings_calls
from tests.providers.tasks.kit import answered, at, bodies, embed, failure_of, numbers, refusal_of, url_of

TITAN = at("bedrock", "amazon.titan-embed-text-v2:0", base_url="https://bedrock-runtime.eu-west-1.amazonaws.com")
ONE = b'{"embedding":[0.5,-0.25],"embeddingsByType":{"float":[0.5,-0.25]},"inputTextTokenCount":3}'
TWO = b'{"embedding":[1.5,-1.25],"inputTextTokenCount":4}'


def test_each_text_is_a_call_and_their_tokens_add_up() -> None:
    request = embed("a", "b", dimensions=2, unknown={"normalize": True})
    assert bodies(embeddings_calls(request, TITAN)) == [
        {"inputText": "a", "dimensions": 2, "normalize": True},
        {"inputText": "b", "dimensions": 2, "normalize": True},
    ]
    answer = answered(request, TITAN, ONE, TWO)
    assert numbers(answer) == [[0.5, -0.25], [1.5, -1.25]]
    assert answer.usage == Usage(7, 0)


def test_the_model_stands_in_the_path_escaped_as_the_signature_requires() -> None:
    assert url_of(embed("a"), TITAN) == (
        "https://bedrock-runtime.eu-west-1.amazonaws.com/model/amazon.titan-embed-text-v2%3A0/invoke"
    )


def test_the_first_titan_has_one_length() -> None:
    assert refusal_of(embed("a", dimensions=256), at("bedrock", "amazon.titan-embed-text-v1")).param == "dimensions"


def test_one_answer_without_a_vector_fails_all() -> None:
    assert failure_of(embed("a", "b"), TITAN, ONE, b"{}").kind is FailureKind.MALFORMED
