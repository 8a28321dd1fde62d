"""The contract between the gateway and a vendor's wire format: values in, bytes out, and back.

Never holds an implementation, a vendor's name, or I/O.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from providers.auth import Authorities, Credential
from providers.capabilities import Capabilities
from providers.completion import Completion, StreamEvent
from providers.failure import Failure
from providers.permits import NO_PERMITS, Permits
from providers.price import Price
from providers.profiles import Profile
from providers.unified import Operation, UnifiedRequest


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Deadlines of one attempt in seconds: to connect, to the first content of a stream, between pieces, and for the
    whole request; for a stream that has begun, longest without content and in all; until an answer that is not streamed
    begins to come (None = as long as there is reason to wait). `written` names those that an operator chose."""

    connect: float
    first_event: float
    idle: float
    total: float
    progress: float = 600.0
    stream: float = 3600.0
    answer: float | None = None
    written: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RetryBudget:
    """What a name gains for repeats: a `share` of its requests and some `per_second`, and the `least` that it holds
    when it is full; None = what is built in."""

    share: float | None = None
    per_second: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Retries:
    """Attempts of a request at most, and what may be repeated after a failure here: `safe`, whatever may pass;
    `strict`, what cannot have been generated; `off`, nothing. `same_deployment` is how often an
    attempt is repeated here before another deployment is asked. `budget` counts where a request begins here."""

    attempts: int = 3
    safety: Literal["safe", "strict", "off"] = "safe"
    same_deployment: int = 0
    budget: RetryBudget = RetryBudget()


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The failures in a row after which a deployment is left alone, for how many seconds the first time, and the most
    that this grows to while it goes on failing; None = what is built in."""

    failures: int | None = None
    cooldown: float | None = None
    longest_cooldown: float | None = None


COPIED = 2**20
"""Bytes of a body that takes less to copy than to keep in too large a buffer; of a larger buffer the rest is never
touched, and costs no memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """A deployment ready to call.

    `vendor`, `model` and `deployment` are the table's names; `upstream_model` is what the vendor is told. `base_url`
    has every placeholder filled in and no trailing slash; `row` is the key of `models` it comes from. `completions`
    overrides the profile's answer to whether this model takes raw prompts (None = ask the profile). `on_unsupported`
    is what becomes of a field the deployment cannot honour; `context_behavior` the `context_length_exceeded_behavior`
    of clients who send none (None = the surface's). A team's own word beats both. `price` is None where nobody said it.
    `authorities` vouch for the vendor's certificate (None = the system's). `permits` is what clients may send to it,
    `concurrent` how many requests it may have under way (None = no such word). `stream_upstream` says whether a whole
    answer may be asked for as a stream.
    """

    vendor: str
    model: str
    deployment: str
    upstream_model: str
    profile: Profile
    dialect: "Dialect"
    base_url: str
    credential: Credential
    timeouts: Timeouts
    weight: int = 1
    context_window: int | None = None
    max_output_tokens: int | None = None
    api_version: str | None = None
    completions: bool | None = None
    allow_private: bool = False
    row: str = ""
    on_unsupported: Literal["error", "drop"] = "error"
    context_behavior: Literal["truncate", "error"] | None = None
    price: Price | None = None
    retries: Retries = Retries()
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    authorities: Authorities | None = None
    permits: Permits = NO_PERMITS
    stream_upstream: Literal["auto", "off"] = "off"
    concurrent: int | None = None
    label: str = field(init=False)
    """What metrics call it: `row/deployment`, where `row` is the table's key (`vendor/*` for a wildcard), so that no
    client can add a label value."""
    identity: tuple[str, str, str] = field(init=False)
    """Which deployment it is, over all tables: its label, its address and, of a row for any model, the model: one that
    is overloaded says nothing of the others."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", f"{self.row}/{self.deployment}")
        model = self.model if self.row.endswith("/*") else ""
        object.__setattr__(self, "identity", (self.label, self.base_url, model))

    @property
    def name(self) -> str:
        """`vendor/model/deployment`, the value of the `x-dragoman-deployment` header."""
        return f"{self.vendor}/{self.model}/{self.deployment}"

    @property
    def is_engine(self) -> bool:
        """Whether the server runs in the operator's network and answers to nobody else: it acts there on what clients
        name, whichever row describes its API."""
        return self.profile.engine or self.allow_private


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """One call as it goes on the wire, without the credential, and what decoding its answer needs to know.

    `operation` is what the upstream was asked, which differs from the client's when a prompt was wrapped into a chat.
    `emulated` names the unified fields whose effect the gateway makes itself. `tool_names` maps a tool's name on the
    wire to the client's where it had to change. `unwrap_choice` says that the text is a JSON object whose `choice`
    member is the answer.
    """

    target: Target
    operation: Operation
    url: str
    body: bytes = field(repr=False)
    stream: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    tool_names: Mapping[str, str] = field(default_factory=dict)
    unwrap_choice: bool = False
    content_type: str = "application/json"

    def __post_init__(self) -> None:
        # orjson 3.13 gives its result in the whole buffer that it wrote into: 4 KB at least, eight times the length of
        # a long text. A stream would hold that until it ends.
        if len(self.body) <= COPIED:
            object.__setattr__(self, "body", bytes(memoryview(self.body)))


class StreamDecoder(Protocol):
    """Turns a vendor's stream into events; fed pieces of any size, gives the same events whatever the cuts."""

    @property
    def complete(self) -> bool:
        """Whether the stream has proved that it ended well; nothing after that is read."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode one piece. Raises UpstreamError at the point of an in-band error or of bytes that make no sense;
        events before that point have been yielded."""

    def finish(self) -> Iterator[StreamEvent]:
        """The body ended. Yields what was held back; raises UpstreamError(TRUNCATED) unless the stream proved its
        end."""


class Dialect(Protocol):
    """One wire format. Stateless: one instance serves every target that speaks it."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """What becomes of each feature on the endpoint that this request goes to. Raises Refusal when the target has
        none for it."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """The exact upstream call. Raises Refusal when the target cannot honour a field; never edits its input."""

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """A whole 2xx body. Raises UpstreamError when it is an error in disguise or makes no sense."""

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """A fresh decoder for a 2xx streamed answer."""

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """What an answer with another status means. `headers` has lower-case names."""
