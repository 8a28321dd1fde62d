"""The wire form of Ollama's own `/api/embed`. Ollama's `/v1/embeddings` cannot disable the cutting of inputs, so both
profiles use this endpoint.

Sources: ollama api/types.go and server/routes.go, August 2026; ollama 0.6.3 `Client.embed`.
"""

from collections.abc import Mapping

from providers.completion import count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.forms.openai import family_answer
from providers.tasks.own_members import vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft

_READ = frozenset({"embeddings", "model", "prompt_eval_count"})


class OllamaEmbeddings:
    """The `EmbeddingsForm` of Ollama."""

    def url(self, draft: TaskDraft) -> str:
        """Return the URL of the calls. The path is below the root of the server, also if the base URL ends in `/v1`."""
        return draft.target.base_url.removesuffix("/v1") + draft.wire.path

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"model": draft.target.upstream_model, "input": as_json(inputs), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        tokens = count_of(answer.get("prompt_eval_count"))
        vectors = read_vectors(listed(answer, "embeddings"))
        own = vendor_fields(answer, _READ)
        return Embeddings(vectors, reported_usage(tokens, 0), own=own)
