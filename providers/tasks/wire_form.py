"""The protocols of wire forms, which write the calls of a task and read their responses."""

from collections.abc import Mapping
from typing import Protocol

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft


class EmbeddingsForm(Protocol):
    """A wire form of embeddings. It has no state: one instance serves all targets that use it."""

    def url(self, draft: TaskDraft) -> str:
        """Return the URL of the calls. Raises Refusal if the target's settings do not determine it."""

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        """Return the body of the call for some of the inputs. Does not change the draft. Raises Refusal."""

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        """Read a 2xx response. `headers` has lower-case names. The number of vectors is not checked here, but when the
        responses are joined. Raises UpstreamError."""


class RerankForm(Protocol):
    """A wire form of rerank."""

    def url(self, draft: TaskDraft) -> str:
        """Return the URL of the call. Raises Refusal if the target's settings do not determine it."""

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        """Return the body of the call. Does not change the draft. Raises Refusal."""

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        """Read a 2xx response, whose documents may be in any order. Raises UpstreamError."""
