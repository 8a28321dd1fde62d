"""The contract of a surface. A surface is an API that clients speak, as pure functions between bytes and the unified
types."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final, Protocol, runtime_checkable

from providers.completion import Chunk, Completion, TextRun, Usage
from providers.frozen_record import frozen
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
"""The fields in which clients of the chat API get reasoning, by the configuration's word for the choice of fields."""


class ReadAction(Enum):
    """Actions that only read. MODELS is the models list and, below its path, one model. USAGE is the usage of the
    team."""

    MODELS = "models"
    USAGE = "usage"


class StoredAction(Enum):
    """Actions on stored responses. The paths of the first four contain the id of a response."""

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


@frozen
class StoredResponse:
    """A response that was stored for later turns, in the form of the Responses API.

    `ancestors` are the ids of the responses before it, oldest first. `input` are the items of its own request alone,
    each with an id. `response` is the object that the client got; its `output` has the items of the response. A later
    turn reads only `id` and `output` of that object. The whole value is read-only.
    """

    id: str
    ancestors: tuple[str, ...]
    input: tuple[JsonObject, ...]
    response: JsonObject


@frozen
class ReferredIds:
    """The ids to which a body refers: the response that it continues (`None` if there is none), and single items."""

    previous: str | None = None
    items: tuple[str, ...] = ()


@frozen
class RequestContext:
    """The parts of a request outside its body.

    `headers` are the client's, by case-insensitive name. `chain` are the stored responses that the request continues,
    oldest first. `items` are the stored items that it refers to, by id; items that were not found are absent. If
    `stores` is false, the operator lets no response be stored, even if the client requests it. If `recalled` is false,
    `chain` and `items` are not known yet.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    chain: tuple[StoredResponse, ...] = ()
    items: Mapping[str, JsonObject] = field(default_factory=dict)
    stores: bool = True
    recalled: bool = True


NO_CONTEXT = RequestContext()


class NotRecalledError(Exception):
    """A body refers to stored responses or items, but they have not been read from the store; `referred` are their
    ids."""

    def __init__(self, referred: ReferredIds) -> None:
        super().__init__()
        self.referred = referred


NAME: Final = "{id}"
"""A placeholder for one segment in an endpoint's path."""

MODEL: Final = "{model}"
"""A placeholder for the name of a model in an endpoint's path; the name may have several segments."""

AZURE: Final = ("/openai/v1", "/openai")
"""The prefixes of OpenAI's paths at Azure, in its newer API and in the one with an `api-version`."""


KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment, which clients of event streams skip (HTML standard, "Parsing an event stream")."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path of a surface, and its action. The path may contain a NAME or a MODEL."""

    method: str
    path: str
    action: Action


@frozen
class AnswerFacts:
    """Facts about a response: the random part of its id, the unix time in seconds, the model's name for the client, and
    the fields that hold its reasoning in the form of chat."""

    unique: str
    created: int
    model: str
    reasoning: tuple[str, ...] = REASONING_FIELDS["reasoning_content"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One entry of the models list.

    `window` is the context window, and `max_output` the longest possible response, in tokens. Both, and the price,
    apply to every target of the name; `None` if that is not known.
    """

    id: str
    created: int
    owned_by: str
    window: int | None = None
    max_output: int | None = None
    price: Price | None = None


class Renderer(Protocol):
    """Renders one response. It holds the state of a stream, so each request has its own.

    After `error` the connection is closed without the end of the body, so that clients that ignore the event notice
    too. This does not apply to an EndingRenderer.
    """

    def completion(self, completion: Completion) -> bytes:
        """Return the body of a non-streaming response."""

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of one chunk, as bytes; empty if the chunk is held back."""

    def run(self, run: TextRun) -> bytes | None:
        """Return the events of all chunks of a run; `None` if `chunk` must be called for each chunk of the run."""

    def usage(self, usage: Usage) -> bytes:
        """Store the usage. Return held-back events that can be sent now."""

    def end(self) -> bytes:
        """Return the held-back chunks, the usage if the surface reports it last, and the terminator."""

    def error(self, facts: ErrorFacts) -> bytes:
        """Return the events of a broken stream, without a finish reason and without a terminator that means success."""


class EndingRenderer:
    """Base of the renderers whose `error` is an event that ends a stream and that every client of the API knows. The
    body then ends properly, because an SDK that reads on would treat a truncated body as a broken connection and hide
    the event."""

    __slots__ = ()


LiteralWriter = Callable[[bytes], bytes]
"""A function that writes the event of a literal that a FramingRenderer has returned, or of a plain literal."""


class FramingRenderer:
    """Base of the renderers whose events for one part of a choice consist of constants and literals between them."""

    __slots__ = ()

    def around(self, run: TextRun) -> tuple[bytes, ...] | None:
        """Return the constants of the events of a run, at least two: each event consists of the constants, with one
        literal of the run between every two constants. `None` if there are no such constants. The result is valid for
        literals of the same part, choice and fingerprint, until the next chunk."""
        return None

    def literal_writer(self, run: TextRun) -> LiteralWriter | None:
        """Return a function that writes the event of one literal of a run. It is for events for which `around` has no
        constants, because each event has its own number, or because the end of the stream repeats the literals. Return
        `None` if `chunk` must be called for each chunk. The returned function is valid as long as the result of
        `around`. It returns empty bytes, and changes nothing, if `chunk` must be called for this chunk."""
        return None

    def literal(self, text: str, written: bytes) -> bytes:
        """Return a literal in the form that it has in an event of this API; `written` is the form that the vendor sent.
        A plain literal is unchanged."""
        raise NotImplementedError


@runtime_checkable
class StoringRenderer(Renderer, Protocol):
    """A renderer of an API whose responses can be continued by later requests."""

    def stored(self) -> StoredResponse | None:
        """Return the response to store. Call this after `completion` or `end` has returned.

        Return `None` if the client disabled storage, or if there is no response to store: before the end, after
        `error`, and for a response that reports a failure.
        """

    def unstored(self, rendered: bytes) -> bytes:
        """Return the result of `completion` or `end`, changed so that it reports that the response is not stored."""


class Surface(Protocol):
    """One API that clients speak."""

    @property
    def name(self) -> str:
        """The surface's name in metrics, logs and the configuration."""

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """Every path and method, including aliases."""

    @property
    def prefixes(self) -> Sequence[str]:
        """Path prefixes. An error for an unknown path below one of them has this surface's envelope."""

    @property
    def key_headers(self) -> Sequence[str]:
        """Lower-case header names, in the order in which they are searched for a key."""

    @property
    def reads_context(self) -> bool:
        """Whether requests have parts outside their body that `parse` needs."""

    @property
    def default_vendor(self) -> str | None:
        """The vendor whose name is put before a model name that matches nothing; `None` if there is no such vendor."""

    @property
    def keep_alive(self) -> bytes:
        """The keep-alive of streams: bytes that clients skip between any two events."""

    def parse(
        self, operation: Operation, body: bytes, default_model: str | None, context: RequestContext = NO_CONTEXT
    ) -> UnifiedRequest:
        """Return the checked request, with `default_model` as its model if the body has no `model`. Raises GatewayError
        with every problem."""

    def renderer(self, request: UnifiedRequest, facts: AnswerFacts) -> Renderer:
        """Return a renderer for the response to this request."""

    def error(self, facts: ErrorFacts) -> tuple[int, bytes]:
        """Return the HTTP status and the body of an error in the surface's envelope."""

    def models(self, cards: Sequence[ModelCard]) -> bytes:
        """Return the body of the models list."""

    def model(self, card: ModelCard) -> bytes:
        """Return the body of one model."""


@runtime_checkable
class StoringSurface(Surface, Protocol):
    """An API whose requests refer to stored responses by id. Its renderers are StoringRenderers."""

    def referred_ids(self, body: bytes) -> ReferredIds:
        """Return the ids to which a body refers, to be looked up for `parse`; empty for a body that is not a JSON
        object. A body without references costs almost no time."""
