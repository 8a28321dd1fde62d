"""The contract of a dialect: it encodes a unified request for a vendor and decodes the vendor's response."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, cast, runtime_checkable

from providers.capabilities import Capabilities
from providers.completion import Completion, StreamEvent, TextRun, Usage
from providers.failure import Failure
from providers.frozen_record import frozen
from providers.target import Target
from providers.unified_request import AnyOperation, UnifiedRequest

A = TypeVar("A")

MOST_COPIED_BYTES = 2**20
"""The most bytes of a body that is copied out of its buffer. The unwritten part of a larger buffer uses no memory."""


class Upload(Protocol):
    """The body of a call that is not held in memory."""

    @property
    def length(self) -> int:
        """The length of the body in bytes."""

    def pieces(self) -> AsyncIterator[bytes]:
        """Yield the bytes of the body. Each iteration starts at the beginning."""


@frozen
class UpstreamRequest:
    """One call as it is sent, without the credential, and the facts that decoding its response requires.

    `operation` is the operation of the upstream endpoint. It differs from the client's if a prompt was wrapped into a
    chat. `emulated` names the unified fields that the gateway emulates. `dropped` names advisory fields that were left
    out, including fields of messages such as `cache_control`. `honoured` names fields that the translation of the
    client's request left out and that this call has nevertheless.

    `unenforced` names the constraints that the vendor does not enforce, so that the response must be checked.
    `in_prompt` is true if the constraint is not in the body at all, so that the prompt must describe it.
    `unwrap_choice` is true if the text is a JSON object whose `choice` is the response.

    `tool_names` maps a tool's name in the call to the client's name if it had to change. `custom_tools` are the
    client's names of tools that take a text; they were sent as functions with this text as their argument `input`.

    `native` is true if the response is in the client's own API and is returned unchanged. `responses_because` is the
    reason why a request of another API is sent to the vendor's Responses API; empty if it is not. `whole` is true if
    the vendor responds with one body although the client reads a stream. `choices` is the number of choices that the
    response must have.

    `upload` is sent instead of `body`. `trace` are header lines that name the trace of the call. `written` is true once
    the call was sent, so that the vendor may bill it. `connecting` is how many seconds it took to make connections for
    the call.
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
    unenforced: tuple[str, ...] = ()
    in_prompt: bool = False
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
        # of a long text. A stream would hold that buffer until it ends.
        if len(self.body) <= MOST_COPIED_BYTES:
            object.__setattr__(self, "body", bytes(memoryview(self.body)))

    def free_body(self) -> None:
        """Free the memory of the body. Called once the content of a response has begun: nothing is sent again then, and
        a stream may last for minutes. By then, the decoder of a stream has read everything that it needs from the
        body."""
        object.__setattr__(self, "body", b"")

    def note_written(self) -> None:
        """Record that the call was sent."""
        object.__setattr__(self, "written", True)

    def note_connected(self, seconds: float) -> None:
        """Add the seconds that it took to make a connection for the call."""
        object.__setattr__(self, "connecting", self.connecting + seconds)

    def carry_trace(self, lines: str, replaced: frozenset[str]) -> None:
        """Send these header lines. They replace the client's headers with the lower-case names `replaced`."""
        if self.headers and not replaced.isdisjoint(map(str.lower, self.headers)):
            own = {name: value for name, value in self.headers.items() if name.lower() not in replaced}
            object.__setattr__(self, "headers", own)
        object.__setattr__(self, "trace", lines)


@frozen(eq=False)
class TaskCalls(Generic[A]):
    """The calls of one request on one target, and how their responses become one.

    `decode` reads a 2xx response from its headers (lower-case names) and body. It raises UpstreamError. `join` gets the
    decoded responses in the order of the calls. A response of more than `most_bytes` bytes cannot be a response to any
    of the calls. `emulated` and `dropped` are as in UpstreamRequest.
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
    """Decodes a vendor's stream into events. The events do not depend on how the bytes are split into reads."""

    @property
    def complete(self) -> bool:
        """Whether the stream has ended with a complete response. Nothing after that is read."""

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Decode the bytes of one read. The iteration, not the call, raises UpstreamError at an error in the stream, or
        at bytes that cannot be decoded. Events before that have been yielded."""

    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that were held back until the end of the body. Raises UpstreamError(TRUNCATED) unless the
        response is complete."""


@runtime_checkable
class UsageReporter(Protocol):
    """A decoder, or a part of one, that knows the usage that the vendor has reported before the end of the stream."""

    def usage_so_far(self) -> Usage | None:
        """Return the usage that the vendor has reported and that no event has held; `None` if there is none. It is
        `estimated` if it may lack text that has arrived."""


def usage_so_far(reader: object) -> Usage | None:
    """Return the usage that a decoder, or a part of one, knows of a stream that ended early."""
    return reader.usage_so_far() if isinstance(reader, UsageReporter) else None


if TYPE_CHECKING:
    _StreamDecoder = StreamDecoder
else:
    _StreamDecoder = (
        object  # every stream is tested for being a RunDecoder, which takes 2 us for a subclass of a protocol
    )


class RunDecoder(_StreamDecoder):
    """Base of stream decoders that can read many consecutive events with only text at once."""

    __slots__ = ()

    @abstractmethod
    def read_run(self, data: bytes) -> tuple[TextRun, bytes] | None:
        """Return the run of text at the beginning of `data`, and the rest, which has to be fed next. The run holds
        consecutive events that have only text of one choice. Return `None` if all of `data` has to be fed. Feeding all
        of it yields the same events."""

    def run_frame(self) -> tuple[bytes, bytes | None, bytes] | None:
        """Return the form of reads that hold one event with text, so that a reader can decode them by itself. Return
        `None` if there is no such form.

        The form is the beginning of the event, a middle part, and its end. Between the beginning and the end is only
        the inside of a JSON string: text of the same choice as in the last run. If the middle part is not `None`, the
        text ends before it, and a second text that means nothing follows it. The form is valid until data is fed, or
        until this method returns another form. A reader that decodes a read by the form calls `note_run` before it
        calls another method.
        """
        return None

    def note_run(self, characters: int) -> None:
        """Update the decoder as `read_run` would for events with `characters` characters of text in all."""


class Dialect(Protocol):
    """One wire format. It has no state: one instance serves every target with this format."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        """Return the capabilities of the endpoint that receives this request. Raises Refusal if the target has no such
        endpoint."""

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        """Return the exact upstream call. Raises Refusal if the target does not support a field. Does not change its
        arguments."""

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        """Decode a complete 2xx body. Raises UpstreamError if the body is an error, or cannot be decoded."""

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        """Return a new decoder for a 2xx streamed response. After the first content it reads nothing of the body of
        `sent`."""

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        """Return the failure that a response with another status means. `headers` has lower-case names."""


@runtime_checkable
class NativeDialect(Protocol):
    """A dialect of an API that clients use too, so that their requests can be sent unchanged."""

    def encode_native(self, request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
        """Return the call with the client's own body. Only the model, the stream and the operator's settings are
        changed. Return `None` if the target does not have the API of `request.native`. For a call whose `native` is
        true, `decode` and `stream` return the vendor's own bytes together with the decoded events. Raises Refusal."""


def encode_native(request: UnifiedRequest, target: Target) -> UpstreamRequest | None:
    """Return the call in the client's own API; `None` if the target does not have it. Raises Refusal."""
    dialect = target.dialect
    return cast(NativeDialect, dialect).encode_native(request, target) if _has_own_api(type(dialect)) else None


@lru_cache(maxsize=256)
def _has_own_api(dialect: type) -> bool:
    # A test against a protocol takes 8 us in Python 3.11, a tenth of the time of planning such a call.
    return issubclass(dialect, NativeDialect)


def encode_again(sent: UpstreamRequest, request: UnifiedRequest) -> UpstreamRequest:
    """Return a changed request as a call to the same target, in the API of the previous call. Raises Refusal."""
    target = sent.target
    native = encode_native(request, target) if sent.native else None
    return target.dialect.encode(request, target) if native is None else native
