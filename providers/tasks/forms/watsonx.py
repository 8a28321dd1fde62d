"""The wire forms of watsonx.ai's embeddings and rerank. The base URL ends in the project or space of the calls, as for
text generation.

Sources: ibm-watsonx-ai 1.8.1 `foundation_models.embeddings` and `rerank`; IBM Cloud API reference "watsonx.ai",
November 2026.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from providers.completion import Usage, count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.forms.openai import family_answer
from providers.tasks.forms.ranked import read_results
from providers.tasks.own_members import vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft

_OWNER = re.compile(r"(?P<origin>.*)/(?P<kind>projects|spaces)/(?P<id>[^/]+)")
_OWNER_KEYS: Mapping[str, str] = {"projects": "project_id", "spaces": "space_id"}
_READ = frozenset({"results", "input_token_count", "model_id"})


class _TaskOwner(NamedTuple):
    """The origin of the service, and the fields of the body that name the model and its project or space."""

    origin: str
    body_fields: JsonObject


def _owner(draft: TaskDraft) -> _TaskOwner:
    model: JsonObject = {"model_id": draft.target.upstream_model}
    found = _OWNER.fullmatch(draft.target.base_url)
    if found is None:
        # The service itself refuses calls that need a project or a space.
        return _TaskOwner(draft.target.base_url, model)
    return _TaskOwner(found["origin"], {**model, _OWNER_KEYS[found["kind"]]: found["id"]})


def _url(draft: TaskDraft) -> str:
    version = quote(draft.target.api_version or draft.profile.api_version or "", safe="")
    return f"{_owner(draft).origin}{draft.wire.path}?version={version}"


def _usage(answer: JsonObject) -> Usage | None:
    tokens = count_of(answer.get("input_token_count"))
    return reported_usage(tokens, 0)


class WatsonxEmbeddings:
    """The `EmbeddingsForm` of watsonx.ai."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {**_owner(draft).body_fields, "inputs": as_json(inputs), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        results = listed(answer, "results")
        values = [each.get("embedding") if isinstance(each, dict) else None for each in results]
        return Embeddings(read_vectors(values), _usage(answer), own=vendor_fields(answer, _READ))


class WatsonxRerank:
    """The `RerankForm` of watsonx.ai."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        texts: JsonObject = {"inputs": [{"text": text} for text in request.documents], "query": request.query}
        return {**_owner(draft).body_fields, **texts, **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        answer = family_answer(sent, body)
        results = read_results(listed(answer, "results"), "score")
        return Ranking(results, _usage(answer), own=vendor_fields(answer, _READ))
