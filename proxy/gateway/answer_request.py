"""Responds to one planned request for text, from its dispatch to the end of the response. The client can see that a
broken stream is incomplete."""

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from secrets import token_hex
from typing import Final

from aiohttp import web

from providers.adaptation.unique_calls import with_unique_calls
from providers.completion import Choice, Completion
from providers.emulation.estimate_missing_usage import let_conversation_go
from providers.emulation.join_extras import size_of_extras
from providers.emulation.plan_calls import CallPlan
from providers.failure import UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.dispatch.exchange import ClientRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import ErrorFacts, GatewayError, internal_error, upstream_failed
from proxy.gateway.client_exchange import BUFFERED_BYTES, ClientExchange
from proxy.gateway.gateway_headers import answer_headers, answer_lines, refusal_headers
from proxy.hooks.request_hook import show, with_written
from proxy.listener.buffered_response import header_lines
from proxy.listener.streamed_response import StreamedResponse
from proxy.receipt.server_timing import closing_comment, stream_line, timing_header
from proxy.relay.client_stream import ClientStream, comment
from proxy.relay.long_parts import weight_of_logprobs
from proxy.relay.relay_to_client import Relay
from proxy.relay.unique_stream import with_unique_ids
from proxy.request_record import fresh_id
from proxy.surfaces.registry import STORING
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

TextExchange = ClientExchange[UnifiedRequest]

LONG: Final = 512 * 1024
"""The most characters of a response that is written on the event loop."""

MANY_CHUNKS: Final = 256
"""The most chunks of a stream whose end is written on the event loop, if the end repeats the whole response."""

LAST_WRITE = 5.0
"""The most seconds that writing the error event of a broken stream may take."""


def responded(
    exchange: TextExchange, answers: TextAnswers, waiting: ClientStream | None
) -> Awaitable[web.StreamResponse]:
    """Return the response to a planned request. A stream has been written when it is returned. Raises GatewayError
    while nothing has been written."""
    if waiting is not None and exchange.request.stream:
        return streamed(exchange, answers, waiting)
    return whole(exchange, answers, waiting)


async def whole(exchange: TextExchange, answers: TextAnswers, waiting: ClientStream | None) -> web.StreamResponse:
    """Return the response to a request that is not streamed. `waiting` sends keep-alives until the response is there.
    Raises GatewayError."""
    record, hooks, heavy = exchange.record, exchange.hooks, exchange.heavy
    try:
        with exchange.deadlines:
            prepared, completion = await answers.whole(exchange)
    except (UpstreamError, DeadlinePassed) as error:
        raise upstream_failed(record_failure(record, error), len(record.attempts)) from None
    completion = with_unique_calls(exchange.request, completion)
    # A stored response repeats fields of the request.
    long = is_long(completion) or (heavy and exchange.surface.name in STORING)
    if long:
        record.heavy.append(completion)
    record.usage = completion.usage
    for hook in hooks:
        observing = hook.answered(record, completion, prepared.target, long=long)
        if observing is not None:
            await observing
    if completion.usage is not None and completion.usage.estimated:
        record.emulated = (*record.emulated, "usage")
    renderer = make_renderer(exchange, prepared)
    write = partial(renderer.completion, completion)
    body = await exchange.shared.threads.run(record.owner, write) if long else write()
    if hooks:
        body = await with_written(record, renderer, body, hooks, heavy=heavy)
    if waiting is not None and (begun := waiting.response) is not None:
        return await end_whole(exchange, begun, body)
    if len(body) <= BUFFERED_BYTES:
        return exchange.shared.settled(200, body, record, answer_lines(record))
    return await exchange.respond(body, answer_headers(record))


async def streamed(exchange: TextExchange, answers: TextAnswers, waiting: ClientStream) -> web.StreamResponse:
    """Write a stream through `waiting` to its end. A failure after the first event is written into the stream. Raises
    GatewayError while no event has been written."""
    record, deadlines, shared = exchange.record, exchange.deadlines, exchange.shared
    response: StreamedResponse | None = None
    renderer: Renderer | None = None
    try:
        with deadlines:
            async with await answers.streamed(exchange) as (prepared, stream):
                stream = with_unique_ids(stream, prepared, exchange.request)
                tokens = let_request_go(prepared, exchange.request, heavy=exchange.heavy)
                timeouts = prepared.target.timeouts
                deadlines.commit(timeouts.idle, timeouts.progress, timeouts.stream)
                shown = renderer = make_renderer(exchange, prepared)
                for hook in exchange.hooks:
                    stream = hook.streamed(record, stream, prepared.target)
                    shown = hook.rendered(record, shown)
                record.first_content = shared.now()
                record.status = 200
                response = waiting.begin(answer_lines(record) + stream_line(record))
                exchange.stream_begun()
                aside = partial(shared.threads.run, record.owner)
                facts = deadlines, record, prepared.request, tokens, aside, partial(_note_end, exchange)
                relay = Relay(stream, shown, response.send, *facts)
                waiting.follow(relay, timeouts.keep_alive)
                await relay.run()
                deadlines.pause()
                await _write_end(exchange, response, relay, renderer)
                record.finished = shared.now()
                deadlines.stop()
                await stream.finish()
    except (UpstreamError, DeadlinePassed) as error:
        await _end_failed(exchange, response, renderer, error)
    except GatewayError as error:
        # A hook raised this error: a stream that a hook refuses after its first chunk ends as broken.
        if response is None:
            raise
        record.outcome = "truncated"
        shared.metrics.abort("gateway", error.facts.code, record.model)
        await _break(exchange, response, renderer, error.facts)
    except ConnectionError:
        record_client_gone(record, shared.metrics)
    except asyncio.CancelledError:
        record_cancelled(record, shared.metrics, exchange.http)
        raise
    finally:
        if response is not None and not record.finished and record.outcome == "ok":
            # After an unexpected exception, the client must not take the part that it has for a complete response.
            shared.metrics.abort("gateway", "internal_error", record.model)
            await _break(exchange, response, renderer, internal_error().facts)
    # If there is no response, the client left before the head could be written. The returned response is not sent.
    return response or waiting.response or web.Response(status=499)


def _note_end(exchange: TextExchange, reason: str) -> None:
    """Report to the hooks why a choice of a stream ended."""
    for hook in exchange.hooks:
        hook.ended(exchange.record, reason)


async def _write_end(exchange: TextExchange, response: StreamedResponse, relay: Relay, renderer: Renderer) -> None:
    """Write the end of a stream, which may repeat the whole response and the request."""
    record, shared, held, end = exchange.record, exchange.shared, relay.held, renderer.end
    if relay.size > LONG:
        record.heavy += (relay, renderer)
    many = relay.size > LONG or record.chunks > MANY_CHUNKS
    long = (exchange.heavy or many) and exchange.surface.name in STORING
    last = await shared.threads.run(record.owner, end) if long else end()
    if exchange.hooks:
        last = await with_written(record, renderer, last, exchange.hooks, heavy=exchange.heavy)
    if len(held) > BUFFERED_BYTES:
        await response.write(held)
        held = b""
    await response.write_eof(held + last + closing_comment(record, shared.now()))


async def _end_failed(
    exchange: TextExchange,
    response: StreamedResponse | None,
    renderer: Renderer | None,
    error: UpstreamError | DeadlinePassed,
) -> None:
    """Report a failure to the client: in the stream if content has been sent, else by raising GatewayError."""
    record, metrics = exchange.record, exchange.shared.metrics
    if isinstance(error, DeadlinePassed) and error.phase is Phase.CLIENT:
        record_client_gone(record, metrics)
        abort_connection(exchange.http)
        return
    failure = record_failure(record, error)
    if response is None:
        # No variable holds the error: its traceback refers to this frame, and the cycle would hold the upstream's data.
        raise upstream_failed(failure, len(record.attempts)) from None
    metrics.abort(*abort_labels(error), record.model)
    failed = upstream_failed(failure, len(record.attempts))
    await _break(exchange, response, renderer, failed.facts)


async def _break(
    exchange: TextExchange, response: StreamedResponse, renderer: Renderer | None, facts: ErrorFacts
) -> None:
    exchange.record.code = facts.code
    await end_broken(exchange, response, renderer, facts)


def make_renderer(exchange: TextExchange, prepared: CallPlan) -> Renderer:
    """Return the renderer of the response of a target."""
    surface = exchange.surface
    # The id of a stored response protects it like a secret if all clients have one address, for example behind a proxy.
    unique = token_hex(16) if surface.name in STORING else fresh_id()
    fields = exchange.snapshot.reasoning_fields.get(surface.name, REASONING_FIELDS["reasoning_content"])
    facts = AnswerFacts(unique, int(time.time()), exchange.plan.served_name(prepared.target), fields)
    return surface.renderer(prepared.request, facts)


async def end_broken(
    exchange: TextExchange, response: StreamedResponse, renderer: Renderer | None, facts: ErrorFacts
) -> None:
    """End a stream so that the client sees that it is incomplete: write an error event, then break the body off. The
    body is ended regularly if the error event is one that ends streams of the client's API."""
    ended = False
    try:
        if renderer is not None:
            last = renderer.error(facts) + closing_comment(exchange.record, exchange.shared.now())
            async with asyncio.timeout(LAST_WRITE):
                if isinstance(renderer, EndingRenderer):
                    await response.write_eof(last)
                    ended = True
                else:
                    await response.write(last)
    except (ConnectionError, TimeoutError):
        exchange.record.outcome = "client_gone"
    finally:
        if not ended and exchange.http.transport is not None:
            exchange.http.transport.close()


async def end_whole(exchange: TextExchange, response: StreamedResponse, body: bytes) -> StreamedResponse:
    """Write the body of a response whose head has been sent. Writing takes time, so the reservations in limits end with
    the record, as in `Exchanges.unsettled`."""
    record, shared = exchange.record, exchange.shared
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
    exchange: TextExchange, waiting: ClientStream, answering: Awaitable[web.StreamResponse]
) -> web.StreamResponse:
    """Return the response to a request whose client gets keep-alives while it waits. A refusal after the first
    keep-alive has the status 200, and is an event of the stream or the JSON body. Before the first keep-alive, a
    refusal raises GatewayError."""
    waiting.start()
    try:
        return await answering
    except Exception as error:
        response, answered = waiting.response, False
        if response is None or waiting.begun:
            raise
        try:
            # No variable holds the error, because its traceback refers to this frame.
            await _end_refused(exchange, response, error if isinstance(error, GatewayError) else internal_error())
            answered = isinstance(error, GatewayError)
        finally:
            if not answered and exchange.http.transport is not None:
                exchange.http.transport.close()  # otherwise the error would follow as a second response
        if answered:
            return response
        raise
    finally:
        waiting.stop()


async def _end_refused(exchange: TextExchange, response: StreamedResponse, error: GatewayError) -> None:
    """Report an error to a client that has received only the head of its response and keep-alives."""
    record, surface, facts, request = exchange.record, exchange.surface, error.facts, exchange.request
    status, body = surface.error(facts)
    record_refusal(record, error.logged, status)
    if not request.stream:
        await end_whole(exchange, response, body)
        return
    show(record, body)
    side = "upstream" if record.outcome in ("upstream_error", "timeout") else "gateway"
    exchange.shared.metrics.abort(side, error.logged, record.model)
    headers = refusal_headers(record, surface, facts)
    response.precede(comment(header_lines({**headers, **timing_header(record, exchange.shared.now())})))
    renderer = surface.renderer(request, AnswerFacts(fresh_id(), int(time.time()), request.model))
    await end_broken(exchange, response, renderer, facts)


def is_long(completion: Completion) -> bool:
    """Return whether writing a response may block the event loop for more than a few ms. Most responses have only
    text."""
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
    """Free the memory of the call of a stream that has begun. A plan with several calls is not freed, because some of
    them may still be sent. Return the prompt tokens of a heavy request, estimated by its length, because its texts are
    not read on the event loop.

    The conversation of a heavy request is not freed, because that would take too long on the event loop.
    """
    if len(prepared.calls) != 1:
        return None
    (call,) = prepared.calls
    tokens = usage_of_body(len(call.sent.body)).prompt_tokens if heavy else None
    call.sent.free_body()
    if not heavy:
        for request in (asked, prepared.request, call.request):
            let_conversation_go(request)
    return tokens


async def wait_for_limits(exchange: ClientExchange[ClientRequest], later: Later) -> None:
    """Wait until the limits admit a request, at most for the request's total time. Raises GatewayError if they do not,
    or if the gateway ends meanwhile."""
    exchange.set_deadlines()
    try:
        with exchange.deadlines:
            await later(exchange.total)
    except DeadlinePassed as error:
        raise upstream_failed(record_failure(exchange.record, error)) from None


def abort_connection(http: web.BaseRequest) -> None:
    """Close the connection of a client that does not read, and drop the bytes that are buffered for it."""
    if http.transport is not None:
        http.transport.abort()
