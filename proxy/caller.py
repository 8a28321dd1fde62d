"""One target asked: its calls made, and their answers read into one.

Never chooses a target or tries another, and never writes to the client; a stream is handed over at its first content.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from providers.completion import Chunk, Completion, StreamEvent
from providers.dialect import StreamDecoder, Timeouts, UpstreamRequest
from providers.emulate import Finisher, Finishing, Scanned, alone, estimated
from providers.exact_streams import refuses_streams
from providers.failure import Failure, FailureKind, UpstreamError, vet
from providers.fanout import UsageTally, billed, merge
from providers.gather import Gatherer, as_chunks
from providers.shape import Call, Prepared
from proxy.background import Tasks
from proxy.deadlines import Deadlines, Phase
from proxy.fitting import Fitting
from proxy.held_answers import Constraint, HeldStream
from proxy.hops import refuse_loop
from proxy.mock_transport import SCHEME, MockTransport
from proxy.off_loop import OffLoop
from proxy.record import RequestRecord
from proxy.streams import LocalStream, MergedStream, OpenStream, Stream, read_through
from proxy.upstream import MAX_BODY, Transport, UpstreamResponse, fail, read_error, read_whole

T = TypeVar("T")

AT_ONCE = 16
"""Calls that one request has under way at a time."""

LONG = 256 * 1024
"""Bytes of an answer that is decoded at once; a longer one, which may have a hundred thousand choices, in a thread."""

SPARE = 1.0
"""Seconds by which the limits of one call of several outlast what is left of the request's deadline."""

SHOWN = 200
"""Characters of a page in an answer's place that the log shows."""


class Caller:
    """Calls targets through the transports. What the gateway waited for them is noted in the request's record."""

    def __init__(self, http: Transport, off_loop: OffLoop) -> None:
        self._http = http
        self._off_loop = off_loop
        self._mock: Transport = MockTransport()
        self._fitting = Fitting(self._ask)
        self._clock = asyncio.get_running_loop().time

    async def whole(
        self, prepared: Prepared, record: RequestRecord, clock: Deadlines, answer: float | None
    ) -> Completion:
        """The answer of a request that is not streamed, of which each call must begin to be answered within `answer`
        seconds (None: at any time). Raises UpstreamError, DeadlinePassed.

        A whole body begins when all has been generated. Once it has begun, or its head has come and the operator says
        how long silence may last, that is the limit.
        """
        started = self._clock()
        try:
            if prepared.counted:
                prepared = await self._counted(prepared, record)
            if prepared.finishing is None:
                completion = await self._single(prepared.calls[0], record, clock, answer)
            else:
                completion = await self._assembled(prepared, prepared.finishing, record, clock, answer)
            return estimated(prepared.request, completion)
        finally:
            record.waited += self._clock() - started

    async def _single(self, call: Call, record: RequestRecord, clock: Deadlines, answer: float | None) -> Completion:
        """The answer of one call. A vendor that will not stream is asked for it in one piece."""
        if call.sent.stream:
            try:
                return await self._fitted(call, record, partial(self._gather, record, clock, answer, None))
            except UpstreamError as error:
                if not refuses_streams(error.failure):
                    raise
            call = _in_one_piece(call)
        return await self._fitted(call, record, partial(self._read, record, clock, answer))

    async def _assembled(
        self, prepared: Prepared, finishing: Finishing, record: RequestRecord, clock: Deadlines, answer: float | None
    ) -> Completion:
        """The answer out of its parts. Each call has limits of its own: one may be silent while another is read."""
        request = prepared.request
        if not prepared.calls:
            return Finisher(finishing).whole(alone(request))

        async def one(call: Call) -> Completion:
            # The total is for the clock of the request to end.
            with Deadlines(clock.remaining + SPARE) as own:
                ask = partial(self._read, record, own, answer)
                if call.sent.stream:
                    ask = partial(self._gather, record, own, answer, finishing)
                # A guess is made for each call: candidates that are not chosen and prompts asked twice count.
                return estimated(call.request, await self._fitted(call, record, ask))

        completions = await _each(prepared.calls, one)
        completion = completions[0]
        if len(completions) > 1:
            record.billed = billed(completions)
            completion = _merged(prepared, completions, finishing.candidates)
        completion = finishing.ranked(completion, request.prompts)
        if finishing.check is not None:
            await Constraint(self._off_loop.checks, finishing.check, record.owner).hold_all(completion)
        return Finisher(finishing).whole(completion)

    async def _read(self, record: RequestRecord, clock: Deadlines, answer: float | None, call: Call) -> Completion:
        """One call's whole body."""
        sent, timeouts = call.sent, call.sent.target.timeouts
        clock.expect(Phase.ANSWER, answer)
        response = await self._open(sent, record)
        try:
            if "idle" in timeouts.written:
                clock.enter(Phase.IDLE, timeouts.idle)
            body = await read_whole(response, partial(_arrived, clock, timeouts.idle))
        finally:
            response.release()
        _refuse_page(body)
        decode = partial(sent.target.dialect.decode, sent, body)
        try:
            completion = decode() if len(body) <= LONG else await self._off_loop.threads.run(record.owner, decode)
        except UpstreamError as error:
            raise _answered(error, response) from None
        if len(completion.choices) != call.part.count:
            message = f"The upstream answered with {len(completion.choices)} of {call.part.count} choices."
            raise fail(FailureKind.MALFORMED, message)
        return completion

    async def _gather(
        self, record: RequestRecord, clock: Deadlines, answer: float | None, finishing: Finishing | None, call: Call
    ) -> Completion:
        """One call's answer out of a stream, which ends where the gateway finds a stop."""
        timeouts = call.sent.target.timeouts
        clock.expect(*_first_limit(timeouts, answer, chosen=finishing is None))
        stream = await self._first(record, finishing, call)
        clock.begun()
        clock.enter(Phase.IDLE, timeouts.idle)
        gatherer = Gatherer(call.part.count)
        size = 0

        async def gather(events: Iterator[StreamEvent]) -> int:
            nonlocal size
            clock.touch()
            ended = 0
            for event in events:
                gatherer.add(event)
                if isinstance(event, Chunk):
                    size += len(event.text) + len(event.reasoning or "")
                    ended += event.finish_reason is not None
            if size > MAX_BODY:
                raise fail(FailureKind.MALFORMED, f"The upstream's answer is larger than {MAX_BODY} bytes.")
            return ended

        try:
            await read_through(stream, call.part.count, gather)
        finally:
            stream.close()
        try:
            return gatherer.completion()
        except ValueError as problem:
            raise fail(FailureKind.TRUNCATED, f"The upstream's answer is not whole: {problem}.") from None

    @asynccontextmanager
    async def streamed(self, prepared: Prepared, record: RequestRecord, clock: Deadlines) -> AsyncIterator[Stream]:
        """The stream of a request, read up to its first content; closed on leaving. Raises UpstreamError.

        The first-event limit covers everything before that, comments and role-only frames included: none of it is
        content.
        """
        clock.enter(Phase.FIRST_EVENT, prepared.target.timeouts.first_event)
        if prepared.counted:
            prepared = await self._waited(record, self._counted(prepared, record))
        finishing = prepared.finishing
        if len(prepared.calls) > 1:
            async with Tasks() as tasks:
                merged = self._merged(prepared, record, tasks)
                await self._waited(record, merged.until_content())
                yield await self._finished(merged, prepared, record)
                record.billed = merged.billed
        elif prepared.calls:
            first = self._fitted(prepared.calls[0], record, partial(self._first, record, finishing))
            stream = await self._waited(record, first)
            try:
                yield await self._finished(stream, prepared, record)
            finally:
                stream.close()
        else:
            yield LocalStream(list(as_chunks(Finisher(finishing or Finishing()).whole(alone(prepared.request)))))

    async def _finished(
        self, stream: OpenStream | MergedStream, prepared: Prepared, record: RequestRecord
    ) -> OpenStream | MergedStream | HeldStream:
        """The stream with what the gateway still has to do to its choices."""
        finishing = prepared.finishing
        if finishing is None:
            return stream
        finisher = Finisher(finishing)
        if finishing.check is None:
            stream.finisher = finisher
            return stream
        held = HeldStream(stream, Constraint(self._off_loop.checks, finishing.check, record.owner), finisher)
        await held.begin()
        return held

    async def _waited(self, record: RequestRecord, work: Awaitable[T]) -> T:
        started = self._clock()
        try:
            return await work
        finally:
            record.waited += self._clock() - started

    def _merged(self, prepared: Prepared, record: RequestRecord, tasks: Tasks) -> MergedStream:
        finishing = prepared.finishing or Finishing()

        async def opened(call: Call) -> OpenStream:
            return await self._fitted(call, record, partial(self._first, record, finishing))

        tally = UsageTally([call.part for call in prepared.calls])
        merged = MergedStream(len(prepared.calls), finishing.n, opened, asyncio.Semaphore(AT_ONCE), tally)
        for number, call in enumerate(prepared.calls):
            tasks.start(merged.pump(number, call))
        return merged

    async def _first(self, record: RequestRecord, finishing: Finishing | None, call: Call) -> OpenStream:
        """One call's stream up to its first content."""
        sent = call.sent
        response = await self._open(sent, record)
        try:
            decoder = sent.target.dialect.stream(sent)
            if finishing is not None and finishing.stops:
                decoder = Scanned(decoder, finishing, call.part.count)
            events, ended = await _until_content(response, decoder)
        except BaseException:
            response.close()
            raise
        return OpenStream(response, decoder, events, ended)

    async def _counted(self, prepared: Prepared, record: RequestRecord) -> Prepared:
        """The request with calls that fit, as far as that can be told before the first of them is made."""
        calls = await _each(prepared.calls, lambda call: self._fitting.beforehand(call, record))
        return replace(prepared, calls=tuple(calls))

    async def _fitted(self, call: Call, record: RequestRecord, ask: Callable[[Call], Awaitable[T]]) -> T:
        """What `ask` gives for a call, with as many tokens as the window leaves where that is what the client wants."""
        tries = 1
        while True:
            try:
                return await ask(call)
            except UpstreamError as error:
                smaller = self._fitting.smaller(call, error.failure, tries, record)
                if smaller is None:
                    raise
                call = smaller
                tries += 1

    def _ask(self, sent: UpstreamRequest, record: RequestRecord) -> Coroutine[object, object, UpstreamResponse]:
        transport = self._mock if sent.url.startswith(SCHEME) else self._http
        return transport.open(sent, record.request_id)

    async def _open(self, sent: UpstreamRequest, record: RequestRecord) -> UpstreamResponse:
        response = await self._ask(sent, record)
        if 200 <= response.status < 300:
            return response
        try:
            body = await read_error(response)
        finally:
            response.release()
        refuse_loop(response.status, body)
        raise UpstreamError(sent.target.dialect.classify(sent, response.status, response.headers, body))


def _in_one_piece(call: Call) -> Call:
    request, target = replace(call.request, stream=False), call.sent.target
    return replace(call, request=request, sent=target.dialect.encode(request, target))


def _arrived(clock: Deadlines, idle: float, piece: bytes) -> None:
    """A piece of a whole body has come. Blanks, by which a vendor shows that it is at work, are not yet the answer."""
    clock.enter(Phase.IDLE, idle)
    if not piece.isspace():
        clock.begun()


def _first_limit(timeouts: Timeouts, answer: float | None, *, chosen: bool) -> tuple[Phase, float | None]:
    """How long the first content of a stream may take that a whole answer is read from: as long as the answer may, and
    no longer than an operator lets streams take, who says so or has `chosen` to stream and says nothing else."""
    first = timeouts.first_event
    counts = "first_event" in timeouts.written or (chosen and timeouts.answer is None)
    return (Phase.FIRST_EVENT, first) if counts and (answer is None or first < answer) else (Phase.ANSWER, answer)


async def _each(calls: Sequence[Call], work: Callable[[Call], Coroutine[object, object, T]]) -> list[T]:
    """What `work` gives for each call, in order, several at a time; the first exception ends them all."""
    if len(calls) <= 1:
        return [await work(call) for call in calls]
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(call: Call) -> T:
        async with slots:
            return await work(call)

    async with Tasks() as tasks:
        return await tasks.all(one(call) for call in calls)


def _merged(prepared: Prepared, completions: list[Completion], candidates: int) -> Completion:
    try:
        return merge([call.part for call in prepared.calls], completions, candidates)
    except ValueError:
        raise fail(FailureKind.MALFORMED, "The upstream answered with choices that were not asked for.") from None


def _answered(error: UpstreamError, response: UpstreamResponse) -> UpstreamError:
    """What is wrong with the body of an answer, which is a failure with a status: nobody hung up without a word."""
    failure = error.failure
    return error if failure.status is not None else UpstreamError(replace(failure, status=response.status))


async def _until_content(response: UpstreamResponse, decoder: StreamDecoder) -> tuple[list[StreamEvent], bool]:
    events: list[StreamEvent] = []
    piece = await response.read()
    _refuse_page(piece)
    while True:
        try:
            events.extend(decoder.feed(piece) if piece else decoder.finish())
        except UpstreamError as error:
            raise _answered(error, response) from None
        if any(isinstance(event, Chunk) for event in events):
            return events, not piece
        if not piece:
            raise fail(FailureKind.TRUNCATED, "The upstream's stream ended without content.")
        if decoder.complete:
            raise fail(FailureKind.MALFORMED, "The upstream's stream was empty.")
        piece = await response.read()


def _refuse_page(start: bytes) -> None:
    """Raises UpstreamError for the start of a page of HTML, whatever its type says: no vendor's answer begins so, but
    that of something on the way to it."""
    if start[:SHOWN].lstrip()[:1] == b"<":
        # The ellipsis tells whoever takes the credential out that one may have been cut in two.
        shown = vet(start[: 4 * SHOWN].decode("utf-8", "replace"))[:SHOWN] + "…"
        message = "The upstream answered with a web page."
        raise UpstreamError(Failure(FailureKind.MALFORMED, message, evidence=shown, ours=True))
