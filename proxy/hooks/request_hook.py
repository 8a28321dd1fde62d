"""A hook: the part of an optional feature in each request of a team. The gateway calls its methods at fixed points."""

from collections.abc import Awaitable, Callable, Collection, Iterable
from typing import Final, Protocol, TypeVar

from aiohttp import web

from providers.completion import Completion
from providers.target import Target
from providers.unified_request import Task, UnifiedRequest
from proxy.dispatch.exchange import ClientRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import ReferredIds, Renderer, RequestContext
from proxy.upstream.vendor_stream import Stream


class AskedRequest(ClientRequest, Protocol):
    """A parsed request of a client that names a model."""

    @property
    def model(self) -> str:
        """The client's model string."""


Q = TypeVar("Q", bound=AskedRequest)
T = TypeVar("T")

BodyCheck = Callable[[str, bytes, RequestRecord], Awaitable[bytes]]
"""Returns the body that is sent instead of one with this content type. Raises UpstreamError and GatewayError."""

MOST_CHECKED: Final = 8 * 2**20
"""The most bytes of a response body that is checked. The body is held back until it has been checked."""


class RecalledContext(Protocol):
    """The stored responses and items that a body refers to. `session` is the number of their conversation, if it is
    known."""

    @property
    def size(self) -> int:
        """The bytes of the stored responses and items."""

    @property
    def heavy(self) -> bool:
        """Whether reading it may block the event loop for more than a few ms."""

    @property
    def session(self) -> int | None:
        """The number of the conversation that the request continues; `None` if it is unknown."""

    def completed(self, context: RequestContext) -> RequestContext:
        """Return a context with the stored responses and items. Raises GatewayError if they cannot be read."""


class ContextSource(Protocol):
    """Finds the stored responses and items that bodies refer to."""

    @property
    def stores(self) -> bool:
        """Whether the operator lets responses be stored."""

    async def recall(self, record: RequestRecord, referred: ReferredIds) -> RecalledContext:
        """Return the stored responses and items of a request's owner with these ids. Raises GatewayError if the
        response that the request continues is not there."""


class RequestHook:
    """The part of one feature in requests: in all requests of a team, or in one request, whose state the hook then
    holds. A feature overrides the methods that it needs; the methods of this class change nothing.

    The methods are called in the order of their definition here. A method that only observes returns nothing and guards
    itself with `proxy.telemetry.observer_guard`, so that its exceptions change no response. If any other method raises
    GatewayError, the client gets this error.
    """

    __slots__ = ()

    def begun(self, http: web.BaseRequest, record: RequestRecord) -> None:
        """Observe a request whose team is known, and whose body has not been read."""

    def received(self, record: RequestRecord, body: bytes) -> None:
        """Observe the body of a request before it is parsed."""

    def form_read(self, cut: Collection[str]) -> None:
        """Refuse a form if these fields, which were cut when it was read, must be read whole. Raises GatewayError."""

    def context(self) -> ContextSource | None:
        """Return the source of the stored responses and items that bodies refer to; `None` if the hook has no
        source."""
        return None

    def parsed(self, record: RequestRecord, request: UnifiedRequest) -> None:
        """Observe a request for text that has been parsed, before anything else may refuse it."""

    def asked(self, record: RequestRecord, request: Q, *, heavy: bool) -> Awaitable[Q] | None:
        """Return the request that replaces a parsed one; `None` if it stays unchanged."""
        return None

    def admitted(
        self, record: RequestRecord, request: UnifiedRequest, *, heavy: bool
    ) -> Awaitable[UnifiedRequest] | None:
        """Return the request for text that replaces one that the limits of its team have admitted; `None` if it stays
        unchanged."""
        return None

    def body_check(self, task: Task) -> BodyCheck | None:
        """Return the check of a task's response body; `None` if the body is passed on unchecked. A checked body must
        not be streamed."""
        return None

    def answers(self, answers: TextAnswers) -> TextAnswers:
        """Return the object that responds to a request for text instead of `answers`."""
        return answers

    def answered(
        self, record: RequestRecord, completion: Completion, target: Target, *, long: bool
    ) -> Awaitable[None] | None:
        """Observe a non-streaming response of `target` before it is rendered. Return the work that has to be done
        first; `None` if there is none. Reading a `long` response blocks the event loop for more than a few ms."""
        return None

    def streamed(self, record: RequestRecord, stream: Stream, target: Target) -> Stream:
        """Return the stream that is relayed instead of `stream`, whose content `target` has begun to send."""
        return stream

    def rendered(self, record: RequestRecord, renderer: Renderer) -> Renderer:
        """Return the renderer of a stream that is used instead of the surface's."""
        return renderer

    def ended(self, record: RequestRecord, reason: str) -> None:
        """Observe the end of a choice of a stream, with the reason."""

    def written(
        self, record: RequestRecord, renderer: Renderer, body: bytes, *, heavy: bool
    ) -> Awaitable[bytes] | None:
        """Return the bytes that are sent instead of `body`, the body of a non-streaming response or the end of a
        stream; `None` if `body` is sent unchanged. `heavy` is set if the request is large."""
        return None

    def shown(self, record: RequestRecord, body: bytes) -> None:
        """Observe the body of a non-streaming response, including an error, before it is sent."""


Hooks = tuple[RequestHook, ...]
"""Hooks in the order in which they are called."""


def show(record: RequestRecord, body: bytes) -> None:
    """Let the hooks of a request observe the body of its response before it is sent."""
    for hook in record.hooks:
        hook.shown(record, body)


def with_hooks(record: RequestRecord, request: Q, hooks: Iterable[RequestHook], *, heavy: bool) -> Awaitable[Q]:
    """Return a parsed request after hooks may have changed it. Raises GatewayError if a hook refuses it."""
    return _changed(request, hooks, lambda hook, current: hook.asked(record, current, heavy=heavy))


def with_admitted(
    record: RequestRecord, request: UnifiedRequest, hooks: Iterable[RequestHook], *, heavy: bool
) -> Awaitable[UnifiedRequest]:
    """Return an admitted request after hooks may have changed it. Raises GatewayError if a hook refuses it."""
    return _changed(request, hooks, lambda hook, current: hook.admitted(record, current, heavy=heavy))


def with_written(
    record: RequestRecord, renderer: Renderer, body: bytes, hooks: Hooks, *, heavy: bool
) -> Awaitable[bytes]:
    """Return the body of a response, or the end of a stream, after hooks may have changed it."""
    return _changed(body, hooks, lambda hook, current: hook.written(record, renderer, current, heavy=heavy))


async def _changed(
    value: T, hooks: Iterable[RequestHook], change: Callable[[RequestHook, T], Awaitable[T] | None]
) -> T:
    """Return a value after hooks may have changed it, one after the other."""
    for hook in hooks:
        changing = change(hook, value)
        if changing is not None:
            value = await changing
    return value
