"""Sends one call of an attempt, and repeats it if there is a RepeatCause. Calls are repeated only in this module.

A repeat does not count against the retry budget or `retries.attempts`. It is noted in the request's record, and runs
within the deadline of its attempt.
"""

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Literal, TypeAlias, TypeVar

from providers.dialect import UpstreamRequest, encode_again
from providers.dialects.without_seals import Unsealed, without_reasoning, without_seals
from providers.emulation.plan_calls import PlannedCall
from providers.failure import Failure, Refusal, UpstreamError
from providers.models.refusals import refuses_earlier_reasoning, refuses_effort
from providers.unified_request import UnifiedRequest
from providers.vendor_text.attribute_failure import attribute
from providers.vendor_text.refused_seals import refuses_seal
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_record import RequestRecord
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.upstream.fit_context_window import Fitting
from proxy.upstream.loop_detection import refuse_loop
from proxy.upstream.mock_transport import SCHEME, MockTransport
from proxy.upstream.request_headers import TRACE_HEADERS
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, Transport, UpstreamResponse, read_error
from proxy.upstream.vendor_headers import request_id_in_body

T = TypeVar("T")

Without: TypeAlias = Callable[[UnifiedRequest, UpstreamRequest], Unsealed | None]


def may_repeat_call(cause: RepeatCause, repeats: Repeats, safety: Literal["safe", "strict", "off"]) -> bool:
    """Return whether a call may be repeated within its attempt, which it may once for each cause. Only after
    STALE_CONNECTION may the vendor have executed the first call, though this is unlikely. Then the operator's
    `retries.safety` decides."""
    return cause not in repeats and (cause is not RepeatCause.STALE_CONNECTION or safety == "safe")


class CallSender:
    """Sends calls through the transport for their URL, and keeps them within the context window."""

    def __init__(self, http: Transport, threads: RequestThreads | None = None) -> None:
        self._http = http
        self._mock: Transport = MockTransport()
        self._threads = threads
        self.fitting = Fitting(self._question, threads)

    async def make(
        self, call: PlannedCall, record: RequestRecord, make: Callable[[PlannedCall, Repeats], Awaitable[T]]
    ) -> T:
        """Return the result of `make` for the call, which is repeated as long as there is a cause. `make` gets the call
        and the causes of its repeats so far. Raises the first UpstreamError that is not a cause for a repeat."""
        repeats: Repeats = ()
        while True:
            try:
                return await make(call, repeats)
            except UpstreamError as error:
                again = await self.again(call, error, repeats, record)
                if again is None:
                    raise
            call, repeats = again

    async def again(
        self, call: PlannedCall, error: UpstreamError, repeats: Repeats, record: RequestRecord
    ) -> tuple[PlannedCall, Repeats] | None:
        """Return the call that repeats a failed call, and the causes of its repeats. They include the cause of this
        repeat, which is recorded. Return `None` if the failed call is not repeated."""
        if not isinstance(error, RepeatableError):
            made = await self._changed(call, error.failure, repeats, record)
            if made is None:
                return None
            cause, call = made
        elif may_repeat_call(error.cause, repeats, call.sent.target.retries.safety):
            cause = error.cause
            if cause is RepeatCause.STREAM_REFUSED:
                call = _in_one_piece(call)
        else:
            return None
        record.repeated(cause)
        return call, (*repeats, cause)

    async def _changed(
        self, call: PlannedCall, failure: Failure, repeats: Repeats, record: RequestRecord
    ) -> tuple[RepeatCause, PlannedCall] | None:
        """Return the cause and the changed call with which a refused call is repeated; `None` if it is not repeated."""
        if RepeatCause.REASONING_REFUSED not in repeats and (without := _what_leaves_out(failure)) is not None:
            bare = await self._bare(call, without, record)
            return None if bare is None else (RepeatCause.REASONING_REFUSED, bare)
        if call.yielding and RepeatCause.EFFORT_REFUSED not in repeats and refuses_effort(failure):
            return RepeatCause.EFFORT_REFUSED, _without_effort(call, record)
        calls = 1 + repeats.count(RepeatCause.CONTEXT_WINDOW)
        smaller = await self.fitting.smaller(call, failure, calls, record)
        return None if smaller is None else (RepeatCause.CONTEXT_WINDOW, smaller)

    async def _bare(self, call: PlannedCall, without: Without, record: RequestRecord) -> PlannedCall | None:
        """Return the call without the reasoning that its vendor refuses, and record the dropped fields; `None` if the
        call cannot be made without it."""
        if self._threads is None or not is_heavy(call.sent.body):
            made = _left_out(call, without)
        else:
            made = await self._threads.run(record.owner, lambda: _left_out(call, without))
        if made is None:
            return None
        bare, dropped = made
        record.dropped = tuple(dict.fromkeys((*record.dropped, *dropped)))
        return bare

    async def send(self, sent: UpstreamRequest, record: RequestRecord) -> UpstreamResponse:
        """Send a call that is not planned, repeated as long as there is a cause. Return its response, whose body has
        not been read. Raises UpstreamError for any status except 2xx."""
        repeats: Repeats = ()
        while True:
            try:
                response = await self.ask(sent, record, repeats)
            except RepeatableError as error:
                if not may_repeat_call(error.cause, repeats, sent.target.retries.safety):
                    raise
                cause = error.cause
            else:
                record.note_head(response.head)
                if is_good(response):
                    return response
                raise await refusal(sent, response)
            repeats = (*repeats, cause)
            record.repeated(cause)

    async def _question(self, call: PlannedCall, record: RequestRecord) -> UpstreamResponse:
        """Send a call that generates nothing, and return the response whatever its status."""

        def opened(call: PlannedCall, repeats: Repeats) -> Awaitable[UpstreamResponse]:
            return self.ask(call.sent, record, repeats, generates=False)

        return await self.make(call, record, opened)

    def ask(
        self, sent: UpstreamRequest, record: RequestRecord, repeats: Repeats, *, generates: bool = True
    ) -> Coroutine[object, object, UpstreamResponse]:
        """Send a call and return its response, whatever its status. A call that `generates` is stored as the attempt's
        call. Raises the errors of Transport.open."""
        if generates and record.attempts:
            record.attempts[-1].sent = sent
        transport = self._mock if sent.url.startswith(SCHEME) else self._http
        if (trace := record.trace) is not None:  # the attempt's span is the parent of the vendor's span
            sent.carry_trace(trace.line or trace.lines(len(record.attempts)), TRACE_HEADERS)
        return transport.open(sent, record.request_id, repeats)


def is_good(response: UpstreamResponse) -> bool:
    """Return whether a response has a status of success."""
    return 200 <= response.status < 300


async def refusal(sent: UpstreamRequest, response: UpstreamResponse) -> UpstreamError:
    """Return the failure that a response without success means. Raises UpstreamError for a loop."""
    try:
        body = await read_error(response)
    finally:
        response.release()
    refuse_loop(response.status, body)
    failure = sent.target.dialect.classify(sent, response.status, response.headers, body)
    failure = replace(failure, vendor_id=request_id_in_body(body))
    return UpstreamError(attribute(failure, sent, response.status, body))


def _what_leaves_out(failure: Failure) -> Without | None:
    """Return the function that removes the refused reasoning from a request; `None` if the vendor refused no
    reasoning."""
    if refuses_seal(failure):
        return without_seals
    return without_reasoning if refuses_earlier_reasoning(failure) else None


def _left_out(call: PlannedCall, without: Without) -> tuple[PlannedCall, tuple[str, ...]] | None:
    """Return the call without the reasoning that its vendor refuses, and the dropped fields; `None` if it has no such
    reasoning, or cannot be made without it."""
    found = without(call.request, call.sent)
    if found is None:
        return None
    try:
        sent = encode_again(call.sent, found.request)
    except Refusal:
        return None
    if sent.body == call.sent.body:
        return None
    return replace(call, request=found.request, sent=sent), (*found.dropped, *sent.dropped)


def _without_effort(call: PlannedCall, record: RequestRecord) -> PlannedCall:
    """Return the call without the fields that its model refuses, and record them as dropped."""
    record.dropped = tuple(dict.fromkeys((*record.dropped, *sorted(call.yielding))))
    request = call.request.without(call.yielding)
    return replace(call, request=request, sent=encode_again(call.sent, request), yielding=frozenset())


def _in_one_piece(call: PlannedCall) -> PlannedCall:
    request = replace(call.request, stream=False)
    return replace(call, request=request, sent=encode_again(call.sent, request))
