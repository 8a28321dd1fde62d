"""Cohere's embeddings, at Cohere and on Bedrock."""

from providers.completion import Usage
from providers.failure import FailureKind
from providers.tasks.forms.bedrock import COUNT_HEADER
from tests.providers.tasks.kit import answered, at, body_of, embed, failure_of, numbers, refusal_of, url_of
from tests.support.looped import looped

ANSWER = (
    b'{"id":"da6e531f","embeddings":{"float":[[0.016296387,-0.008354187],[0.04663086,-0.0031433105]]},'
    b'"texts":["a","b"],"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":5}},'
    b'"response_type":"embeddings_by_type"}'
)
BEDROCK = "cohere.embed-v4:0"


def test_the_use_is_told_and_nothing_is_cut() -> None:
    assert body_of(embed("a", "b", input_type="search_query", dimensions=256), at("cohere", "embed-v4.0")) == {
        "model": "embed-v4.0",
        "texts": ["a", "b"],
        "embedding_types": ["float"],
        "input_type": "search_query",
        "output_dimension": 256,
        "truncate": "NONE",
    }
    assert url_of(embed(input_type="clustering"), at("cohere")) == "https://api.cohere.com/v2/embed"


def test_without_a_use_the_table_s_holds_and_else_it_is_asked_for() -> None:
    assert body_of(embed("a"), at("cohere", input_type="search_document"))["input_type"] == "search_document"
    refusal = refusal_of(embed("a"), at("cohere"))
    assert (refusal.param, refusal.code) == ("input_type", "invalid_value")
    assert "'input_type' in the configuration" in refusal.message
    assert refusal_of(embed("a"), at("bedrock", BEDROCK)).param == "input_type"


def test_a_table_s_use_is_not_told_to_models_that_take_none() -> None:
    assert "input_type" not in body_of(embed("a"), at("openai", input_type="search_document"))


def test_vectors_and_tokens_are_read() -> None:
    answer = answered(embed("a", "b", input_type="search_query"), at("cohere"), ANSWER)
    assert numbers(answer)[1] == [0.04663086, -0.0031433105]
    assert answer.usage == Usage(5, 0)


def test_bedrock_has_the_model_in_the_path_and_the_tokens_in_a_header() -> None:
    target = at("bedrock", BEDROCK, base_url="https://bedrock-runtime.eu-west-1.amazonaws.com")
    request = embed("a", "b", input_type="search_query", truncate="start")
    assert "model" not in body_of(request, target)
    assert body_of(request, target)["truncate"] == "START"
    assert url_of(request, target).endswith("/model/cohere.embed-v4%3A0/invoke")
    assert answered(request, target, ANSWER, headers={COUNT_HEADER: "9"}).usage == Usage(9, 0)
    plain = b'{"id":"x","embeddings":[[1.0],[2.0]],"texts":["a","b"],"response_type":"embeddings_floats"}'
    without = answered(request, target, plain)
    assert numbers(without) == [[1.0], [2.0]]
    assert without.usage == Usage(2, 0, estimated=True)
    assert answered(request, target, plain, headers={COUNT_HEADER: "9" * 5000}).usage == without.usage


@looped("body", [b"{}", b'{"embeddings":null}', b'{"embeddings":{"int8":[[1],[2]]}}', b"[]"])
def test_an_answer_without_floats_is_malformed(body: bytes) -> None:
    request = embed("a", "b", input_type="search_query")
    assert failure_of(request, at("cohere"), body).kind is FailureKind.MALFORMED
