"""Nomic Atlas's embeddings. Without a task type the texts are documents; a long text is an error only in no mode of its
own, so that its mode is what the client asks for.

Source: "Nomic Atlas API: embed text", November 2026.
"""

from collections.abc import Mapping

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists, as_json
from providers.tasks.forms.openai import family_answer, family_url, usage_in
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.task_draft import TaskDraft


class NomicEmbeddings:
    """See providers.tasks.wire_form.EmbeddingsForm."""

    def url(self, draft: TaskDraft) -> str:
        """See EmbeddingsForm."""
        return family_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        """See EmbeddingsForm."""
        return {"model": draft.target.upstream_model, "texts": as_json(inputs), **draft.members}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        """See EmbeddingsForm."""
        answer = family_answer(sent, body)
        return Embeddings(read_vectors(listed(answer, "embeddings")), usage_in(answer))
