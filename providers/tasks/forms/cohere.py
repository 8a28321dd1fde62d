"""Cohere's v2 embeddings, also as Bedrock's InvokeModel has them.

What the inputs are for must be said. Inputs that are too long are an error unless the client asks for a cut: NONE is
sent, since END is what happens otherwise. Sources: `cohere` 7.3.1 `ClientV2.embed`; "Embed API (v2)"; Bedrock's user
guide "Cohere Embed", November 2026.
"""

from collections.abc import Mapping

from providers.completion import count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import malformed
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, Vector, as_json
from providers.tasks.forms.bedrock import COUNT_HEADER, invoke_url
from providers.tasks.forms.openai import family_answer, family_url
from providers.tasks.own_members import own_members
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft

_READ = frozenset({"embeddings", "response_type", "texts"})
"""Members that are read, that say in which form the vectors came, or that repeat the request's texts."""


class CohereEmbeddings:
    """See providers.tasks.wire_form.EmbeddingsForm."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"model": draft.target.upstream_model, **texts_and_type(draft, inputs)}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        tokens = count_of(_billed(answer).get("input_tokens"))
        own = own_members(answer, _READ)
        return Embeddings(floats_in(answer), reported_usage(tokens, 0), own=own)


class BedrockCohereEmbeddings:
    """Cohere's models on Bedrock: the same body without the model, tokens in a header."""

    def url(self, draft: TaskDraft) -> str:
        return invoke_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return texts_and_type(draft, inputs)

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        text = headers.get(COUNT_HEADER, "")
        tokens = count_of(int(text)) if text.isdecimal() and len(text) < 16 else None
        answer = family_answer(sent, body)
        own = own_members(answer, _READ)
        return Embeddings(floats_in(answer), reported_usage(tokens, 0), own=own)


def texts_and_type(draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
    """Return the members that both have. Raises Refusal without a type of the inputs."""
    if "input_type" not in draft.members:
        message = (
            f"'input_type' is required by {draft.target.name}: search_document for what is stored, search_query for "
            "what is searched with. The operator can set 'input_type' in the table."
        )
        raise Refusal("input_type", message, "invalid_value")
    return {"texts": as_json(inputs), "embedding_types": ["float"], **draft.members}


def floats_in(answer: JsonObject) -> tuple[Vector, ...]:
    """Return the vectors: a list of them, or by type."""
    found: JsonValue = answer.get("embeddings")
    if isinstance(found, dict):
        return read_vectors(listed(found, "float"))
    if isinstance(found, list):
        return read_vectors(found)
    raise malformed("has no embeddings")


def _billed(answer: JsonObject) -> JsonObject:
    meta = answer.get("meta")
    units = meta.get("billed_units") if isinstance(meta, dict) else None
    return units if isinstance(units, dict) else {}
