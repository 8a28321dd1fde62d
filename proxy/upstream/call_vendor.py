"""Calls one target and joins the responses of its calls into one. A stream is handed over at its first content."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import TypeVar

from providers.completion import Chunk, Completion, StreamEvent, StreamPart, Usage
from providers.dialect import StreamDecoder, usage_so_far
from providers.emulation.collect_stream import Gatherer, to_chunks
from providers.emulation.estimate_missing_usage import early_usage, with_usage
from providers.emulation.join_extras import size_of_extras
from providers.emulation.merge_choices import UsageTally, billed_usage, merge
from providers.emulation.plan_calls import CallPlan, PlannedCall
from providers.emulation.post_processing import PostProcessing, PostProcessor, StopScanningDecoder, echo_only
from providers.emulation.prefer_streaming import refuses_streams
from providers.failure import FailureKind, UpstreamError
from providers.target import Timeouts
from proxy.background_tasks import Tasks
from proxy.deadlines import Deadlines, Phase
from proxy.loop_clock import loop_clock
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.upstream.check_streamed_answers import Constraint, HeldStream
from proxy.upstream.gateway_streams import LocalStream
from proxy.upstream.merge_streams import MergedStream
from proxy.upstream.read_answer import content_limit, read_answer, until_content
from proxy.upstream.send_call import CallSender, is_good, refusal
from proxy.upstream.transport import (
    MAX_BODY,
    NO_REPEATS,
    RepeatableError,
    RepeatCause,
    Repeats,
    fail,
)
from proxy.upstream.unanswered_usage import count_failed_call, estimated, usage_of_call
from proxy.upstream.vendor_stream import OpenStream, Stream, read_through

T = TypeVar("T")
C = TypeVar("C")

MAX_CONCURRENT_CALLS = 16
"""The most concurrent calls of one request."""

EXTRA_SECONDS = 1.0
"""If a request has several calls, the limit of each call exceeds the remaining time of the request's deadline by this
many seconds."""


class UpstreamCaller:
    """Calls targets through the transports, and adds the time spent waiting to the request's record."""

    def __init__(self, calls: CallSender, off_loop: OffLoop) -> None:
        self._off_loop = off_loop
        self._calls = calls
        self._now = loop_clock()

    async def whole(
        self, prepared: CallPlan, record: RequestRecord, deadlines: Deadlines, answer: float | None
    ) -> Completion:
        """Return the response to a request that is not streamed. Each call's response must begin within `answer`
        seconds (`None` = no limit). Raises UpstreamError, DeadlinePassed.

        A non-streaming body begins when all of it has been generated. Once the body has begun, the idle timeout limits
        it. If the operator has set the idle timeout, it already applies from the response's head on.
        """
        started = self._now()
        try:
            if prepared.counted:
                prepared = await self._counted(prepared, record)
            if prepared.finishing is not None:
                completion = await self._assembled(prepared, prepared.finishing, record, deadlines, answer)
                return with_usage(prepared.request, completion)
            call, repeats = prepared.calls[0], NO_REPEATS
            while True:
                try:
                    if call.sent.stream:
                        completion = await self._gather_or_read(record, deadlines, answer, call, repeats)
                    else:
                        # This does the same as `_read`, whose coroutine would cost nearly every request 1 us.
                        deadlines.expect(Phase.ANSWER, answer)
                        response = await self._calls.ask(call.sent, record, repeats)
                        record.note_head(response.head)
                        read = read_answer(response, record, deadlines, call, self._off_loop)
                        completion = read if isinstance(read, Completion) else await read
                    return completion if completion.usage is not None else estimated(call, completion)
                except UpstreamError as error:
                    again = await self._calls.again(call, error, repeats, record)
                    if again is None:
                        raise
                call, repeats = again
        finally:
            record.waited += self._now() - started

    async def _gather_or_read(
        self, record: RequestRecord, deadlines: Deadlines, answer: float | None, call: PlannedCall, repeats: Repeats
    ) -> Completion:
        """Read the response from a stream, or as one body if streaming has been refused."""
        if not call.sent.stream:
            return await self._read(record, deadlines, answer, call, repeats)
        try:
            return await self._gather(record, deadlines, answer, None, call, repeats)
        except UpstreamError as error:
            if not refuses_streams(error.failure):
                raise
            raise RepeatableError(error.failure, RepeatCause.STREAM_REFUSED) from None

    async def _assembled(
        self,
        prepared: CallPlan,
        finishing: PostProcessing,
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
    ) -> Completion:
        """Return the response of several calls. Each call has its own limits, because one call may be silent while
        another is read."""
        if not prepared.calls:
            return PostProcessor(finishing).whole(echo_only(prepared.request))
        reported_usages: list[Usage] = []

        async def call_one(call: PlannedCall) -> Completion:
            # The request's own deadline ends all calls.
            with Deadlines(deadlines.remaining + EXTRA_SECONDS) as own:
                make = partial(self._read, record, own, answer)
                if call.sent.stream:
                    make = partial(self._gather, record, own, answer, finishing)
                # The usage is estimated for each call, because candidates that are not chosen and repeated prompts
                # count too.
                completion = estimated(call, await self._calls.make(call, record, make))
            if completion.usage is not None:
                reported_usages.append(completion.usage)
            return completion

        try:
            return await self._joined(prepared, finishing, record, await map_calls(prepared.calls, call_one))
        except BaseException:
            record.billed = None
            for usage in reported_usages:
                record.note_unanswered(usage)
            raise

    async def _joined(
        self, prepared: CallPlan, finishing: PostProcessing, record: RequestRecord, completions: list[Completion]
    ) -> Completion:
        """Return one response joined from the responses of all calls. Raises UpstreamError if the joined response
        breaks the request's constraint."""
        completion = completions[0]
        if len(completions) > 1:
            record.billed = billed_usage(completions)
            completion = _merged(prepared, completions, finishing.candidates)
        completion = finishing.ranked(completion, prepared.request.prompt.count)
        if finishing.checks:
            await Constraint(self._off_loop.checks, finishing, record.owner).check_all(completion)
        return PostProcessor(finishing).whole(completion)

    async def _read(
        self, record: RequestRecord, deadlines: Deadlines, answer: float | None, call: PlannedCall, repeats: Repeats
    ) -> Completion:
        """Return the response of one call. Raises UpstreamError."""
        deadlines.expect(Phase.ANSWER, answer)
        try:
            response = await self._calls.ask(call.sent, record, repeats)
            record.note_head(response.head)
            read = read_answer(response, record, deadlines, call, self._off_loop)
            return read if isinstance(read, Completion) else await read
        except BaseException as error:
            count_failed_call(record, call, error)
            raise

    async def _gather(
        self,
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        finishing: PostProcessing | None,
        call: PlannedCall,
        repeats: Repeats,
    ) -> Completion:
        """Read one call's response from a stream, which ends when the gateway finds a stop string."""
        timeouts = call.sent.target.timeouts
        deadlines.expect(*_first_limit(timeouts, answer, chosen=finishing is None))
        stream = await self._first(record, finishing, call, repeats)
        deadlines.begun()
        deadlines.enter(Phase.IDLE, timeouts.idle)
        gatherer = Gatherer(call.part.count)
        size = 0

        async def gather(events: Iterator[StreamEvent]) -> int:
            nonlocal size
            deadlines.touch()
            ended = 0
            for event in events:
                gatherer.add(event)
                if isinstance(event, Chunk):
                    size += len(event.text) + len(event.reasoning or "")
                    size += 0 if event.extras is None else size_of_extras(event.extras)
                    ended += event.finish_reason is not None
            if size > MAX_BODY:
                raise fail(FailureKind.MALFORMED, f"The upstream's response is larger than {MAX_BODY} bytes.")
            return ended

        try:
            await read_through(stream, call.part.count, gather)
            return _whole(gatherer)
        except BaseException:
            reported = gatherer.usage or usage_so_far(stream.decoder)
            record.note_unanswered(early_usage(reported, usage_of_call(call.request, len(call.sent.body), size)))
            raise
        finally:
            stream.close()

    def streamed(
        self, prepared: CallPlan, record: RequestRecord, deadlines: Deadlines
    ) -> AbstractAsyncContextManager[Stream]:
        """Return a context manager around the stream of a request, which is read up to its first content. It closes the
        stream on exit. Entering it raises UpstreamError.

        The first-event limit covers everything before the first content, including comments and chunks without content.
        """
        calls, timeouts = prepared.calls, prepared.target.timeouts
        deadlines.enter(Phase.FIRST_EVENT, content_limit(calls[0].sent) if calls else timeouts.first_event)
        if len(calls) == 1:
            return SingleStream(self, prepared, record)
        return self._merged_or_local(prepared, record)

    @asynccontextmanager
    async def _merged_or_local(self, prepared: CallPlan, record: RequestRecord) -> AsyncIterator[Stream]:
        if prepared.counted:
            prepared = await self._waited(record, self._counted(prepared, record))
        if prepared.calls:
            async with Tasks() as tasks:
                merged, committed = self._merged(prepared, record, tasks), False
                try:
                    await self._waited(record, merged.until_content())
                    committed = True
                    yield await self.finished(merged, prepared, record)
                    record.billed = merged.billed
                except BaseException:
                    if committed:
                        record.billed = merged.spent
                    elif (spent := merged.spent) is not None:
                        record.note_unanswered(spent)
                    raise
        else:
            finisher = PostProcessor(prepared.finishing or PostProcessing())
            yield LocalStream(list(to_chunks(finisher.whole(echo_only(prepared.request)))))

    async def finished(
        self, stream: OpenStream | MergedStream, prepared: CallPlan, record: RequestRecord
    ) -> OpenStream | MergedStream | HeldStream:
        """Return the stream with the gateway's post-processing of its choices."""
        finishing = prepared.finishing
        if finishing is None:
            return stream
        finisher = PostProcessor(finishing)
        if not finishing.checks:
            stream.finisher = finisher
            return stream
        held = HeldStream(stream, Constraint(self._off_loop.checks, finishing, record.owner), finisher)
        await held.begin()
        return held

    async def _waited(self, record: RequestRecord, work: Awaitable[T]) -> T:
        started = self._now()
        try:
            return await work
        finally:
            record.waited += self._now() - started

    def _merged(self, prepared: CallPlan, record: RequestRecord, tasks: Tasks) -> MergedStream:
        finishing = prepared.finishing or PostProcessing()

        async def opened(call: PlannedCall) -> OpenStream:
            return await self._calls.make(call, record, partial(self._first, record, finishing))

        tally = UsageTally([call.part for call in prepared.calls])
        merged = MergedStream(len(prepared.calls), finishing.n, opened, asyncio.Semaphore(MAX_CONCURRENT_CALLS), tally)
        for number, call in enumerate(prepared.calls):
            tasks.start(merged.pump(number, call))
        return merged

    async def _first(
        self, record: RequestRecord, finishing: PostProcessing | None, call: PlannedCall, repeats: Repeats
    ) -> OpenStream:
        """Open one call's stream and read it up to its first content. Raises UpstreamError."""
        sent = call.sent
        seen: list[StreamPart] = []
        decoder: StreamDecoder | None = None
        try:
            response = await self._calls.ask(sent, record, repeats)
            record.note_head(response.head)
            if not is_good(response):
                raise await refusal(sent, response)
            try:
                decoder = sent.target.dialect.stream(sent)
                if finishing is not None and finishing.stops:
                    decoder = StopScanningDecoder(decoder, finishing, call.part.count)
                aside = partial(self._off_loop.threads.run, record.owner)
                events, ended = await until_content(response, decoder, aside, seen)
            except BaseException:
                response.close()
                raise
        except BaseException as error:
            count_failed_call(record, call, error, seen, decoder)
            raise
        return OpenStream(response, decoder, events, ended, aside)

    async def _counted(self, prepared: CallPlan, record: RequestRecord) -> CallPlan:
        """Return the plan with calls that fit the context window, as far as this is known before they are sent."""
        calls = await map_calls(prepared.calls, lambda call: self._calls.fitting.beforehand(call, record))
        return replace(prepared, calls=tuple(calls))


@dataclass(slots=True, eq=False)
class SingleStream:
    """A context manager around the stream of one call, which UpstreamCaller.streamed returns. If the stream ends before
    its usage is known, the `record` gets the usage that the vendor has reported so far. `_size` is the length in bytes
    of the call's body, because the body itself is freed."""

    _caller: UpstreamCaller
    _prepared: CallPlan
    record: RequestRecord
    _stream: OpenStream | None = None
    _size: int = 0

    async def __aenter__(self) -> Stream:
        caller, prepared, record = self._caller, self._prepared, self.record
        started = caller._now()
        try:
            fitting = await caller._counted(prepared, record) if prepared.counted else prepared
            opened = partial(caller._first, record, prepared.finishing)
            stream = await caller._calls.make(fitting.calls[0], record, opened)
        finally:
            record.waited += caller._now() - started
        self._size = len(prepared.calls[0].sent.body)
        try:
            finished = await caller.finished(stream, prepared, record)
        except BaseException:
            stream.close()
            record.note_unanswered(early_usage(usage_so_far(stream.decoder), self._estimate()))
            raise
        self._stream = stream
        return finished

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._stream is None:
            return
        self._stream.close()
        usage = self.record.usage
        if usage is None or usage.estimated:
            self.record.usage = early_usage(usage_so_far(self._stream.decoder), usage or self._estimate())

    def _estimate(self) -> Usage:
        """Return the prompt's part of the usage, as `usage_of_call` estimates it."""
        return usage_of_call(self._prepared.calls[0].request, self._size)


def _whole(gatherer: Gatherer) -> Completion:
    try:
        return gatherer.completion()
    except ValueError as problem:
        raise fail(FailureKind.TRUNCATED, f"The upstream's response is incomplete: {problem}.") from None


def _first_limit(timeouts: Timeouts, answer: float | None, *, chosen: bool) -> tuple[Phase, float | None]:
    """Return the phase and limit until the first content of a stream from which a non-streaming response is read. The
    limit is `answer`. The first-event limit applies instead if it is lower and the operator has set it, or has `chosen`
    to stream without a limit for responses."""
    first = timeouts.first_event
    counts = "first_event" in timeouts.written or (chosen and timeouts.answer is None)
    return (Phase.FIRST_EVENT, first) if counts and (answer is None or first < answer) else (Phase.ANSWER, answer)


async def map_calls(calls: Sequence[C], work: Callable[[C], Coroutine[object, object, T]]) -> list[T]:
    """Return the results of `work` for each call, in order. At most MAX_CONCURRENT_CALLS calls run concurrently. The
    first exception ends all of them."""
    if len(calls) <= 1:
        return [await work(call) for call in calls]
    slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)

    async def call_one(call: C) -> T:
        async with slots:
            return await work(call)

    async with Tasks() as tasks:
        return await tasks.all(call_one(call) for call in calls)


def _merged(prepared: CallPlan, completions: list[Completion], candidates: int) -> Completion:
    try:
        return merge([call.part for call in prepared.calls], completions, candidates)
    except ValueError:
        raise fail(FailureKind.MALFORMED, "The upstream's response has choices that were not requested.") from None
