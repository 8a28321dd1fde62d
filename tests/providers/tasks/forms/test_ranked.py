"""Rankings in the form that most vendors use."""

from providers.completion import Usage
from providers.failure import FailureKind
from tests.providers.kit import failure_of
from tests.providers.tasks.kit import at, body_of, places, rank, ranked, refusal_of, url_of
from tests.support.looped import looped

COHERE = (
    b'{"id":"07734bd2","results":[{"index":2,"relevance_score":0.999},{"index":0,"relevance_score":0.01}],'
    b'"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":1}}}'
)
JINA = (
    b'{"model":"jina-reranker-v2-base-multilingual","usage":{"total_tokens":43},"results":['
    b'{"index":0,"relevance_score":0.3,"document":{"text":"one"}},'
    b'{"index":2,"relevance_score":0.9,"document":{"text":"three"}},'
    b'{"index":1,"relevance_score":0.1,"document":{"text":"two"}}]}'
)
VOYAGE = (
    b'{"object":"list","data":[{"relevance_score":0.4375,"index":1},{"relevance_score":0.41796875,"index":0},'
    b'{"relevance_score":0.2,"index":2}],"model":"rerank-2.5","usage":{"total_tokens":26}}'
)
VLLM = (
    b'{"id":"rerank-f","model":"BAAI/bge-reranker-base","usage":{"total_tokens":56,"prompt_tokens":56},"results":['
    b'{"index":1,"document":{"text":"two","multi_modal":null},"relevance_score":0.99853515625},'
    b'{"index":0,"document":{"text":"one"},"relevance_score":0.0005860328674316406},'
    b'{"index":2,"document":{"text":"three"},"relevance_score":0.0001}]}'
)


def test_what_goes_out() -> None:
    assert body_of(rank("x", "y", top_n=1, max_tokens_per_doc=9), at("cohere", "rerank-v3.5")) == {
        "model": "rerank-v3.5",
        "query": "which",
        "documents": ["x", "y"],
        "top_n": 1,
        "max_tokens_per_doc": 9,
    }
    assert url_of(rank(), at("cohere")) == "https://api.cohere.com/v2/rerank"
    assert body_of(rank("x", top_n=7), at("voyage"))["top_k"] == 1
    assert body_of(rank(), at("voyage"))["truncation"] is False


def test_texts_are_never_asked_back() -> None:
    assert "return_documents" not in body_of(rank(return_documents=True), at("jina"))


def test_each_vendor_s_answer_is_read_best_first() -> None:
    cohere = ranked(rank(top_n=2), at("cohere"), COHERE)
    assert (places(cohere), cohere.usage) == ([(2, 0.999), (0, 0.01)], Usage(10, 0, estimated=True))
    assert cohere.own["meta"] == {"api_version": {"version": "2"}, "billed_units": {"search_units": 1}}
    jina = ranked(rank(), at("jina"), JINA)
    assert (places(jina), jina.usage) == ([(2, 0.9), (0, 0.3), (1, 0.1)], Usage(43, 0))
    assert places(ranked(rank(), at("voyage"), VOYAGE))[0] == (1, 0.4375)
    assert ranked(rank(), at("vllm"), VLLM).usage == Usage(56, 0)


def test_more_than_was_asked_for_is_cut() -> None:
    assert places(ranked(rank(top_n=1), at("jina"), JINA)) == [(2, 0.9)]


def test_a_list_is_never_split() -> None:
    refusal = refusal_of(rank(*"x" * 1001), at("voyage"))
    assert (refusal.param, refusal.code) == ("documents", "invalid_value")


@looped(
    "body",
    [
        *(b"{}", b'{"results":7}', b'{"results":[7]}', b'{"results":[]}', b"[]", b"x"),
        b'{"results":[{"index":0,"relevance_score":1.0}]}',
        b'{"results":[{"index":3,"relevance_score":1.0}]}',
        b'{"results":[{"index":-1,"relevance_score":1.0}]}',
        b'{"results":[{"index":0.0,"relevance_score":1.0}]}',
        b'{"results":[{"index":true,"relevance_score":1.0}]}',
        b'{"results":[{"index":0,"relevance_score":"1.0"}]}',
        b'{"results":[{"index":0,"relevance_score":null}]}',
        b'{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1},{"index":1,"relevance_score":1}]}',
    ],
)
def test_what_is_no_ranking_of_the_documents_is_malformed(body: bytes) -> None:
    assert failure_of(ranked, rank(), at("jina"), body).kind is FailureKind.MALFORMED
