"""Rankings as the clients of Cohere, Jina, Voyage and vLLM request them, and the one response."""

import orjson
import pytest

from providers.completion import Usage
from providers.json_types import JsonObject, JsonValue
from providers.tasks.rerank import Ranked, Ranking, RerankRequest
from proxy.errors import GatewayError
from proxy.surfaces.surface import AnswerFacts
from proxy.surfaces.tasks.rerank import MAX_DOCUMENTS, parse_rerank, render_rerank
from tests.support.looped import looped

FACTS = AnswerFacts("1", 2, "v/m")


def parsed(**members: JsonValue) -> RerankRequest:
    return parse_rerank(orjson.dumps({"model": "v/m", "query": "q", "documents": ["a", "b"], **members}))


def problem(**members: JsonValue) -> str | None:
    with pytest.raises(GatewayError) as caught:
        parsed(**members)
    return caught.value.facts.param


def rendered(request: RerankRequest, answer: Ranking) -> JsonObject:
    found: JsonObject = orjson.loads(render_rerank(request, answer, FACTS))
    return found


def test_the_fields_of_each_client() -> None:
    assert parsed(top_n=2, return_documents=True, max_tokens_per_doc=5) == RerankRequest(
        "v/m", "q", ("a", "b"), top_n=2, return_documents=True, max_tokens_per_doc=5
    )
    assert parsed(top_k=2, truncation=True) == RerankRequest("v/m", "q", ("a", "b"), top_n=2, truncate="end")
    assert parsed(top_n=0) == parsed(top_n=None) == parsed()
    assert parsed(documents=[{"text": "a"}, "b"]).documents == ("a", "b")


@looped(
    ("member", "value"),
    [
        ("query", ""),
        ("query", ["q"]),
        ("documents", []),
        ("documents", "a"),
        ("documents", [""]),
        ("documents", [{"title": "a"}]),
        ("documents", [{"text": "", "title": "b"}]),
        ("documents", ["a", ""]),
        ("documents", [1]),
        ("documents", ["a"] * (MAX_DOCUMENTS + 1)),
        ("top_n", -1),
        ("max_tokens_per_doc", 0),
        ("return_documents", "yes"),
    ],
)
def test_other_values_are_refused(member: str, value: JsonValue) -> None:
    assert (problem(**{member: value}) or "").partition(".")[0] == member


def test_what_is_missing_is_named() -> None:
    with pytest.raises(GatewayError) as caught:
        parse_rerank(b"{}")
    assert [each.param for each in caught.value.facts.problems] == ["query", "documents", "model"]


def test_the_answer() -> None:
    ranking = Ranking(
        [Ranked(1, 0.5), Ranked(0, 0.25)],
        Usage(9, 0),
        own={"meta": {"billed_units": {"search_units": 2}}, "model": "x"},
    )
    assert rendered(parsed(return_documents=True), ranking) == {
        "id": "rerank-1",
        "model": "v/m",
        "results": [
            {"index": 1, "relevance_score": 0.5, "document": {"text": "b"}},
            {"index": 0, "relevance_score": 0.25, "document": {"text": "a"}},
        ],
        "usage": {"prompt_tokens": 9, "total_tokens": 9},
        "meta": {"billed_units": {"search_units": 2}},
    }
    assert rendered(parsed(), Ranking([Ranked(0, 1.0)])) == {
        "id": "rerank-1",
        "model": "v/m",
        "results": [{"index": 0, "relevance_score": 1.0}],
    }


def test_members_beside_a_document_s_text_come_back_with_it() -> None:
    request = parsed(documents=["a", {"text": "b", "id": 5}], return_documents=True)
    assert request.documents == ("a", "b")
    results = rendered(request, Ranking([Ranked(1, 0.5), Ranked(0, 0.25)]))["results"]
    assert isinstance(results, list)
    found = [entry["document"] for entry in results if isinstance(entry, dict)]
    assert found == [{"text": "b", "id": 5}, {"text": "a"}]


def test_a_request_without_a_model_goes_to_the_task_s_own() -> None:
    assert parse_rerank(b'{"query": "q", "documents": ["a"]}', "v/own").model == "v/own"
    with pytest.raises(GatewayError) as caught:
        parse_rerank(b'{"model": 1, "query": "q", "documents": ["a"]}', "v/own")
    assert caught.value.facts.param == "model"
