"""Embeddings of the Gemini API and of Vertex AI."""

from typing import cast

from providers.completion import Usage
from providers.failure import FailureKind
from providers.tasks.forms.prepare_task import embeddings_calls
from tests.providers.tasks.kit import answered, at, bodies, body_of, embed, failure_of, numbers, url_of
from tests.support.looped import looped

BATCH = b'{"embeddings":[{"values":[-0.010632273,0.019375853]},{"values":[0.01,0.02]}]}'
COUNTED = b'{"embeddings":[{"values":[1.0]}],"usageMetadata":{"promptTokenCount":6}}'
PREDICTED = (
    b'{"predictions":[{"embeddings":{"statistics":{"truncated":false,"token_count":6},"values":[0.1,0.2]}},'
    b'{"embeddings":{"values":[0.3,0.4],"statistics":{"token_count":4.0,"truncated":false}}}],'
    b'"metadata":{"billableCharacterCount":11}}'
)
CONTENT = b'{"embedding":{"values":[0.1,0.2]},"usageMetadata":{"promptTokenCount":2},"truncated":false}'
VERTEX = "https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1"
MODELS = f"{VERTEX}/publishers/google/models"


def test_the_gemini_api_takes_a_batch_of_requests() -> None:
    target = at("gemini", "gemini-embedding-001")
    request = embed("a", "b", input_type="search_document", dimensions=768, unknown={"title": "t"})
    one = {"model": "models/gemini-embedding-001", "taskType": "RETRIEVAL_DOCUMENT", "outputDimensionality": 768}
    assert body_of(request, target) == {
        "requests": [{**one, "content": {"parts": [{"text": text}]}, "title": "t"} for text in ("a", "b")]
    }
    assert url_of(request, target).endswith("/v1beta/models/gemini-embedding-001:batchEmbedContents")


def test_a_batch_and_its_tokens_are_read() -> None:
    answer = answered(embed("a", "b"), at("gemini"), BATCH)
    assert numbers(answer)[0] == [-0.010632273, 0.019375853]
    assert answer.usage == Usage(2, 0, estimated=True)
    assert answered(embed("a"), at("gemini"), COUNTED).usage == Usage(6, 0)


def test_more_than_a_hundred_texts_are_several_batches() -> None:
    sent = bodies(embeddings_calls(embed(*"a" * 250), at("gemini")))
    assert [len(cast("list[object]", body["requests"])) for body in sent] == [100, 100, 50]


def test_vertex_predicts_and_is_told_not_to_cut() -> None:
    target = at("vertex", "text-embedding-005", base_url=VERTEX)
    request = embed("a", "b", input_type="search_query", dimensions=256, unknown={"title": "t"})
    assert body_of(request, target) == {
        "instances": [{"content": text, "task_type": "RETRIEVAL_QUERY", "title": "t"} for text in ("a", "b")],
        "parameters": {"outputDimensionality": 256, "autoTruncate": False},
    }
    assert url_of(request, target) == f"{MODELS}/text-embedding-005:predict"
    answer = answered(embed("a", "b"), target, PREDICTED)
    assert (numbers(answer), answer.usage) == ([[0.1, 0.2], [0.3, 0.4]], Usage(10, 0))


def test_a_count_that_one_text_lacks_makes_the_whole_an_estimate() -> None:
    target = at("vertex", "text-embedding-005", base_url=VERTEX)
    answer = answered(embed("a", "b"), target, PREDICTED.replace(b'"token_count":6', b'"x":6'))
    assert answer.usage == Usage(2, 0, estimated=True)


def test_gemini_embedding_takes_one_instance_a_call_and_later_ones_one_content() -> None:
    assert len(embeddings_calls(embed("a", "b"), at("vertex", "gemini-embedding-001", base_url=VERTEX)).calls) == 2
    target = at("vertex", "gemini-embedding-2", base_url=VERTEX)
    first, second = bodies(embeddings_calls(embed("a", "b", dimensions=9, input_type="clustering"), target))
    assert first == {
        "content": {"parts": [{"text": "a"}]},
        "embedContentConfig": {"taskType": "CLUSTERING", "outputDimensionality": 9, "autoTruncate": False},
    }
    assert second["content"] == {"parts": [{"text": "b"}]}
    assert url_of(embed("a"), target) == f"{MODELS}/gemini-embedding-2:embedContent"
    answer = answered(embed("a"), target, CONTENT)
    assert (numbers(answer), answer.usage) == ([[0.1, 0.2]], Usage(2, 0))


def test_a_text_that_was_cut_all_the_same_is_no_answer() -> None:
    target = at("vertex", "gemini-embedding-2", base_url=VERTEX)
    assert failure_of(embed("a"), target, CONTENT.replace(b"false", b"true")).kind is FailureKind.MALFORMED


@looped("body", [b"{}", b'{"embeddings":[{}]}', b'{"embeddings":[7]}', b'{"predictions":[7]}', b"x"])
def test_what_makes_no_sense_is_malformed(body: bytes) -> None:
    assert failure_of(embed("a"), at("gemini"), body).kind is FailureKind.MALFORMED
    predicting = at("vertex", "text-embedding-005", base_url=VERTEX)
    assert failure_of(embed("a"), predicting, body).kind is FailureKind.MALFORMED


def test_an_error_within_a_200_is_an_error() -> None:
    body = b'{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}'
    assert failure_of(embed("a"), at("gemini"), body).kind is FailureKind.RATE_LIMITED
