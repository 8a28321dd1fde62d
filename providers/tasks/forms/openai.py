"""The wire form of the OpenAI family's embeddings: inputs are texts or token ids, vectors are numbers or base64.

Names that differ between vendors are in their profiles. Sources: OpenAI OpenAPI 2.3.0; mistralai 3.7.0, voyageai 0.5.0,
together 3.1.1; vLLM 0.33 and llama.cpp's server (xllamacpp 2026.10); "Foundation model REST API reference" of
Databricks; Azure's "REST API reference", November 2026.
"""

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from providers.completion import Usage, count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.read_json import malformed
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.tasks.answer_bounds import strict_object
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.own_members import usage_details, vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft, base_of, path_with_model

_READ = frozenset({"object", "data", "model", "usage"})


class OpenAIEmbeddings:
    """The `EmbeddingsForm` of the OpenAI family."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"model": draft.target.upstream_model, "input": as_json(inputs), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        entries = listed(answer, "data")
        vectors = read_vectors(_in_order(entries))
        return Embeddings(vectors, usage_in(answer), usage_details(answer), vendor_fields(answer, _READ))


def family_url(draft: TaskDraft) -> str:
    """Return the URL of a call in the OpenAI family's form."""
    target, profile = draft.target, draft.profile
    url = base_of(target)
    if profile.model_in == "path":
        url += f"/openai/deployments/{quote(target.upstream_model, safe='')}"
    url += path_with_model(draft.wire.path, target.upstream_model)
    version = target.api_version or profile.api_version
    return url if version is None else f"{url}?api-version={quote(version, safe='')}"


def family_answer(sent: UpstreamRequest, body: bytes) -> JsonObject:
    """Return the object of a response. Raises UpstreamError if it is an error or not an object."""
    answer = strict_object(body)
    if is_error(answer):
        raise UpstreamError(failure_in_body(sent.target.profile, answer))
    return answer


def usage_in(answer: JsonObject) -> Usage | None:
    """Return the usage. Voyage and Jina report only a total, which equals the prompt's tokens since nothing is
    generated."""
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return None
    tokens = count_of(usage.get("prompt_tokens"))
    if tokens is None:
        tokens = count_of(usage.get("total_tokens"))
    return reported_usage(tokens, 0)


def _in_order(entries: list[JsonValue]) -> Iterator[JsonValue]:
    """Yield the vectors in the order of their indices, which default to the position in the list. Raises UpstreamError
    if an index is repeated or out of range."""
    indices: list[int] = []
    for position, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise malformed("has an entry that is not an object")
        index = entry.get("index", position)
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(entries):
            raise malformed("has a vector for an input that does not exist")
        indices.append(index)
    if len(set(indices)) < len(indices):
        raise malformed("has two vectors for one input")
    for position in sorted(range(len(indices)), key=indices.__getitem__):
        entry = entries[position]
        yield entry.get("embedding") if isinstance(entry, dict) else None
