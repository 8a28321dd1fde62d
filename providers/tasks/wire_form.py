"""The contract of a wire form: how the calls of a task are written in it and their answers read."""

from collections.abc import Mapping
from typing import Protocol

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.tasks.embeddings import Embeddings, Texts, TokenLists
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.task_draft import TaskDraft


class EmbeddingsForm(Protocol):
    """One wire form of embeddings. Stateless: one instance serves every target that has it."""

    def url(self, draft: TaskDraft) -> str:
        """Return the address of the calls. Raises Refusal where the target's settings do not give it."""

    def body(self, draft: TaskDraft, inputs: Texts | TokenLists) -> JsonObject:
        """Return the body of the call for some of the inputs. Raises Refusal; does not change the draft."""

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Embeddings:
        """Read a 2xx answer, whose headers have lower-case names. Raises UpstreamError; how many vectors there must be
        is checked when the answers are joined."""


class RerankForm(Protocol):
    """One wire form of rankings."""

    def url(self, draft: TaskDraft) -> str:
        """Return the address of the call. Raises Refusal where the target's settings do not give it."""

    def body(self, draft: TaskDraft, request: RerankRequest) -> JsonObject:
        """Return the body of the call. Raises Refusal; does not change the draft."""

    def decode(self, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes) -> Ranking:
        """Read a 2xx answer in any order. Raises UpstreamError."""
