"""The contract of a surface: an API that clients speak, as pure functions between bytes and the unified types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from providers.completion import Chunk, Completion, TextRun, Usage
from providers.frozen_record import record
from providers.json_types import JsonObject
from providers.pricing import Price
from providers.unified_request import Operation, Task, UnifiedRequest
from proxy.errors import ErrorFacts

REASONING_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reasoning_content": ("reasoning_content",),
        "reasoning": ("reasoning",),
        "both": ("reasoning_content", "reasoning"),
    }
)
"""The fields in which clients of chats get reasoning, by the word for them in the configuration."""


class ReadAction(Enum):
    """Actions that only read: MODELS is the models list and, below its path, one model; USAGE what the team used."""

    MODELS = "models"
    USAGE = "usage"


class StoredAction(Enum):
    """Actions on stored responses. Below the path of the first four stands the id of one."""

    RETRIEVE = "retrieve"
    DELETE = "delete"
    INPUT_ITEMS = "input_items"
    CANCEL = "cancel"
    COMPACT = "compact"
    INPUT_TOKENS = "input_tokens"


class CountAction(Enum):
    """Actions that measure a request and generate nothing."""

    TOKENS = "count_tokens"


Action = Operation | Task | ReadAction | StoredAction | CountAction


@record
class StoredResponse:
    """A response that was stored for later turns, as the Responses API has it.

    `ancestors` are the ids of the responses before it, oldest first; `input` the items of its own request alone, each
    with an id; `response` the object that the client got, whose `output` holds its items. For a later turn it is read
    with `id` and `output` alone. All of it is read-only.
    """

    id: str
    ancestors: tuple[str, ...]
    input: tuple[JsonObject, ...]
    response: JsonObject


@record
class ReferredIds:
    """What a body refers to by id: the response that it continues (None = none), and single items."""

    previous: str | None = None
    items: tuple[str, ...] = ()


@record
class RequestContext:
    """What belongs to a request besides its body.

    `headers` are the client's, by case-insensitive name. `chain` are the stored responses that it continues, oldest
    first, and `items` the stored items that it names, by id: what is not found is absent. Where `stores` is not set,
    the operator lets no answer be stored, whatever the client asks for. While it is not `recalled`, both are unknown.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    chain: tuple[StoredResponse, ...] = ()
    items: Mapping[str, JsonObject] = field(default_factory=dict)
    stores: bool = True
    recalled: bool = True


NO_CONTEXT = RequestContext()


class NotRecalledError(Exception):
    """A body refers to stored responses or items before they have been recalled; `referred` are their ids."""

    def __init__(self, referred: ReferredIds) -> None:
        super().__init__()
        self.referred = referred


NAME: Final = "{id}"
"""Stands for one segment in an endpoint's path."""

MODEL: Final = "{model}"
"""Stands for the name of a model in an endpoint's path, which may have several segments."""

AZURE: Final = ("/openai/v1", "/openai")
"""The prefixes of OpenAI's paths at Azure, in its newer API and in the one with an `api-version`."""


KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients of event streams skip (HTML standard, "Parsing an event stream")."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path of a surface, and its action. A path may have a NAME or a MODEL."""

    method: str
    path: str
    action: Action


@record
class AnswerFacts:
    """Fields of a response: the random part of its id, unix seconds, the model's name for the client, and the fields
    that hold its reasoning in the form of chat."""

    unique: str
    created: int
    model: str
    reasoning: tuple[str, ...] = REASONING_FIELDS["reasoning_content"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the models list.

    `window` is the context window and `max_output` the most of an answer, in tokens. Both, and the price, hold for
    every target of the name; None where that is not known.
    """

    id: str
    created: int
    owned_by: str
    window: int | None = None
    max_output: int | None = None
    price: Price | None = None


class Renderer(Protocol):
    """Renders one answer; keeps the state of a stream, so each request has its own.

    After `error` the connection is closed without the end of the body, so that clients which ignore the event notice
    too; not for an EndingRenderer.
    """

    def completion(self, completion: Completion) -> bytes:
        """Return the body of an answer that is not streamed."""

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of one chunk; empty while it is held back."""

    def run(self, run: TextRun) -> bytes | None:
        """Return the events of the chunks of a run, as `chunk` does; None where each has to be asked for."""

    def usage(self, usage: Usage) -> bytes:
        """Store the usage, and return the events that it completes."""

    def end(self) -> bytes:
        """Return what was held back, the usage where the surface reports it last, and the terminator."""

    def error(self, facts: ErrorFacts) -> bytes:
        """Return the events of a broken stream: no finish reason and no terminator that means success."""


class EndingRenderer:
    """Base of those renderers whose `error` is an event that ends a stream of their API, as every client knows. The
    body then ends: an SDK that reads on would take a cut one for a broken connection, and hide the event."""

    __slots__ = ()


LiteralWriter = Callable[[bytes], bytes]
"""Writes the event of a literal that a FramingRenderer has returned, or of a plain one."""


class FramingRenderer:
    """Base of those renderers whose events of one part of a choice are constants and its pieces between them."""

    __slots__ = ()

    def around(self, run: TextRun) -> tuple[bytes, ...] | None:
        """Return the constants of the events of a run, two at least: each event is these with one piece of the run
        between each two. None if there are none. It holds for pieces of the same part, choice and
        fingerprint until the next chunk."""
        return None

    def literal_writer(self, run: TextRun) -> LiteralWriter | None:
        """Return what writes the event of one literal of a run, for events that `around` has no constants of: because
        each has its number, or because the end of the stream repeats them. `None` if each chunk has to be asked for.
        It holds as `around` does. It returns nothing, and changes nothing, if the chunk has to be asked for."""
        return None

    def literal(self, text: str, written: bytes) -> bytes:
        """Return a piece as it stands in an event; the vendor wrote it as `written`. A plain one stands for itself."""
        raise NotImplementedError


@runtime_checkable
class StoringRenderer(Renderer, Protocol):
    """A renderer of an API whose answers later requests refer to."""

    def stored(self) -> StoredResponse | None:
        """Return what is to be stored, once `completion` or `end` has returned.

        None where the client asked that nothing be, and where there is no answer: before the end, after `error`, and
        for an answer that says it failed.
        """

    def unstored(self, shown: bytes) -> bytes:
        """Return what `completion` or `end` has returned, saying that the answer is not stored."""


class Surface(Protocol):
    """One API."""

    @property
    def name(self) -> str:
        """The surface's name in metrics, logs and the routing table."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Every path and method, aliases included."""

    @property
    def prefixes(self) -> Sequence[str]:
        """Path prefixes below which errors of unknown paths have this surface's envelope."""

    @property
    def key_headers(self) -> Sequence[str]:
        """Lower-case header names in the order in which a key is looked for."""

    @property
    def reads_context(self) -> bool:
        """Whether requests have parts outside their body, for `parse`."""

    @property
    def default_vendor(self) -> str | None:
        """The vendor of model names that resolve to nothing without one; None = no vendor."""

    @property
    def keep_alive(self) -> bytes:
        """The keep-alive of streams: bytes that clients skip between any two events."""

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> UnifiedRequest:
        """Return the checked request; a missing `model` is `default_model`. Raises GatewayError with every problem."""

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        """Return a renderer for the answer to this request."""

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Return status and body of an error in the surface's envelope."""

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """Return the body of the models list."""

    def model(self, card: ModelCard) -> bytes:
        """Return the body of one model."""


@runtime_checkable
class StoringSurface(Surface, Protocol):
    """An API whose requests refer to stored answers by id. Its renderers are StoringRenderers."""

    def referred_ids(self, body: bytes) -> ReferredIds:
        """Return the ids that a body refers to, to look up for `parse`; none for a body that is no JSON object. Costs
        next to nothing for a body that refers to nothing."""
