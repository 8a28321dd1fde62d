"""The contract of a surface: an API that clients speak, as pure functions between bytes and the unified types.

Never holds I/O, retries, or knowledge of a vendor.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from providers.completion import Chunk, Completion, Usage
from providers.unified import Operation, UnifiedRequest
from proxy.errors import ErrorFacts


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path of a surface. `action` is an operation, or `models` for the list and, with a prefix match, one model."""

    method: str
    path: str
    action: Operation | str


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """What the gateway decides of an answer: its id's random part, unix seconds, the model's name for the client."""

    unique: str
    created: int
    model: str


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the models list; `window` is the context window in tokens, None when the table does not say."""

    id: str
    created: int
    owned_by: str
    window: int | None


class Renderer(Protocol):
    """Renders one answer; stateful for a stream, made fresh for each client request.

    After `error` the connection is cut without the body's end, so that clients which ignore the frame notice too.
    """

    def completion(self, completion: Completion) -> bytes:
        """The body of an answer that is not streamed."""

    def chunk(self, chunk: Chunk) -> bytes:
        """Frames for one chunk; empty when it is held back."""

    def usage(self, usage: Usage) -> bytes:
        """Take note of the usage; frames when the surface reports it at once."""

    def end(self) -> bytes:
        """What was held back, the usage where it belongs, and the terminator."""

    def error(self, facts: ErrorFacts) -> bytes:
        """Frames that say the stream broke; never a finish reason or a terminator that means success."""


class Surface(Protocol):
    """One API. `default_vendor` is asked when a model's name resolves to nothing; None when the surface has none."""

    @property
    def name(self) -> str:
        """The surface's name in metrics, logs and the routing table."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Every path served, aliases included."""

    @property
    def prefixes(self) -> Sequence[str]:
        """Path prefixes whose router errors are rendered in this surface's envelope."""

    @property
    def key_headers(self) -> Sequence[str]:
        """Lower-case header names in the order a key is looked for."""

    @property
    def default_vendor(self) -> str | None:
        """The vendor of a model name that names none."""

    def parse(self, operation: Operation, body: bytes, default_model: str | None) -> UnifiedRequest:
        """A checked request; `default_model` stands in for a missing model. Raises GatewayError with every problem."""

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        """How this request's answer is written."""

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Status and body of an error in the surface's envelope."""

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """The models list."""

    def model(self, card: ModelCard) -> bytes:
        """One model."""
