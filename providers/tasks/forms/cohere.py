"""The wire forms of Cohere's v2 embeddings, at Cohere and on Bedrock's InvokeModel.

The request must name the use of the inputs. Too long inputs are an error unless the client requests a cut: `NONE` is
sent, since `END` is the vendor's default. Sources: `cohere` 7.3.1 `ClientV2.embed`; "Embed API (v2)"; Bedrock's user
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
from providers.tasks.own_members import vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft

_READ = frozenset({"embeddings", "response_type", "texts"})
"""Fields of a response that the gateway reads, that name the form of the vectors, or that repeat the request's
texts."""


class CohereEmbeddings:
    """The `EmbeddingsForm` of Cohere."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"model": draft.target.upstream_model, **texts_and_type(draft, inputs)}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        tokens = count_of(_billed(answer).get("input_tokens"))
        own = vendor_fields(answer, _READ)
        return Embeddings(floats_in(answer), reported_usage(tokens, 0), own=own)


class BedrockCohereEmbeddings:
    """The `EmbeddingsForm` of Cohere's models on Bedrock: the same body without the model, and the token count in a
    header."""

    def url(self, draft: TaskDraft) -> str:
        return invoke_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return texts_and_type(draft, inputs)

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        text = headers.get(COUNT_HEADER, "")
        tokens = count_of(int(text)) if text.isdecimal() and len(text) < 16 else None
        answer = family_answer(sent, body)
        own = vendor_fields(answer, _READ)
        return Embeddings(floats_in(answer), reported_usage(tokens, 0), own=own)


def texts_and_type(draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
    """Return the fields that both forms have. Raises Refusal if the request has no `input_type`."""
    if "input_type" not in draft.optional_fields:
        message = (
            f"'input_type' is required by {draft.target.name}: search_document for what is stored, search_query for "
            "what is searched with. The operator can set 'input_type' in the configuration."
        )
        raise Refusal("input_type", message, "invalid_value")
    return {"texts": as_json(inputs), "embedding_types": ["float"], **draft.optional_fields}


def floats_in(answer: JsonObject) -> tuple[Vector, ...]:
    """Return the vectors, which are a list, or an object with a list per number type."""
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
