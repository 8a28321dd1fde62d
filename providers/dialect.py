"""The contract of a dialect: it encodes a unified request for a vendor and decodes the vendor's answer."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast, runtime_checkable

from providers.capabilities import Capabilities
from providers.completion import Completion, StreamEvent, TextRun, Usage
from providers.failure import Failure
from providers.frozen_record import record
from providers.target import Target
from providers.unified_request import AnyOperation, UnifiedRequest

A = TypeVar("A")

COPIED = 2**20
"""The largest body in bytes that is copied out of its buffer. A larger buffer costs no memory for the part not written.
"""


class Upload(Protocol):
    """The body of a call that is not held in memory."""

    @property
    def length(self) -> int:
        """Its length in bytes."""

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield its bytes, from the beginning each time."""


@record
class UpstreamRequest:
    """One call as it is sent, without the credential, and what decoding its answer requires.

    `operation` is that of the upstream endpoint, which differs from the client's when a prompt was wrapped into a chat.
    `emulated` names the unified fields that the gateway emulates, `dropped` what is advisory and was left out: fields,
    and members of messages such as `cache_control`. `unheld` names the constraints that the vendor cannot be held to by
    what is sent, so that the answer must be checked. `in_text` says that the constraint is not in the body at all and
    has to be told in the prompt. `tool_names` maps a tool's name on the wire to the client's where it had to change;
    `custom_tools` are the client's names of tools that take a text, which were sent as functions with that text as
    their argument `input`. `unwrap_choice` says that the text is a JSON object whose `choice` member is the answer.
    `native` says that the answer is in the client's own API and is shown as it is. `responses_because` is why a request
    of another API goes to the vendor's Responses API, empty if it does not. `upload` is sent in place of `body`.
    `choices` is how many the answer must have. `trace` are lines of the head that say which trace the call is part of.
    `written` says that the call was sent, so that the vendor may bill it. `honoured` names what the translation of the
    client's request left out and the call says nonetheless. `whole` says that the response is one body although the
    client reads a stream. `connecting` is how many seconds making connections for the call took.
    """

    target: Target
    operation: AnyOperation
    url: str
    body: bytes = field(repr=False)
    stream: bool
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    unheld: tuple[str, ...] = ()
    in_text: bool = False
    tool_names: Mapping[str, str] = field(default_factory=dict)
    unwrap_choice: bool = False
    custom_tools: frozenset[str] = frozenset()
    content_type: str = "application/json"
    native: bool = False
    responses_because: str = ""
    upload: Upload | None = field(default=None, repr=False)
    choices: int = 1
    trace: str = field(default="", repr=False, compare=False)
    written: bool = field(default=False, repr=False, compare=False)
    honoured: tuple[str, ...] = ()
    whole: bool = False
    connecting: float = field(default=0.0, repr=False, compare=False)

    def __post_init__(self) -> None:
        # orjson 3.13 returns its result in the whole buffer that it wrote into: 4 KB at least, eight times the length
        # of a long text. A stream would hold that until it ends.
        if len(self.body) <= COPIED:
            object.__setattr__(self, "body", bytes(memoryview(self.body)))

    def let_body_go(self) -> None:
        """Free the memory of the body, once an answer's content has begun to come: nothing is sent again then, and a
        stream may last for minutes. What decoding a stream requires of the body has been read by then."""
        object.__setattr__(self, "body", b"")

    def note_written(self) -> None:
        """Note that the call is sent."""
        object.__setattr__(self, "written", True)

    def note_connected(self, seconds: float) -> None:
        """Note how long it took to make a connection for the call."""
        object.__setattr__(self, "connecting", self.connecting + seconds)

    def carry_trace(self, lines: str, replaced: frozenset[str]) -> None:
        """Send these lines of the head, in place of headers of the client's that are `replaced` (lower-case names)."""
        if self.headers and not replaced.isdisjoint(map(str.lower, self.headers)):
            own = {name: value for name, value in self.headers.items() if name.lower() not in replaced}
            object.__setattr__(self, "headers", own)
        object.__setattr__(self, "trace", lines)


@record(eq=False)
class TaskCalls(Generic[A]):
    """The calls of one request on one target, and how their answers become one.

    `decode` reads a 2xx answer from its headers (lower-case names) and body; raises UpstreamError. `join` gets the
    decoded answers in the order of the calls. An answer of more than `most_bytes` is not what any of the calls asked
    for. `emulated` and `dropped` are as in UpstreamRequest.
    """

    target: Target
    calls: tuple[UpstreamRequest, ...]
    decode: Callable[[UpstreamRequest, Mapping[str, str], bytes], A]
    join: Callable[[Sequence[A]], A]
    most_bytes: int
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def max_tokens(self) -> None:
        """`None`: a task has no limit."""
        return None


class StreamDecoder(Protocol):
    """Decodes a vendor's stream into events, which do not depend on how the bytes are cut into pieces."""

    @property
    def complete(self) -> bool:
        """Whether the stream has ended as a complete answer; nothing after that is read."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode one piece. Iterating, not the call, raises UpstreamError at an in-band error or at bytes that cannot
        be decoded; events before that have been yielded."""

    def finish(self) -> Iterator[StreamEvent]:
        """Yield what was held back when the body has ended. Raises UpstreamError(TRUNCATED) unless the answer is
        complete."""


@runtime_checkable
class UsageReporter(Protocol):
    """A decoder, or a part of one, that knows the usage that the vendor has reported before the end of the stream."""

    def usage_so_far(self) -> Usage | None:
        """Return the usage that the vendor has reported and that no event has held; `None` if there is none. It is
        `estimated` if text may have arrived that it does not count."""


def usage_so_far(reader: object) -> Usage | None:
    """Return the usage that a decoder, or a part of one, knows of a stream that ended early."""
    return reader.usage_so_far() if isinstance(reader, UsageReporter) else None


if TYPE_CHECKING:
    _StreamDecoder = StreamDecoder
else:
    _StreamDecoder = object  # every stream is asked whether it is a RunDecoder, which takes 2 us of a protocol's class


class RunDecoder(_StreamDecoder):
    """Base of those stream decoders that can read many events of text alone at once."""

    __slots__ = ()

    @abstractmethod
    def lead(self, data: bytes) -> tuple[TextRun, bytes] | None:
        """Return what a piece begins with, where that is events of one choice's text alone, and the rest of the piece,
        which has to be fed next; None for a piece that has to be fed whole. Feeding all of it yields the same."""

    def around(self) -> tuple[bytes, bytes | None, bytes] | None:
        """Return what a piece begins and ends with that is one event with a text of the same choice as the last run, if
        between these is the inside of one JSON string and nothing else; where it is not None, the bytes in the middle
        stand between that text and another one that means nothing. None where there is no such form. It holds until
        something is fed, or another form is returned here.

        Whoever reads such a piece by it calls `passed` before the next call of another method."""
        return None

    def passed(self, characters: int) -> None:
        """Change what the lead of events with so many characters of text in all would have changed."""


class Dialect(Protocol):
    """One wire format. Stateless: one instance serves every target that speaks it."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """Return the capabilities of the endpoint that this request goes to. Raises Refusal when the target has none
        for it."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """Return the exact upstream call. Raises Refusal when the target cannot honour a field; does not change its
        arguments."""

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """Decode a whole 2xx body. Raises UpstreamError when it is an error in disguise or cannot be decoded."""

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """Return a new decoder for a 2xx streamed answer. It reads nothing of the body after its first content."""

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return the failure that an answer with another status means. `headers` has lower-case names."""


@runtime_checkable
class NativeDialect(Protocol):
    """A dialect of an API that clients speak too, so that their requests can go on as they came."""

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        """Return the call with the client's own body, changed only in what the gateway decides: model, stream, what the
        operator's settings say. None where the target does not speak the API of `request.native`. `decode` and `stream`
        give the vendor's own bytes beside their meaning for a call whose `native` is true. Raises Refusal."""


def encode_native(request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
    """Return the call in the client's own API; None where the target does not speak it. Raises Refusal."""
    dialect = target.dialect
    return cast(NativeDialect, dialect).encode_native(request, target) if _has_own_api(type(dialect)) else None


@lru_cache(maxsize=256)
def _has_own_api(dialect: type) -> bool:
    # A test against a protocol takes 8 us in Python 3.11, a tenth of the time of planning such a call.
    return issubclass(dialect, NativeDialect)


def encode_again(sent: UpstreamRequest, request: UnifiedRequest) -> UpstreamRequest:
    """Return a changed request as a call to the same target, in the API of the call before. Raises Refusal."""
    target = sent.target
    native = encode_native(request, target) if sent.native else None
    return target.dialect.encode(request, target) if native is None else native
