"""Text Embeddings Inference's own endpoints."""

import pytest

from providers.completion import Usage
from providers.dialects.registry import DIALECTS
from providers.failure import FailureKind, UpstreamError
from providers.tasks.forms.prepare_task import embeddings_calls
from tests.providers.tasks.kit import answered, at, body_of, embed, failure_of, numbers, places, rank, ranked, url_of
from tests.support.looped import looped

SCORES = b'[{"index":2,"score":0.9},{"index":0,"score":-3.5},{"index":1,"score":0.1}]'


def test_texts_go_without_a_model_and_nothing_is_cut() -> None:
    assert body_of(embed("a", input_type="search_query"), at("tei")) == {
        "inputs": ["a"],
        "prompt_name": "query",
        "truncate": False,
    }
    for base in ("http://localhost:8080", "http://localhost:8080/v1"):
        assert url_of(embed(), at("tei", base_url=base)) == "http://localhost:8080/embed"
        assert url_of(rank(), at("tei", base_url=base)) == "http://localhost:8080/rerank"


def test_a_prompt_of_the_server_s_own_goes_along() -> None:
    assert body_of(embed("a", unknown={"prompt_name": "p"}), at("tei"))["prompt_name"] == "p"


def test_a_bare_list_of_vectors_is_read_and_its_usage_estimated() -> None:
    answer = answered(embed("abcd", "b"), at("tei"), b"[[0.1,0.2],[0.3,0.4]]")
    assert (numbers(answer), answer.usage) == ([[0.1, 0.2], [0.3, 0.4]], Usage(2, 0, estimated=True))


def test_scores_are_put_in_order_and_cut() -> None:
    assert places(ranked(rank(top_n=2), at("tei"), SCORES)) == [(2, 0.9), (1, 0.1)]
    assert body_of(rank(unknown={"raw_scores": True}), at("tei"))["raw_scores"] is True
    assert "top_n" not in body_of(rank(top_n=2), at("tei"))


@looped("body", [b"{}", b'{"embeddings":[]}', b"[1]", b"[[]]", b"null"])
def test_what_is_no_list_of_vectors_is_malformed(body: bytes) -> None:
    assert failure_of(embed("a"), at("tei"), body).kind is FailureKind.MALFORMED
    with pytest.raises(UpstreamError):
        ranked(rank(), at("tei"), body)


@looped(
    ("status", "body", "kind"),
    [
        (
            413,
            b'{"error":"batch size 33 > maximum allowed batch size 32","error_type":"Validation"}',
            "invalid_request",
        ),
        (422, b'{"error":"Tokenization error","error_type":"Tokenizer"}', "invalid_request"),
        (424, b'{"error":"Inference failed","error_type":"Backend"}', "server"),
        (429, b'{"error":"Model is overloaded","error_type":"Overloaded"}', "overloaded"),
    ],
)
def test_errors_mean_what_they_say(status: int, body: bytes, kind: str) -> None:
    sent = embeddings_calls(embed("a"), at("tei")).calls[0]
    assert DIALECTS["openai"].classify(sent, status, {}, body).kind == kind
