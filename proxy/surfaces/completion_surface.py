"""A surface that is defined by data: every difference between the completion APIs is a field of CompletionSurface."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from providers.unified_request import Operation, Task, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.request.parse_request import parse
from proxy.surfaces.request.parse_state import SurfaceRules
from proxy.surfaces.response.chat import ChatRenderer
from proxy.surfaces.response.models_list import model_body, models_body
from proxy.surfaces.response.text import TextRenderer
from proxy.surfaces.response.write_sse import AnswerStyle, ascii_json
from proxy.surfaces.surface import (
    KEEP_ALIVE,
    NO_CONTEXT,
    AnswerFacts,
    Endpoint,
    ModelCard,
    ReadAction,
    Renderer,
    RequestContext,
)

MakeRenderer = Callable[[UnifiedRequest, AnswerFacts, AnswerStyle], Renderer]

RENDERERS: Mapping[Operation, MakeRenderer] = MappingProxyType(
    {Operation.COMPLETIONS: TextRenderer, Operation.CHAT: ChatRenderer}
)
"""The renderer of each operation, unless a surface has its own."""

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
    """One API; the `Surface` contract describes its public fields.

    `validation_status` is the HTTP status for an invalid body. `envelope` builds the body of an error with a status.
    `renderers` has the renderer of each operation.
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
    keep_alive: bytes = KEEP_ALIVE

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> UnifiedRequest:
        """Return the checked request. These APIs have no part of a request outside its body."""
        return parse(self.rules, operation, body, default_model)

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        return self.renderers[request.operation](request, facts, self.style)

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Return the HTTP status and the body of an error. A context overflow has the status 400 on every surface;
        other validation errors have `validation_status`."""
        own = facts.validation and facts.code != "context_length_exceeded"
        status = self.validation_status if own else facts.status
        return status, ascii_json(self.envelope(facts, status))

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """Return the body of the models list, in OpenAI's form."""
        return models_body(cards)

    def model(self, card: ModelCard) -> bytes:
        """Return the body of one model, which is an entry of the list."""
        return model_body(card)


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
