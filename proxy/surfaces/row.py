"""A surface as a row: everything in which the four completion APIs differ is data here. Never knows which one it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from providers.unified import Operation, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.chat import ChatRenderer
from proxy.surfaces.draft import Rules
from proxy.surfaces.frames import Style, ascii_json
from proxy.surfaces.parse import parse
from proxy.surfaces.surface import AnswerFacts, Endpoint, ModelCard, Renderer
from proxy.surfaces.text import TextRenderer

MODELS = "models"

MakeRenderer = Callable[[UnifiedRequest, AnswerFacts, Style], Renderer]

RENDERERS: Mapping[Operation, MakeRenderer] = MappingProxyType(
    {Operation.COMPLETIONS: TextRenderer, Operation.CHAT: ChatRenderer}
)
"""Each operation's own shape."""


@dataclass(frozen=True, slots=True)
class SurfaceRow:
    """One of OpenAI, Scale, Fireworks, Private AI Services; see the `Surface` contract for the public members.

    `validation_status` is the status of a body that breaks the rules, `envelope` makes an error's body for a status,
    `renderers` is the shape of each operation's answers.
    """

    name: str
    endpoints: Sequence[Endpoint]
    prefixes: Sequence[str]
    key_headers: Sequence[str]
    default_vendor: str | None
    rules: Rules
    style: Style
    validation_status: int
    envelope: Callable[[ErrorFacts, int], dict[str, object]]
    renderers: Mapping[Operation, MakeRenderer] = field(default_factory=lambda: RENDERERS)

    def parse(self, operation: Operation, body: bytes, default_model: str | None) -> UnifiedRequest:
        """A checked request. Raises GatewayError with every problem found."""
        return parse(self.rules, operation, body, default_model)

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        """Text or chat, as the client asked."""
        return self.renderers[request.operation](request, facts, self.style)

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Status and body. A context overflow is 400 everywhere, whatever other faults of the body are."""
        own = facts.validation and facts.code != "context_length_exceeded"
        status = self.validation_status if own else facts.status
        return status, ascii_json(self.envelope(facts, status))

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """OpenAI's list."""
        return ascii_json({"object": "list", "data": [_card(card) for card in cards]})

    def model(self, card: ModelCard) -> bytes:
        """One entry of it."""
        return ascii_json(_card(card))


def _card(card: ModelCard) -> dict[str, object]:
    """`root` and `max_model_len` are vLLM's: its benchmark indexes the one, Continue reads the other."""
    body: dict[str, object] = {
        "id": card.id,
        "object": "model",
        "created": card.created,
        "owned_by": card.owned_by,
        "root": card.id,
    }
    if card.window is not None:
        body["max_model_len"] = card.window
    return body


def generation_endpoints(*bases: str) -> tuple[Endpoint, ...]:
    """Text and chat completions below each base path."""
    return tuple(
        Endpoint("POST", f"{base}/{path}", operation)
        for base in bases
        for path, operation in (("completions", Operation.COMPLETIONS), ("chat/completions", Operation.CHAT))
    )
