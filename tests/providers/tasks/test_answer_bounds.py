"""Responses of hostile vendors: refused by size and number of fields, and never parsed twice."""

import orjson
import pytest

from providers.dialects.shared.read_json import load_json
from providers.failure import FailureKind, UpstreamError
from providers.json_types import JsonValue
from providers.tasks import answer_bounds
from providers.tasks.answer_bounds import check_members, most_of_ranking, most_of_vectors, parse_strictly, strict_object
from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from tests.providers.tasks.kit import at, embed, failure_of, openai_answer, rank, ranked


def test_the_bytes_of_an_answer_go_by_what_was_asked() -> None:
    longest = len(openai_answer([[-1.2345678901234567e-100] * 8192] * 2))
    assert longest < most_of_vectors(2) < most_of_vectors(128) < 2**25 + 2**21
    assert embeddings_calls(embed("a"), at("openai")).most_bytes == most_of_vectors(1)
    assert embeddings_calls(embed(*"a" * 300), at("together")).most_bytes == most_of_vectors(128)


def test_the_documents_of_a_ranking_may_come_back_escaped() -> None:
    documents = ["\u044f[{" * 1000] * 50
    calls = rerank_calls(rank(*documents), at("cohere"))
    results = [
        {"index": place, "relevance_score": 0.5, "document": {"text": each}} for place, each in enumerate(documents)
    ]
    answer = orjson.dumps({"results": results}).replace("\u044f".encode(), b"\\u044f")
    assert len(answer) < calls.most_bytes == most_of_ranking(documents, calls.calls[0].body) < 2**21
    assert len(ranked(rank(*documents), at("cohere"), answer).results) == 50


@pytest.mark.parametrize("entry", ["[]", "{}", '{"index":0}', "[1]"])
def test_half_a_million_members_are_refused_before_they_are_parsed(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_bounds, "load_json", None)
    body = f'{{"data":[{",".join([entry] * 500_000)}]}}'.encode()
    failure = failure_of(embed("a"), at("openai"), body)
    assert (failure.kind, "more values" in failure.message) == (FailureKind.MALFORMED, True)
    check_members(b"", body[:900], 1)


@pytest.mark.parametrize("body", [b"[" + b"1" * 5_000_000 + b"]", b'"\xff"', b'["\\ud800"]', b"", b"[NaN]"])
def test_nothing_is_mended(body: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def load(data: bytes) -> JsonValue:
        calls.append(len(data))
        return load_json(data)

    monkeypatch.setattr(answer_bounds, "load_json", load)
    with pytest.raises(UpstreamError, match="not valid JSON"):
        parse_strictly(body)
    assert len(calls) == 1


def test_an_object_is_an_object() -> None:
    assert strict_object(b' \n{"a": 1} ') == {"a": 1}
    with pytest.raises(UpstreamError, match="not a JSON object"):
        strict_object(b"[{}]")
