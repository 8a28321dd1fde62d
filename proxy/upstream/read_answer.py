"""Reads the non-streaming response of one call. If all of it has arrived, it is read without waiting."""

import asyncio
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial
from itertools import islice

from providers.completion import Chunk, Completion, StreamPart, TextRun, Usage, has_content
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.dialects.usage_in_body import usage_in_body
from providers.emulation.merge_choices import require_choices
from providers.emulation.plan_calls import PlannedCall
from providers.failure import FailureKind, UpstreamError
from providers.target import Timeouts
from proxy.deadlines import Deadlines, Phase
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.upstream.send_call import is_good, refusal
from proxy.upstream.transport import MAX_BODY, UpstreamResponse, fail, read_whole, refuse_page
from proxy.upstream.vendor_stream import LONG_EVENT, MOST_AT_ONCE, Aside, reader_of

LONG = 256 * 1024
"""The most bytes of a response that is decoded on the event loop. A longer one may have 100,000 choices and is decoded
in a thread."""


def read_answer(
    response: UpstreamResponse, record: RequestRecord, deadlines: Deadlines, call: PlannedCall, off_loop: OffLoop
) -> Completion | Awaitable[Completion]:
    """Return the completion if the response is successful, of common size and has arrived completely, as nearly every
    response. Otherwise return an awaitable that reads the response. Both the function and the awaitable raise
    UpstreamError."""
    body = response.take_all() if response.status == 200 else None
    if body is None or len(body) > LONG:
        return _read_on(response, body, record, deadlines, call, off_loop)
    deadlines.begun()
    return _decoded(response, body, call, record)


async def _read_on(
    response: UpstreamResponse,
    body: bytes | None,
    record: RequestRecord,
    deadlines: Deadlines,
    call: PlannedCall,
    off_loop: OffLoop,
) -> Completion:
    """Read a response. If `body` is `None`, the body may still be arriving. A long body is decoded in a thread."""
    if not is_good(response):
        raise await refusal(call.sent, response)
    if body is None:
        body = response.take_all()
    if body is None:
        if record.attempts:
            record.attempts[-1].begun = asyncio.get_running_loop().time()
        body = await read_arriving(response, call.sent.target.timeouts, deadlines)
    deadlines.begun()
    if len(body) <= LONG:
        return _decoded(response, body, call, record)
    return await off_loop.threads.run(record.owner, partial(_decoded, response, body, call, record))


def _decoded(response: UpstreamResponse, body: bytes, call: PlannedCall, record: RequestRecord) -> Completion:
    """Return the completion in a body. Raises UpstreamError if it cannot be decoded, or does not have exactly the
    requested choices."""
    if not body.startswith(b"{"):
        refuse_page(body)
    try:
        completion = call.sent.target.dialect.decode(call.sent, body)
    except UpstreamError as error:
        raise _counted(with_status(error, response), usage_in_body(body), record) from None
    choices = completion.choices
    if len(choices) == 1 == call.part.count and choices[0].index == 0:
        return completion  # this test suffices for nearly all responses
    try:
        return require_choices(completion, call.part.count)
    except ValueError as problem:
        failed = fail(FailureKind.MALFORMED, f"The upstream's response has {problem}.")
        raise _counted(with_status(failed, response), completion.usage, record) from None


def _counted(error: UpstreamError, usage: Usage | None, record: RequestRecord) -> UpstreamError:
    """Return the failure of a call after counting its usage, if the vendor reported it."""
    if usage is not None:
        record.note_unanswered(usage)
        error.counted = True
    return error


async def read_arriving(
    response: UpstreamResponse, timeouts: Timeouts, deadlines: Deadlines, limit: int = MAX_BODY
) -> bytes:
    """Return the body of a non-streaming response. Each chunk must arrive within the idle timeout. Raises the errors of
    `read_whole`."""
    try:
        if "idle" in timeouts.written:
            deadlines.enter(Phase.IDLE, timeouts.idle)
        return await read_whole(response, partial(note_chunk, deadlines, timeouts.idle), limit)
    finally:
        response.release()


def note_chunk(deadlines: Deadlines, idle: float, chunk: bytes) -> None:
    """Renew the limits after a chunk of a body. White space, which some vendors send while they work, does not begin
    the response."""
    deadlines.enter(Phase.IDLE, idle)
    if not chunk.isspace():
        deadlines.begun()


def with_status(error: UpstreamError, response: UpstreamResponse) -> UpstreamError:
    """Return the failure with the response's status added, because the vendor did respond, though with an unusable
    body."""
    failure = error.failure
    return error if failure.status is not None else UpstreamError(replace(failure, status=response.status))


async def until_content(
    response: UpstreamResponse, decoder: StreamDecoder, aside: Aside | None = None, seen: list[StreamPart] | None = None
) -> tuple[list[StreamPart], bool]:
    """Return the parts of a stream up to the chunk with its first content, and whether its body is over. Raises
    UpstreamError. A long first event, and the parts of a chunk after MOST_AT_ONCE, are decoded by `aside`. All decoded
    parts are added to `seen`, even if the stream breaks."""
    events: list[StreamPart] = [] if seen is None else seen
    read = reader_of(decoder)
    chunk = await response.read()
    refuse_page(chunk)
    size = 0
    while True:
        latest: list[StreamPart] = []
        try:
            parts = iter(read(chunk) if chunk else decoder.finish())
            at_once = None if aside is None else 0 if size > LONG_EVENT else MOST_AT_ONCE
            latest.extend(islice(parts, at_once))
            if aside is not None and len(latest) == at_once:
                latest += await aside(partial(list, parts))
        except UpstreamError as error:
            events += latest
            raise with_status(error, response) from None
        events += latest
        if any(isinstance(event, TextRun) or (isinstance(event, Chunk) and has_content(event)) for event in latest):
            return events, not chunk
        if not chunk:
            raise fail(FailureKind.TRUNCATED, "The upstream's stream ended without content.")
        if decoder.complete:
            raise fail(FailureKind.MALFORMED, "The upstream's stream was empty.")
        size += len(chunk)
        chunk = await response.read()


def content_limit(sent: UpstreamRequest) -> float:
    """Return the most seconds until the first content of a stream. If the gateway makes the stream from a non-streaming
    response, the limit of non-streaming responses applies, unless the operator has set a limit for streams."""
    timeouts = sent.target.timeouts
    if not sent.whole or "first_event" in timeouts.written:
        return timeouts.first_event
    return timeouts.answer or timeouts.total
