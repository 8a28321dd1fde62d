"""The wire forms of Text Embeddings Inference's own endpoints: a bare list of vectors or of scores, without usage. A
server has one model.

Source: huggingface/text-embeddings-inference docs/openapi.json 1.7.1, November 2026.
"""

from collections.abc import Mapping

from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import malformed
from providers.json_types import JsonObject, JsonValue
from providers.tasks.answer_bounds import parse_strictly
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.forms.openai import family_answer
from providers.tasks.forms.ranked import read_results
from providers.tasks.read_vectors import read_vectors
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft


def _url(draft: TaskDraft) -> str:
    return draft.target.base_url.removesuffix("/v1") + draft.wire.path


def list_in(sent: UpstreamRequest, body: bytes) -> list[JsonValue]:
    """Return the list in the body of a response. Raises UpstreamError."""
    answer = parse_strictly(body)
    if isinstance(answer, list):
        return answer
    family_answer(sent, body)
    raise malformed("is not a list")


class TeiEmbeddings:
    """The `EmbeddingsForm` of TEI's `/embed`."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"inputs": as_json(inputs), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        return Embeddings(read_vectors(list_in(sent, body)))


class TeiRerank:
    """The `RerankForm` of TEI's `/rerank`."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        return {"query": request.query, "texts": as_json(request.documents), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        return Ranking(read_results(list_in(sent, body), "score"))
