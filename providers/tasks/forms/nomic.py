"""The wire form of Nomic Atlas's embeddings.

Without a task type the texts count as documents. No mode refuses a too long text: its vector is the vector of its first
8,192 tokens, or the mean of the vectors of its parts. The mean is requested unless the client requests a cut.

Source: "Nomic Atlas API: embed text", November 2026.
"""

from collections.abc import Mapping

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.forms.openai import family_answer, family_url, usage_in
from providers.tasks.own_members import usage_details, vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft

_READ = frozenset({"embeddings", "model", "usage"})


class NomicEmbeddings:
    """The `EmbeddingsForm` of Nomic Atlas."""

    def url(self, draft: TaskDraft) -> str:
        return family_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        return {"model": draft.target.upstream_model, "texts": as_json(inputs), **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = family_answer(sent, body)
        vectors = read_vectors(listed(answer, "embeddings"))
        return Embeddings(vectors, usage_in(answer), usage_details(answer), vendor_fields(answer, _READ))
