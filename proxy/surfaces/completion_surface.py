"""A surface made of data: everything in which the completion APIs differ is a field of CompletionSurface.

Members of the models list beyond OpenAI's: vLLM 0.32 `entrypoints/openai` (`root`, `max_model_len`); OpenRouter,
"Models API Standard" (`context_length`, `top_provider`, `pricing`); both read in November 2026.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType

from providers.target import Price
from providers.unified_request import Operation, Task, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.request.parse_request import parse
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.response.chat import ChatRenderer
from proxy.surfaces.response.text import TextRenderer
from proxy.surfaces.response.write_sse import AnswerStyle, ascii_json
from proxy.surfaces.surface import NO_CONTEXT, AnswerFacts, Endpoint, ModelCard, ReadAction, Renderer, RequestContext

MakeRenderer = Callable[[UnifiedRequest, AnswerFacts, AnswerStyle], Renderer]

RENDERERS: Mapping[Operation, MakeRenderer] = MappingProxyType(
    {Operation.COMPLETIONS: TextRenderer, Operation.CHAT: ChatRenderer}
)
"""The form of answers by operation, unless a surface has its own."""

OPERATION_PATHS: Mapping[Operation, str] = MappingProxyType(
    {Operation.COMPLETIONS: "completions", Operation.CHAT: "chat/completions"}
)
"""OpenAI's path of each operation below a base path."""


TASK_PATHS: Mapping[Task, str] = MappingProxyType(
    {
        Task.MODERATIONS: "moderations",
        Task.TRANSCRIPTIONS: "audio/transcriptions",
        Task.SPEECH: "audio/speech",
        Task.IMAGES: "images/generations",
    }
)
"""OpenAI's path of each task below a base path."""


@dataclass(frozen=True, slots=True)
class CompletionSurface:
    """One API; the `Surface` contract describes its public members.

    `validation_status` is the status for an invalid body, `envelope` makes the body of an error with a status,
    `renderers` has the form of each operation's answers.
    """

    name: str
    endpoints: Sequence[Endpoint]
    prefixes: Sequence[str]
    key_headers: Sequence[str]
    default_vendor: str | None
    rules: SurfaceRules
    style: AnswerStyle
    validation_status: int
    envelope: Callable[[ErrorFacts, int], dict[str, object]]
    renderers: Mapping[Operation, MakeRenderer] = field(default_factory=lambda: RENDERERS)
    reads_context: bool = False

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> UnifiedRequest:
        """See Surface; these APIs have no part of a request outside its body."""
        return parse(self.rules, operation, body, default_model)

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        """See Surface."""
        return self.renderers[request.operation](request, facts, self.style)

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """See Surface. A context overflow is 400 on every surface, other validation errors are `validation_status`."""
        own = facts.validation and facts.code != "context_length_exceeded"
        status = self.validation_status if own else facts.status
        return status, ascii_json(self.envelope(facts, status))

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """See Surface; OpenAI's form."""
        return ascii_json({"object": "list", "data": [_card(card) for card in cards]})

    def model(self, card: ModelCard) -> bytes:
        """See Surface; an entry of the list."""
        return ascii_json(_card(card))


def _card(card: ModelCard) -> dict[str, object]:
    """Return an entry of OpenAI's form, with what is known of the model under the names that clients read: `root` and
    `max_model_len` are vLLM's (its benchmark reads the one, Continue the other), the rest is OpenRouter's."""
    body: dict[str, object] = {
        "id": card.id,
        "object": "model",
        "created": card.created,
        "owned_by": card.owned_by,
        "root": card.id,
    }
    if card.window is not None:
        body["max_model_len"] = body["context_length"] = card.window
    if card.window is not None or card.max_output is not None:
        body["top_provider"] = {"context_length": card.window, "max_completion_tokens": card.max_output}
    if card.price is not None:
        body["pricing"] = _pricing(card.price)
    return body


@lru_cache(maxsize=256)
def _pricing(price: Price) -> dict[str, str]:
    """Return a price as OpenRouter writes it: text in USD per token, without an exponent.

    Cached: of 10,000 models that share a price it would otherwise be most of the list's cost.
    """
    pricing = {"prompt": _per_token(price.input), "completion": _per_token(price.output)}
    if price.cached_input is not None:
        pricing["input_cache_read"] = _per_token(price.cached_input)
    return pricing


def _per_token(per_million: float) -> str:
    # By way of the shortest decimal: 0.15 a million is 0.00000015, not what a binary division leaves of it.
    exact = format(Decimal(repr(per_million)).scaleb(-6), "f")
    return exact.rstrip("0").rstrip(".") if "." in exact else exact


def generation_endpoints(*bases: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of every operation below each base path."""
    return tuple(
        Endpoint("POST", f"{base}/{path}", operation) for base in bases for operation, path in OPERATION_PATHS.items()
    )


def task_endpoints(*bases: str) -> tuple[Endpoint, ...]:
    """Return the endpoints of every task below each base path."""
    return tuple(Endpoint("POST", f"{base}/{path}", task) for base in bases for task, path in TASK_PATHS.items())


def models_endpoints(*bases: str) -> tuple[Endpoint, ...]:
    """Return the endpoint of the models list below each base path."""
    return tuple(Endpoint("GET", f"{base}/models", ReadAction.MODELS) for base in bases)
