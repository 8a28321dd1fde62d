"""One planned request from its dispatch to the end of its answer, in which a broken stream is visible as broken."""

import asyncio
import re
import time
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from functools import partial
from secrets import token_hex
from typing import Final, TypeVar

from aiohttp import web

from providers.adaptation.unique_calls import with_unique_calls
from providers.completion import Choice, Completion
from providers.emulation.estimate_missing_usage import let_conversation_go
from providers.emulation.join_extras import size_of_extras
from providers.emulation.plan_calls import CallPlan
from providers.failure import UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.dispatch.attempt_loop import ClientRequest, PlannedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import (
    ErrorFacts,
    FieldProblem,
    GatewayError,
    internal_error,
    invalid_request,
    upstream_failed,
)
from proxy.gateway.client_call import (
    BUFFERED_BYTES,
    ClientCall,
    answer_headers,
    answer_lines,
    refusal_headers,
)
from proxy.hooks.request_hook import show, with_written
from proxy.listener.buffered_response import header_lines
from proxy.listener.streamed_response import StreamedResponse
from proxy.off_loop.request_threads import RequestThreads
from proxy.receipt.server_timing import closing_comment, stream_line, timing_header
from proxy.relay.client_stream import ClientStream, comment
from proxy.relay.long_parts import weight_of_logprobs
from proxy.relay.relay_to_client import Relay
from proxy.relay.unique_stream import with_unique_ids
from proxy.request_record import fresh_id
from proxy.routing.request_plan import Plan
from proxy.surfaces.surface import REASONING_FIELDS, AnswerFacts, EndingRenderer, Renderer
from proxy.teams.team_limiter import Later
from proxy.telemetry.request_outcomes import (
    abort_labels,
    record_cancelled,
    record_client_gone,
    record_failure,
    record_refusal,
)
from proxy.upstream.unanswered_usage import usage_of_body
from proxy.upstream.vendor_stream import Stream

Q = TypeVar("Q", bound=ClientRequest)

TIMEOUT_HEADER = "x-request-timeout"
_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")

LONG: Final = 512 * 1024
"""Characters of an answer that is written on the event loop."""

MANY_CHUNKS: Final = 256
"""Chunks of a stream whose end is written on the event loop, if its end holds all of it."""

LAST_WRITE = 5.0
"""Seconds that writing the error event of a broken stream may take."""


@dataclass(slots=True, eq=False)
class Exchange:
    """One planned request of one client. `storing` is set if its API stores responses, which repeat fields of the
    request; `waiting` sends a stream, or keep-alives before a non-streaming response. Long responses are written in
    `threads`."""

    answers: TextAnswers
    call: ClientCall
    job: PlannedRequest[UnifiedRequest]
    threads: RequestThreads
    storing: bool = False
    waiting: ClientStream | None = None
    _renderer: Renderer | None = None

    def answer(self) -> Awaitable[web.StreamResponse]:
        """Answer the request, whole or as a stream. Raises GatewayError while nothing has been written."""
        return self.streamed() if self.job.request.stream else self.whole()

    async def whole(self) -> web.StreamResponse:
        """Return the answer. Raises GatewayError."""
        record = self.job.record
        try:
            with self.job.deadlines:
                prepared, completion = await self.answers.whole(self.job)
        except (UpstreamError, DeadlinePassed) as error:
            raise upstream_failed(record_failure(record, error), len(record.attempts)) from None
        completion = with_unique_calls(self.job.request, completion)
        long = is_long(completion) or (self.job.heavy and self.storing)
        if long:
            record.heavy.append(completion)
        record.usage = completion.usage
        for hook in self.call.hooks:
            observing = hook.answered(record, completion, prepared.target, long=long)
            if observing is not None:
                await observing
        if completion.usage is not None and completion.usage.estimated:
            record.emulated = (*record.emulated, "usage")
        renderer = self._make_renderer(prepared)
        write = partial(renderer.completion, completion)
        body = await self.threads.run(record.owner, write) if long else write()
        if self.call.hooks:
            body = await with_written(record, renderer, body, self.call.hooks, heavy=self.job.heavy)
        if self.waiting is not None and (begun := self.waiting.response) is not None:
            return await end_whole(self.call, begun, body)
        if len(body) <= BUFFERED_BYTES:
            return self.call.shared.settled(200, body, record, answer_lines(record))
        return await self.call.respond(body, answer_headers(record))

    async def streamed(self) -> web.StreamResponse:
        """Write the stream to its end, failures included. Raises GatewayError while no event has been written."""
        record, deadlines, waiting = self.job.record, self.job.deadlines, self.waiting
        if waiting is None:
            raise RuntimeError("a stream without its client")
        response: StreamedResponse | None = None
        try:
            with deadlines:
                async with self.answers.streamed(self.job) as (prepared, stream):
                    stream = self._observed(prepared, stream)
                    tokens = let_request_go(prepared, self.job.request, heavy=self.job.heavy)
                    timeouts = prepared.target.timeouts
                    deadlines.commit(timeouts.idle, timeouts.progress, timeouts.stream)
                    renderer = self._renderer = self._make_renderer(prepared)
                    record.first_content = self.call.shared.now()
                    record.status = 200
                    response = waiting.begin(answer_lines(record) + stream_line(record))
                    self.call.stream_begun()
                    shown, aside = self.call.rendered(renderer), partial(self.threads.run, record.owner)
                    facts = deadlines, record, prepared.request, tokens, aside, self.call.choice_ended
                    relay = Relay(stream, shown, response.send, *facts)
                    waiting.follow(relay, timeouts.keep_alive)
                    await relay.run()
                    deadlines.pause()
                    await self._write_end(response, relay, renderer)
                    record.finished = self.call.shared.now()
                    deadlines.stop()
                    await stream.finish()
        except (UpstreamError, DeadlinePassed) as error:
            await self._end_failed(response, error)
        except GatewayError as error:
            # A hook's: a stream that it refuses after its first chunk ends as broken.
            if response is None:
                raise
            record.outcome = "truncated"
            self.call.shared.metrics.abort("gateway", error.facts.code, record.model)
            await self._break(response, error.facts)
        except ConnectionError:
            record_client_gone(record, self.call.shared.metrics)
        except asyncio.CancelledError:
            record_cancelled(record, self.call.shared.metrics, self.call.http)
            raise
        finally:
            if response is not None and not record.finished and record.outcome == "ok":
                # An unexpected exception: the client must not take what it got for a complete answer.
                self.call.shared.metrics.abort("gateway", "internal_error", record.model)
                await self._break(response, internal_error().facts)
        # Without a response the client left before the head could be written; what is returned is not sent.
        return response or waiting.response or web.Response(status=499)

    def _observed(self, prepared: CallPlan, stream: Stream) -> Stream:
        """Return the stream with unique ids of calls, as the hooks leave it."""
        stream = with_unique_ids(stream, prepared, self.job.request)
        for hook in self.call.hooks:
            stream = hook.streamed(self.job.record, stream, prepared.target)
        return stream

    async def _write_end(self, response: StreamedResponse, relay: Relay, renderer: Renderer) -> None:
        """Write the end of a stream, which may repeat the whole response and the request."""
        record, held, end = self.job.record, relay.held, renderer.end
        if relay.size > LONG:
            record.heavy += (relay, renderer)
        many = relay.size > LONG or record.chunks > MANY_CHUNKS
        long = self.storing and (self.job.heavy or many)
        last = await self.threads.run(record.owner, end) if long else end()
        if self.call.hooks:
            last = await with_written(record, renderer, last, self.call.hooks, heavy=self.job.heavy)
        if len(held) > BUFFERED_BYTES:
            await response.write(held)
            held = b""
        await response.write_eof(held + last + closing_comment(record, self.call.shared.now()))

    async def _end_failed(self, response: StreamedResponse | None, error: UpstreamError | DeadlinePassed) -> None:
        """Report a failure to the client, in the stream if content has been sent. Raises GatewayError if none has."""
        if isinstance(error, DeadlinePassed) and error.phase is Phase.CLIENT:
            record_client_gone(self.job.record, self.call.shared.metrics)
            abort_connection(self.call.http)
            return
        failure = record_failure(self.job.record, error)
        if response is None:
            # Not kept in a variable: its traceback refers to this frame, a cycle that would keep the upstream's data.
            raise upstream_failed(failure, len(self.job.record.attempts)) from None
        self.call.shared.metrics.abort(*abort_labels(error), self.job.record.model)
        failed = upstream_failed(failure, len(self.job.record.attempts))
        await self._break(response, failed.facts)

    async def _break(self, response: StreamedResponse, facts: ErrorFacts) -> None:
        self.job.record.code = facts.code
        await end_broken(self.call, response, self._renderer, facts)

    def _make_renderer(self, prepared: CallPlan) -> Renderer:
        # A stored answer's id stands in for a secret where all clients have one address, as behind a proxy.
        unique = token_hex(16) if self.storing else fresh_id()
        surface = self.call.match.surface
        fields = self.call.snapshot.reasoning_fields.get(surface.name, REASONING_FIELDS["reasoning_content"])
        facts = AnswerFacts(unique, int(time.time()), self.job.plan.served_name(prepared.target), fields)
        return surface.renderer(prepared.request, facts)


async def end_broken(
    call: ClientCall, response: StreamedResponse, renderer: Renderer | None, facts: ErrorFacts
) -> None:
    """End a stream so that it looks broken: an error event, then a body without its end, unless the event is one that
    ends streams of the client's API."""
    ended = False
    try:
        if renderer is not None:
            last = renderer.error(facts) + closing_comment(call.record, call.shared.now())
            async with asyncio.timeout(LAST_WRITE):
                if isinstance(renderer, EndingRenderer):
                    await response.write_eof(last)
                    ended = True
                else:
                    await response.write(last)
    except (ConnectionError, TimeoutError):
        call.record.outcome = "client_gone"
    finally:
        if not ended and call.http.transport is not None:
            call.http.transport.close()


async def end_whole(call: ClientCall, response: StreamedResponse, body: bytes) -> StreamedResponse:
    """Write the body of a response whose head has been sent. It takes time: see `ClientCalls.unsettled`."""
    record, shared = call.record, call.shared
    show(record, body)
    before = shared.now()
    try:
        await response.write_eof(body)
    except ConnectionError:
        record_client_gone(record, shared.metrics)
    finally:
        record.client_waited += shared.now() - before
    return response


async def kept_alive(
    call: ClientCall, waiting: ClientStream, request: UnifiedRequest, answering: Awaitable[web.StreamResponse]
) -> web.StreamResponse:
    """Return the response of a call whose client gets keep-alives meanwhile. After the first of them a refusal is an
    event of the stream, or the JSON body, and its status 200. Raises GatewayError before that."""
    waiting.start()
    try:
        return await answering
    except Exception as error:
        response, answered = waiting.response, False
        if response is None or waiting.begun:
            raise
        try:
            # Not kept in a variable: its traceback refers to this frame.
            await _end_refused(call, response, request, error if isinstance(error, GatewayError) else internal_error())
            answered = isinstance(error, GatewayError)
        finally:
            if not answered and call.http.transport is not None:
                call.http.transport.close()  # or the error would follow as a second response
        if answered:
            return response
        raise
    finally:
        waiting.stop()


async def _end_refused(
    call: ClientCall, response: StreamedResponse, request: UnifiedRequest, error: GatewayError
) -> None:
    """Report an error to a client that has the head of its response, and nothing else but keep-alives."""
    record, surface, facts = call.record, call.surface, error.facts
    status, body = surface.error(facts)
    record_refusal(record, error.logged, status)
    if not request.stream:
        await end_whole(call, response, body)
        return
    show(record, body)
    side = "upstream" if record.outcome in ("upstream_error", "timeout") else "gateway"
    call.shared.metrics.abort(side, error.logged, record.model)
    headers = refusal_headers(record, surface, facts)
    response.precede(comment(header_lines({**headers, **timing_header(record, call.shared.now())})))
    renderer = surface.renderer(request, AnswerFacts(fresh_id(), int(time.time()), request.model))
    await end_broken(call, response, renderer, facts)


def is_long(completion: Completion) -> bool:
    """Return whether writing an answer may block the event loop for more than a few ms. Few have more than text."""
    if completion.native is not None and len(completion.native) > LONG:
        return True
    return sum(map(_weight, completion.choices)) > LONG


def _weight(choice: Choice) -> int:
    weight = len(choice.text) + len(choice.reasoning or "")
    if choice.tool_calls:
        weight += sum([len(call.arguments) for call in choice.tool_calls])
    if choice.logprobs is not None:
        weight += weight_of_logprobs(choice.logprobs)
    if choice.extras is None:
        return weight
    return weight + (LONG + 1 if choice.extras.images or choice.extras.audio else size_of_extras(choice.extras))


def let_request_go(prepared: CallPlan, asked: UnifiedRequest, *, heavy: bool) -> int | None:
    """Free the memory of what has been sent for a stream that has begun. Of several calls some may be still to come.
    Return the prompt tokens of a heavy request, estimated by its length: its texts are not read on the event loop.

    The conversation of a heavy request stays: freeing it would take too long here.
    """
    if len(prepared.calls) != 1:
        return None
    (call,) = prepared.calls
    tokens = usage_of_body(len(call.sent.body)).prompt_tokens if heavy else None
    call.sent.let_body_go()
    if not heavy:
        for request in (asked, prepared.request, call.request):
            let_conversation_go(request)
    return tokens


def make_job(call: ClientCall, plan: Plan, request: Q, *, heavy: bool) -> PlannedRequest[Q]:
    """Return a call's planned request with its deadline. Raises as `time_for` does."""
    total, hurried = time_for(plan, request.timeout, call.http.headers)
    total -= call.record.limit_waited
    deadlines = Deadlines(total, call.shared.alarms, call.shared.deadlines)
    return PlannedRequest(plan, call.team, request, call.record, deadlines, total, hurried, heavy)


async def wait_for_limits(call: ClientCall, plan: Plan, asked: float | None, later: Later) -> None:
    """Wait until a request is admitted, for the time at most that it may take in all. Raises GatewayError, also where
    the gateway ends meanwhile."""
    total, _ = time_for(plan, asked, call.http.headers)
    try:
        with Deadlines(total, call.shared.alarms, call.shared.deadlines):
            await later(total)
    except DeadlinePassed as error:
        raise upstream_failed(record_failure(call.record, error)) from None


def time_for(plan: Plan, asked: float | None, headers: Mapping[str, str]) -> tuple[float, bool]:
    """Return how many seconds a request may take, the longest total timeout of its targets or the client's, and whether
    it is the client's.

    Raises GatewayError for an `x-request-timeout` that is not a number of seconds.
    """
    targets, text = plan.targets, headers.get(TIMEOUT_HEADER)
    limit = total = targets[0].timeouts.total
    if len(targets) > 1:
        limit = total = max([target.timeouts.total for target in targets])
    if asked is not None and asked < total:
        total = asked
    if text is not None:
        total = min(total, _seconds_of(text))
    return total, total < limit


def _seconds_of(text: str) -> float:
    """Return the seconds in which the client wants its answer; a duration, so that clocks may differ."""
    if not _SECONDS.fullmatch(text) or not float(text):
        raise invalid_request(
            (FieldProblem((TIMEOUT_HEADER,), f"'{TIMEOUT_HEADER}' must be a number of seconds, such as 30 or 2.5."),)
        )
    return float(text)


def abort_connection(http: web.BaseRequest) -> None:
    """Close the connection of a client that does not read, and drop what is buffered for it."""
    if http.transport is not None:
        http.transport.abort()
