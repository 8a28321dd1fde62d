"""Rerank as a client API: parses the request of Cohere and Jina into a RerankRequest, and renders one form of response.

Sources: `cohere` 7.3.1 `ClientV2.rerank`; Jina's "Reranker API"; voyageai 0.5.0 `Client.rerank`; vLLM 0.33, in which
`top_n: 0` requests all documents, November 2026.
"""

from collections.abc import Mapping
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.tasks.rerank import Ranking, RerankRequest
from proxy.surfaces.request.rule_kinds import Check, Invalid, boolean, check_at, integer, text
from proxy.surfaces.response.write_sse import utf8_json
from proxy.surfaces.surface import AnswerFacts
from proxy.surfaces.tasks.answer_members import usage_fields, with_id
from proxy.surfaces.tasks.read_fields import read_fields

MAX_DOCUMENTS: Final = 10_000


def _documents(value: JsonValue) -> tuple[str | JsonObject, ...]:
    """Check a list of texts, or of objects with a text."""
    if not isinstance(value, list) or not value:
        raise Invalid("must be a list of texts, and not empty")
    if len(value) > MAX_DOCUMENTS:
        raise Invalid(f"may hold at most {MAX_DOCUMENTS} documents")
    return tuple([check_at(_document, item, index) for index, item in enumerate(value)])


def _document(value: JsonValue) -> str | JsonObject:
    """Check a text, or an object with a text. An empty text has no score; vendors refuse it or rank it arbitrarily."""
    found = value.get("text") if isinstance(value, dict) else value
    if not isinstance(found, str) or not found:
        raise Invalid("must be a non-empty string, or an object with one as its 'text'")
    return value if isinstance(value, dict) and len(value) > 1 else found


def _text(document: str | JsonObject) -> str:
    return document if isinstance(document, str) else str(document["text"])


_CHECKS: Mapping[str, Check] = {
    "query": text,
    "documents": _documents,
    "top_n": integer(0),
    "return_documents": boolean,
    "max_tokens_per_doc": integer(1),
}

_ALIASES: Mapping[str, str] = {"top_k": "top_n", "truncation": "truncate"}


def parse_rerank(body: bytes, default_model: str | None = None) -> RerankRequest:
    """Return the checked request, with `default_model` as its model if the body has no `model`. Raises GatewayError
    with all problems."""
    fields = read_fields(body, _CHECKS, _ALIASES)
    query = fields.required("query", str, "")
    documents: tuple[str | JsonObject, ...] = fields.required("documents", tuple, ())
    model = fields.model(default_model)
    fields.end()
    return RerankRequest(
        model,
        query,
        tuple(map(_text, documents)),
        top_n=fields.get("top_n", int) or None,
        return_documents=fields.get("return_documents", bool) or False,
        max_tokens_per_doc=fields.get("max_tokens_per_doc", int),
        truncate=fields.truncate,
        user=fields.get("user", str),
        unknown=fields.unknown or None,
        timeout=fields.get("inference_timeout", float),
        extra_params=fields.get("inference_extra_params", dict),
        extra_headers=fields.get("inference_extra_headers", dict),
        objects={index: each for index, each in enumerate(documents) if isinstance(each, dict)},
    )


def render_rerank(request: RerankRequest, answer: Ranking, facts: AnswerFacts) -> bytes:
    """Return the body of the response, in which the best document comes first."""
    results: list[dict[str, object]] = []
    for each in answer.results:
        entry: dict[str, object] = {"index": each.index, "relevance_score": each.score}
        if request.return_documents:
            entry["document"] = request.objects.get(each.index) or {"text": request.documents[each.index]}
        results.append(entry)
    body: dict[str, object] = {**with_id(answer.own, f"rerank-{facts.unique}"), "model": facts.model}
    body["results"] = results
    if usage := usage_fields(answer.usage, answer.details):
        body["usage"] = usage
    return utf8_json(body)
