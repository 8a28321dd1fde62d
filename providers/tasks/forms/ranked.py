"""The wire form of rerank that Cohere, Jina, Voyage, Together, vLLM and llama.cpp share except for names.

Sources: `cohere` 7.3.1 `ClientV2.rerank`; Jina's "Reranker API"; voyageai 0.5.0 `Client.rerank`; together 3.1.1; vLLM
0.33 sources; llama.cpp's server, November 2026.
"""

import math
from collections.abc import Iterable, Mapping

from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import malformed
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import as_json
from providers.tasks.forms.openai import family_answer, family_url, usage_in
from providers.tasks.own_members import usage_details, vendor_fields
from providers.tasks.read_vectors import listed
from providers.tasks.rerank import Ranked, Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft

_READ = frozenset({"results", "data", "model", "usage"})


class RankedRerank:
    """The shared `RerankForm`."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        texts: JsonObject = {"query": request.query, "documents": as_json(request.documents)}
        return {"model": draft.target.upstream_model, **texts, **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        answer = family_answer(sent, body)
        results = read_results(listed(answer, "results" if "results" in answer else "data"), "relevance_score")
        return Ranking(results, usage_in(answer), usage_details(answer), vendor_fields(answer, _READ))


def read_results(entries: Iterable[JsonValue], score: str) -> tuple[Ranked, ...]:
    """Return the indices and scores of a list of results. `score` is the key of the score. Raises
    UpstreamError(MALFORMED)."""
    return tuple([_result(entry, score) for entry in entries])


def _result(entry: JsonValue, score: str) -> Ranked:
    index = entry.get("index") if isinstance(entry, dict) else None
    value = entry.get(score) if isinstance(entry, dict) else None
    if not isinstance(index, int) or isinstance(index, bool):
        raise malformed("has a result without the index of its document")
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise malformed("has a result without a score")
    return Ranked(index, float(value))
