"""The streams of several calls, merged into one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import InitVar, dataclass, field
from functools import partial

from providers.completion import Chunk, StreamEvent, Usage, has_content
from providers.dialect import StreamDecoder, usage_so_far
from providers.emulation.estimate_missing_usage import early_usage, size_written
from providers.emulation.merge_choices import UsageTally, renumber, total_usage
from providers.emulation.plan_calls import PlannedCall
from providers.emulation.post_processing import PostProcessor
from providers.failure import FailureKind, UpstreamError
from proxy.upstream.transport import fail
from proxy.upstream.unanswered_usage import usage_of_call
from proxy.upstream.vendor_stream import OpenStream, finished, read_through

MAX_WAITING = 8
"""The most batches of events that a client may leave unread. Beyond this number, reading from the vendors of the
client's request pauses."""

Open = Callable[[PlannedCall], Awaitable[OpenStream]]


@dataclass(slots=True, eq=False)
class MergedStream:
    """The streams of several calls as one Stream, in the order in which their events arrive.

    Each call is read by a task of the creator, which runs `pump`. `pump` puts a vendor's failure into the queue instead
    of raising it, so that earlier events are relayed first.
    """

    calls: InitVar[int]
    n: int
    open_stream: Open
    slots: asyncio.Semaphore
    tally: UsageTally
    finisher: PostProcessor | None = None
    _running: int = field(init=False)
    _sizes: dict[int, int] = field(init=False)
    _opened: dict[int, tuple[PlannedCall, StreamDecoder]] = field(default_factory=dict)
    _queue: asyncio.Queue[list[Chunk] | UpstreamError | None] = field(
        default_factory=lambda: asyncio.Queue(MAX_WAITING)
    )
    _usage: Usage | None = None
    _item: list[Chunk] | UpstreamError | None = None
    _fault: BaseException | None = None
    _first: list[StreamEvent] = field(default_factory=list)

    def __post_init__(self, calls: int) -> None:
        self._running = calls
        self._sizes = dict.fromkeys(range(calls), 0)

    @property
    def over(self) -> bool:
        return not self._running

    @property
    def billed(self) -> Usage | None:
        """The usage that the vendor charges for; `None` until every call has ended or reported its usage."""
        return self.tally.billed

    @property
    def spent(self) -> Usage | None:
        """The usage so far of the calls that have been opened, estimated if it was not reported; `None` if no call was
        opened."""
        return total_usage([self.tally.usage_of(number) or self._early(number) for number in self._opened])

    def _early(self, number: int) -> Usage:
        """Return the usage of a call whose vendor has not reported it at the end of the stream."""
        call, decoder = self._opened[number]
        estimate = usage_of_call(call.request, len(call.sent.body), self._sizes.get(number, 0))
        return early_usage(usage_so_far(decoder), estimate)

    async def until_content(self) -> None:
        """Wait for the first content of any call. Raises UpstreamError."""
        begun = False
        while not begun:
            await self.wait()
            latest = [*self._events()]
            self._first += latest
            begun = any(isinstance(event, Chunk) and has_content(event) for event in latest)

    def first(self) -> Iterator[StreamEvent]:
        return self._finished(iter(self._first))

    async def wait(self) -> None:
        """Wait for the next events. Raises RuntimeError if a call's task failed because of a bug of the gateway."""
        self._item = await self._queue.get() if self._fault is None else None
        if self._fault is not None:
            raise RuntimeError("a call's stream cannot be read") from self._fault
        if self._item is None:
            self._running -= 1

    def take(self) -> Iterator[StreamEvent]:
        return self._finished(self._events())

    def _events(self) -> Iterator[StreamEvent]:
        item, self._item = self._item, None
        if isinstance(item, UpstreamError):
            raise item
        yield from item or ()
        if self._queue.empty():
            yield from self.conclude()

    def _finished(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        return events if self.finisher is None else finished(events, self.finisher)

    def conclude(self) -> Iterator[StreamEvent]:
        """Yield the usage once every call has reported its usage. The usage bypasses the queue, so that it is not lost
        if a task that fills the queue times out."""
        usage, self._usage = self._usage, None
        if usage is not None:
            yield usage

    async def finish(self) -> None:
        """Do nothing, because the tasks free their connections themselves."""

    def close(self) -> None:
        """Do nothing, because the tasks close their connections when they are cancelled."""

    async def pump(self, number: int, call: PlannedCall) -> None:
        """Read one call's stream to its end and hand over its events."""
        try:
            async with self.slots:
                try:
                    await self._pumped(number, call)
                except UpstreamError as error:
                    await self._queue.put(error)
            await self._queue.put(None)
        except BaseException as fault:
            self._fault = fault
            if self._queue.empty():
                self._queue.put_nowait(None)
            raise

    async def _pumped(self, number: int, call: PlannedCall) -> None:
        stream = await self.open_stream(call)
        self._opened[number] = call, stream.decoder
        try:
            await read_through(stream, call.part.count, partial(self._hand_over, number, call))
        finally:
            stream.close()
        if number in self._sizes:
            self._note(number, self._early(number))

    async def _hand_over(self, number: int, call: PlannedCall, events: Iterator[StreamEvent]) -> int:
        """Hand over events with the choices renumbered, and return how many choices ended."""
        batch: list[Chunk] = []
        ended = 0
        broken: UpstreamError | None = None
        try:
            for event in events:
                if isinstance(event, Chunk):
                    batch.append(self._numbered(call, event))
                    ended += event.finish_reason is not None
                    if number in self._sizes:
                        self._sizes[number] += size_written(event)
                else:
                    self._sizes.pop(number, None)
                    self._note(number, event)
        except UpstreamError as error:
            broken = error
        if batch or self._usage is not None:
            await self._queue.put(batch)
        if broken is not None:
            raise broken
        return ended

    def _note(self, number: int, usage: Usage) -> None:
        self.tally.note(number, usage)
        self._usage = self.tally.merged

    def _numbered(self, call: PlannedCall, chunk: Chunk) -> Chunk:
        try:
            return renumber(call.part, chunk, self.n)
        except ValueError:
            message = "The upstream's response has a choice that was not requested."
            raise fail(FailureKind.MALFORMED, message) from None
