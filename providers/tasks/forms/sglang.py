"""The wire form of SGLang's rerank: a bare list of scores, best first, each with the usage of its document.

Source: sglang 0.5.10 `entrypoints/openai/protocol.py` `V1RerankReqInput`, `RerankResponse`, and `serving_rerank.py`.
"""

from collections.abc import Iterable, Mapping

from providers.completion import Usage, count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import as_json
from providers.tasks.forms.openai import family_url
from providers.tasks.forms.ranked import read_results
from providers.tasks.forms.tei import list_in
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft


class SglangRerank:
    """The `RerankForm` of SGLang."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        texts: JsonObject = {"query": request.query, "documents": as_json(request.documents), "return_documents": False}
        return {"model": draft.target.upstream_model, **texts, **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        entries = list_in(sent, body)
        return Ranking(read_results(entries, "score"), _usage(entries))


def _usage(entries: Iterable[JsonValue]) -> Usage | None:
    """Return the sum of the tokens of all documents; `None` if a document has no count."""
    counts: list[int] = []
    for entry in entries:
        meta = entry.get("meta_info") if isinstance(entry, dict) else None
        count = count_of(meta.get("prompt_tokens")) if isinstance(meta, dict) else None
        if count is None:
            return None
        counts.append(count)
    return reported_usage(sum(counts), 0)
