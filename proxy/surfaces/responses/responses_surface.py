"""OpenAI's Responses API as an API for clients.

Sources: OpenAI OpenAPI 2.3.0 `createResponse`; openai 3.54.0 for Python and 6.49.0 for Node; Codex CLI 0.169.0,
November 2026. The paths exist without `/v1` too, because clients put it into the base URL or forget it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from providers.unified_request import Operation, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.response.error_body import openai_body
from proxy.surfaces.response.models_list import model_body, models_body
from proxy.surfaces.response.write_sse import ascii_json
from proxy.surfaces.responses.input_items import referred_ids
from proxy.surfaces.responses.own_fields import CHATS_FIELD
from proxy.surfaces.responses.read_request import read_request
from proxy.surfaces.responses.renderer import ResponsesRenderer
from proxy.surfaces.responses.request_draft import ResponsesRequest
from proxy.surfaces.surface import (
    AZURE,
    KEEP_ALIVE,
    NO_CONTEXT,
    AnswerFacts,
    Endpoint,
    ModelCard,
    ReferredIds,
    RequestContext,
    StoredAction,
    StoringRenderer,
)

_BASES: Final = ("/v1/responses", "/responses", *(f"{base}/responses" for base in AZURE))

_STORED: Mapping[tuple[str, str], StoredAction] = MappingProxyType(
    {
        ("GET", "/{id}"): StoredAction.RETRIEVE,
        ("DELETE", "/{id}"): StoredAction.DELETE,
        ("GET", "/{id}/input_items"): StoredAction.INPUT_ITEMS,
        ("POST", "/{id}/cancel"): StoredAction.CANCEL,
        ("POST", "/compact"): StoredAction.COMPACT,
        ("POST", "/input_tokens"): StoredAction.INPUT_TOKENS,
    }
)
"""The endpoints of stored responses, below each base path."""

_PARAMS: Mapping[str, str] = MappingProxyType(
    {
        "messages": "input",
        "max_tokens": "max_output_tokens",
        "response_format": "text.format",
        "verbosity": "text.verbosity",
        "reasoning_effort": "reasoning.effort",
        "logprobs": "include",
    }
)
"""The names of the client's fields, by the unified fields that errors of targets name."""


@dataclass(frozen=True, slots=True)
class ResponsesSurface:
    """OpenAI's Responses API as a surface. The `Surface` and `StoringSurface` contracts describe its public fields."""

    name: str = "responses"
    endpoints: Sequence[Endpoint] = (
        *(Endpoint("POST", base, Operation.CHAT) for base in _BASES),
        *(Endpoint(method, base + path, action) for base in _BASES for (method, path), action in _STORED.items()),
    )
    prefixes: Sequence[str] = _BASES
    key_headers: Sequence[str] = ("authorization", "x-api-key", "api-key")
    reads_context: bool = True
    default_vendor: str | None = "openai"
    keep_alive: bytes = KEEP_ALIVE

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> ResponsesRequest:
        return read_request(body, default_model, context)

    def referred_ids(self, body: bytes) -> ReferredIds:
        return referred_ids(body)

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> StoringRenderer:
        return ResponsesRenderer(request, facts)

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Return the HTTP status and the body of an error in OpenAI's envelope, which names the client's own fields. If
        a field is refused because it belongs to chats, the error names it as the client wrote it."""
        own = _PARAMS.get(facts.param or "")
        if own is not None and not facts.message.startswith(f"'{facts.param}' {CHATS_FIELD}"):
            facts = replace(facts, param=own, message=facts.message.replace(f"'{facts.param}'", f"'{own}'"))
        return facts.status, ascii_json(openai_body(facts, facts.status))

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """Return the body of the models list, whose path belongs to the openai surface."""
        return models_body(cards)

    def model(self, card: ModelCard) -> bytes:
        return model_body(card)


RESPONSES: Final = ResponsesSurface()
