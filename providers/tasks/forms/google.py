"""The wire forms of Google's embeddings: batchEmbedContents of the Gemini API, predict and embedContent of Vertex AI.

By default Vertex AI silently cuts long texts, so requests disable that. Sources: `google-genai` 3.4.0
`models.embed_content`; "Embeddings" page of the Gemini API, "Text embeddings API" of Vertex AI, November 2026.
"""

from collections.abc import Mapping

from providers.completion import Usage, count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.shared.read_json import malformed
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.tasks.answer_bounds import strict_object
from providers.tasks.embeddings import Embeddings, Texts, TokenLists
from providers.tasks.own_members import vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft, base_of, path_with_model

_TASK_TYPE = "task_type"
_TITLE = "title"
_READ = frozenset({"embedding", "embeddings", "predictions"})


def _url(draft: TaskDraft) -> str:
    return base_of(draft.target) + path_with_model(draft.wire.path, draft.target.upstream_model.removeprefix("models/"))


class GeminiEmbeddings:
    """The `EmbeddingsForm` of the Gemini API's batch, in which each text is a separate request."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        name = f"models/{draft.target.upstream_model.removeprefix('models/')}"
        return {
            "requests": [{"model": name, "content": _content(text), **draft.optional_fields} for text in _each(inputs)]
        }

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = _answer(body)
        values = [_values(each) for each in listed(answer, "embeddings")]
        return Embeddings(read_vectors(values), _usage_metadata(answer), own=vendor_fields(answer, _READ))


class VertexPredictEmbeddings:
    """The `EmbeddingsForm` of Vertex AI's predict. Each text has the task type and the title, `parameters` has the
    other fields."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        own = {name: draft.optional_fields[name] for name in (_TASK_TYPE, _TITLE) if name in draft.optional_fields}
        rest = {name: value for name, value in draft.optional_fields.items() if name not in own}
        return {"instances": [{"content": text, **own} for text in _each(inputs)], **rest}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        values: list[JsonValue] = []
        tokens: int | None = 0
        answer = _answer(body)
        for each in listed(answer, "predictions"):
            embedding = each.get("embeddings") if isinstance(each, dict) else None
            values.append(_values(embedding))
            statistics = embedding.get("statistics") if isinstance(embedding, dict) else None
            count = count_of(statistics.get("token_count")) if isinstance(statistics, dict) else None
            tokens = None if tokens is None or count is None else tokens + count
        own = vendor_fields(answer, _READ)
        return Embeddings(read_vectors(values), reported_usage(tokens, 0), own=own)


class VertexContentEmbeddings:
    """The `EmbeddingsForm` of Vertex AI's embedContent, which newer models have. A call has one text."""

    def url(self, draft: TaskDraft) -> str:
        return _url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        (text,) = _each(inputs)
        return {"content": _content(text), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = _answer(body)
        if answer.get("truncated") is True:
            raise malformed("is for a text that was cut, although no cut was requested")
        vectors = read_vectors([_values(answer.get("embedding"))])
        return Embeddings(vectors, _usage_metadata(answer), own=vendor_fields(answer, _READ))


def _each(inputs: Texts | TokenLists) -> list[JsonValue]:
    """Return the texts. These services accept no token ids."""
    return [text for text in inputs if isinstance(text, str)]


def _content(text: JsonValue) -> JsonObject:
    return {"parts": [{"text": text}]}


def _answer(body: bytes) -> JsonObject:
    answer = strict_object(body)
    error = error_in(answer)
    if error is not None:
        raise UpstreamError(failure_of(error))
    return answer


def _values(embedding: JsonValue) -> JsonValue:
    return embedding.get("values") if isinstance(embedding, dict) else None


def _usage_metadata(answer: JsonObject) -> Usage | None:
    """Return the usage, which only newer models report, otherwise `None`."""
    metadata = answer.get("usageMetadata")
    tokens = count_of(metadata.get("promptTokenCount")) if isinstance(metadata, dict) else None
    return reported_usage(tokens, 0)
