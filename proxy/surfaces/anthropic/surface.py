"""Anthropic's Messages API as a surface.

Sources: `anthropic` 2.12.0; Claude Code 2.1.197, whose requests have a query string that the gateway ignores, November
2026.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from providers.unified_request import Operation, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.anthropic.error_body import error_body, error_status
from proxy.surfaces.anthropic.events import PING
from proxy.surfaces.anthropic.models import model_json, models_json
from proxy.surfaces.anthropic.parse_body import parse_messages
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.response.write_sse import ascii_json
from proxy.surfaces.surface import (
    NO_CONTEXT,
    AnswerFacts,
    CountAction,
    Endpoint,
    ModelCard,
    ReadAction,
    Renderer,
    RequestContext,
)

_PATHS: Final = ("/v1/messages", "/messages", "/anthropic/v1/messages")
"""The paths of the API. Some clients put the version into the base URL, and other gateways serve the API below the
vendor's name."""


@dataclass(frozen=True, slots=True)
class AnthropicSurface:
    """Anthropic's Messages API as a surface; the `Surface` contract describes its public fields."""

    name: str = "anthropic"
    endpoints: Sequence[Endpoint] = (
        *(Endpoint("POST", path, Operation.CHAT) for path in _PATHS),
        *(Endpoint("POST", f"{path}/count_tokens", CountAction.TOKENS) for path in _PATHS),
        Endpoint("GET", "/anthropic/v1/models", ReadAction.MODELS),
    )
    prefixes: Sequence[str] = (*_PATHS, "/anthropic")
    key_headers: Sequence[str] = ("x-api-key", "authorization", "api-key")
    default_vendor: str | None = "anthropic"
    reads_context: bool = True
    keep_alive: bytes = PING

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> UnifiedRequest:
        return parse_messages(body, default_model, context.headers)

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        return MessagesRenderer(request, facts)

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        return error_status(facts), ascii_json(error_body(facts))

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        return models_json(cards)

    def model(self, card: ModelCard) -> bytes:
        return ascii_json(model_json(card))


ANTHROPIC: Final = AnthropicSurface()
