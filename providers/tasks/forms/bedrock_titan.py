"""Titan's embeddings on Bedrock's InvokeModel: one text a call.

Sources: botocore 1.44.5 service model `bedrock-runtime`, operation `InvokeModel`; Bedrock's user guide "Amazon Titan
Text Embeddings", November 2026. The header with the tokens is what the service sends with every InvokeModel.
"""

from collections.abc import Mapping
from typing import Final

from providers.completion import count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.tasks.answer_bounds import strict_object
from providers.tasks.embeddings import Embeddings, Texts, TokenLists
from providers.tasks.own_members import own_members
from providers.tasks.read_vectors import read_vectors
from providers.tasks.task_draft import TaskDraft, path_with_model

COUNT_HEADER: Final = "x-amzn-bedrock-input-token-count"

_READ = frozenset({"embedding", "embeddingsByType", "inputTextTokenCount"})
"""Members that are read, or that hold the same vector once more."""


class TitanEmbeddings:
    """See providers.tasks.wire_form.EmbeddingsForm."""

    def url(self, draft: TaskDraft) -> str:
        """See EmbeddingsForm."""
        return invoke_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        """See EmbeddingsForm."""
        (text,) = inputs
        if not isinstance(text, str):
            raise Refusal("input", f"{draft.target.name} takes texts.", "invalid_value")
        return {"inputText": text, **draft.members}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        """See EmbeddingsForm."""
        answer = strict_object(body)
        tokens = count_of(answer.get("inputTextTokenCount"))
        vectors = read_vectors([answer.get("embedding")])
        own = own_members(answer, _READ)
        return Embeddings(vectors, reported_usage(tokens, 0), own=own)


def invoke_url(draft: TaskDraft) -> str:
    """Return the address of InvokeModel for the model."""
    return draft.target.base_url + path_with_model(draft.wire.path, draft.target.upstream_model)
