"""From a plan to an answer: which target is asked, and what its answer means. The only place that may try again.

Never writes to the client; a stream is handed over at its first content, which is the commit point.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from providers.completion import Chunk, Completion, StreamEvent
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.failure import FailureKind, Refusal, UpstreamError
from providers.unified import UnifiedRequest
from proxy.deadlines import Deadlines, Phase
from proxy.errors import refused
from proxy.metrics import Metrics
from proxy.mock_transport import SCHEME, MockTransport
from proxy.record import Attempt, RequestRecord
from proxy.routing import Plan
from proxy.upstream import Transport, UpstreamResponse, fail, read_error, read_whole


@dataclass(slots=True)
class OpenStream:
    """A stream that has shown its first content. `events` are those read so far, `ended` whether the body is over."""

    response: UpstreamResponse
    decoder: StreamDecoder
    events: list[StreamEvent]
    ended: bool


def choose(plan: Plan, request: UnifiedRequest) -> UpstreamRequest:
    """The call of the first target that can honour the request.

    Raises GatewayError with the first target's reason when none can.
    """
    first: Refusal | None = None
    for target in plan.targets:
        try:
            return target.dialect.encode(request, target)
        except Refusal as refusal:
            first = first or refusal
    if first is None:
        raise RuntimeError(f"the plan for {plan.asked!r} has no targets")
    raise refused(first)


class Dispatcher:
    """Calls targets through the transports and keeps their account in the request's record."""

    def __init__(self, http: Transport, metrics: Metrics) -> None:
        self._http = http
        self._mock: Transport = MockTransport()
        self._metrics = metrics
        self._clock = asyncio.get_running_loop().time

    @contextmanager
    def attempt(self, sent: UpstreamRequest, record: RequestRecord) -> Iterator[Attempt]:
        """One call's entry in the record and its place in the in-flight gauge, whatever its end."""
        attempt = Attempt(sent.target.label, self._clock())
        record.attempts.append(attempt)
        self._metrics.inflight(attempt.deployment, 1)
        try:
            yield attempt
        except UpstreamError as error:
            attempt.outcome = error.failure.kind.value
            attempt.status = error.failure.status
            attempt.message = error.failure.message
            raise
        except (asyncio.CancelledError, ConnectionError):
            # The upstream's own connection errors have become UpstreamErrors: this one is the client's.
            attempt.outcome = "cancelled"
            raise
        finally:
            attempt.finished = self._clock()
            self._metrics.inflight(attempt.deployment, -1)

    async def whole(self, sent: UpstreamRequest, record: RequestRecord, clock: Deadlines, expected: int) -> Completion:
        """The answer of a call that is not streamed, with `expected` choices. Raises UpstreamError.

        Only the total limits the wait for its first byte, which comes when all has been generated.
        """
        idle = partial(clock.enter, Phase.IDLE, sent.target.timeouts.idle)
        started = self._clock()
        try:
            response = await self._open(sent, record)
            try:
                body = await read_whole(response, idle)
            finally:
                response.release()
        finally:
            record.waited += self._clock() - started
        completion = sent.target.dialect.decode(sent, body)
        if len(completion.choices) != expected:
            message = f"The upstream answered with {len(completion.choices)} of {expected} choices."
            raise fail(FailureKind.MALFORMED, message)
        return completion

    async def streamed(self, sent: UpstreamRequest, record: RequestRecord, clock: Deadlines) -> OpenStream:
        """The answer of a streamed call, read up to its first content. Raises UpstreamError.

        The first-event limit covers everything before that, comments and role-only frames included: none of it is
        content.
        """
        clock.enter(Phase.FIRST_EVENT, sent.target.timeouts.first_event)
        started = self._clock()
        try:
            response = await self._open(sent, record)
            try:
                decoder = sent.target.dialect.stream(sent)
                events, ended = await _until_content(response, decoder)
            except BaseException:
                response.close()
                raise
        finally:
            record.waited += self._clock() - started
        return OpenStream(response, decoder, events, ended)

    async def _open(self, sent: UpstreamRequest, record: RequestRecord) -> UpstreamResponse:
        transport = self._mock if sent.url.startswith(SCHEME) else self._http
        response = await transport.open(sent, record.request_id)
        if 200 <= response.status < 300:
            return response
        try:
            body = await read_error(response)
        finally:
            response.release()
        raise UpstreamError(sent.target.dialect.classify(sent, response.status, response.headers, body))


async def _until_content(response: UpstreamResponse, decoder: StreamDecoder) -> tuple[list[StreamEvent], bool]:
    events: list[StreamEvent] = []
    while True:
        piece = await response.read()
        events.extend(decoder.feed(piece) if piece else decoder.finish())
        if any(isinstance(event, Chunk) for event in events):
            return events, not piece
        if not piece:
            raise fail(FailureKind.TRUNCATED, "The upstream's stream ended without content.")
        if decoder.complete:
            raise fail(FailureKind.MALFORMED, "The upstream's stream was empty.")
