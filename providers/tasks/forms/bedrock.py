"""The wire forms of Bedrock's Rerank and of Titan's embeddings.

Rerank is an operation of Bedrock's agent runtime, which has its own host.

Sources: botocore 1.44.5 service model `bedrock-agent-runtime`, operation `Rerank` (signed as `bedrock`); Bedrock's user
guide "Improve the relevance of query responses with a reranker model", November 2026.

Titan's embeddings are calls of Bedrock's InvokeModel with one text each.

Sources: botocore 1.44.5 service model `bedrock-runtime`, operation `InvokeModel`; Bedrock's user guide "Amazon Titan
Text Embeddings", November 2026. The service sends the header with the token count with every response of InvokeModel.
"""

import re
from collections.abc import Mapping
from typing import Final

from providers.completion import count_of, reported_usage
from providers.dialect import UpstreamRequest
from providers.dialects.shared.read_json import malformed
from providers.failure import Refusal
from providers.json_types import JsonObject, merged
from providers.tasks.answer_bounds import strict_object
from providers.tasks.embeddings import Embeddings, Texts, TokenLists
from providers.tasks.forms.ranked import read_results
from providers.tasks.own_members import vendor_fields
from providers.tasks.read_vectors import listed, read_vectors
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft, path_with_model

_RUNTIME = re.compile(r"^(https?://)bedrock-runtime(\.(?P<region>[a-z0-9-]+)\.)")


class BedrockRerank:
    """The `RerankForm` of Bedrock."""

    def url(self, draft: TaskDraft) -> str:
        return _RUNTIME.sub(r"\1bedrock-agent-runtime\2", draft.target.base_url) + draft.wire.path

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        model: JsonObject = {"modelArn": _arn(draft)}
        setting: JsonObject = {"bedrockRerankingConfiguration": {"modelConfiguration": model}}
        body: JsonObject = {
            "queries": [{"type": "TEXT", "textQuery": {"text": request.query}}],
            "sources": [_source(text) for text in request.documents],
            "rerankingConfiguration": {"type": "BEDROCK_RERANKING_MODEL", **setting},
        }
        return merged(body, draft.optional_fields)

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        answer = strict_object(body)
        if answer.get("nextToken"):
            raise malformed("continues on another page")
        results = read_results(listed(answer, "results"), "relevanceScore")
        return Ranking(results, own=vendor_fields(answer, ("results", "nextToken")))


def _source(text: str) -> JsonObject:
    inline: JsonObject = {"type": "TEXT", "textDocument": {"text": text}}
    return {"type": "INLINE", "inlineDocumentSource": inline}


def _arn(draft: TaskDraft) -> str:
    """Return the model's ARN: the configured ARN, or the ARN of the region's foundation model."""
    model = draft.target.upstream_model
    if model.startswith("arn:"):
        return model
    found = _RUNTIME.match(draft.target.base_url)
    if found is None:
        message = f"{draft.target.name} needs an ARN as its upstream_model: its base URL does not show the region."
        raise Refusal("model", message, "invalid_value")
    region = found["region"]
    partition = "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
    return f"arn:{partition}:bedrock:{region}::foundation-model/{model}"


COUNT_HEADER: Final = "x-amzn-bedrock-input-token-count"

_READ = frozenset({"embedding", "embeddingsByType", "inputTextTokenCount"})
"""Fields of a response that the gateway reads, or that repeat the vector."""


class TitanEmbeddings:
    """The `EmbeddingsForm` of Titan on Bedrock."""

    def url(self, draft: TaskDraft) -> str:
        return invoke_url(draft)

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        (text,) = inputs
        if not isinstance(text, str):
            raise Refusal("input", f"{draft.target.name} takes texts.", "invalid_value")
        return {"inputText": text, **draft.optional_fields}

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        answer = strict_object(body)
        tokens = count_of(answer.get("inputTextTokenCount"))
        vectors = read_vectors([answer.get("embedding")])
        own = vendor_fields(answer, _READ)
        return Embeddings(vectors, reported_usage(tokens, 0), own=own)


def invoke_url(draft: TaskDraft) -> str:
    """Return the URL of InvokeModel for the model."""
    return draft.target.base_url + path_with_model(draft.wire.path, draft.target.upstream_model)
