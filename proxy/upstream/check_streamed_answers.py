"""Checks answers against the request's constraint before a choice ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from providers.completion import Chunk, Completion, StreamEvent
from providers.emulation.check_answer import AnswerCheck, FinishedTexts
from providers.emulation.post_processing import PostProcessor
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.off_loop.answer_check_pool import CheckFailed, TooCostly
from proxy.off_loop.request_threads import AnswerChecker
from proxy.upstream.vendor_stream import Stream, finished


@dataclass(slots=True, eq=False)
class Constraint:
    """The constraint on the answer of one request. `owner` is the team, or the client where there are no teams."""

    _checks: AnswerChecker
    _check: AnswerCheck
    _owner: str
    _texts: FinishedTexts = field(default_factory=FinishedTexts)

    async def check_chunk(self, chunk: Chunk) -> None:
        """Raise UpstreamError where the chunk ends a choice whose text breaks the constraint, or cannot be checked."""
        text = self._texts.add(chunk)
        if text is None:
            return
        field = self._check.field
        try:
            reason = await self._checks.breach(self._check, text, self._owner)
        except TooCostly as error:
            # The client's constraint is at fault, which another deployment would not change.
            message = f"The answer could not be held against '{field}': it {error}."
            raise UpstreamError(Failure(FailureKind.INVALID_REQUEST, message, param=field)) from None
        except CheckFailed:
            message = f"The gateway could not hold the answer against '{field}'."
            raise UpstreamError(Failure(FailureKind.BUSY, message)) from None
        if reason is not None:
            message = f"The upstream's answer breaks '{field}': {reason}."
            raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))

    async def check_all(self, completion: Completion) -> None:
        """Check every choice of a whole answer like `check_chunk`."""
        for choice in completion.choices:
            await self.check_chunk(Chunk(choice.index, choice.text, choice.finish_reason, refusal=choice.refusal))


@dataclass(slots=True, eq=False)
class HeldStream:
    """A stream that breaks where a choice ends that breaks its constraint. See `proxy.upstream.vendor_stream.Stream`.

    Events are decoded in `wait`, so that checks can be awaited, and returned by `take`.
    """

    _stream: Stream
    _constraint: Constraint
    _finisher: PostProcessor
    _events: list[StreamEvent] = field(default_factory=list)
    _broken: UpstreamError | None = None

    async def begin(self) -> None:
        """Check the events up to the first content. To be called once, before the other methods."""
        await self._check(self._stream.first())

    @property
    def over(self) -> bool:
        """See Stream."""
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        """See Stream."""
        return self.take()

    async def wait(self) -> None:
        """See Stream."""
        await self._stream.wait()
        await self._check(self._stream.take())

    def take(self) -> Iterator[StreamEvent]:
        """See Stream."""
        events, self._events = self._events, []
        yield from finished(iter(events), self._finisher)
        if self._broken is not None:
            raise self._broken

    def conclude(self) -> Iterator[StreamEvent]:
        """See Stream. Every choice has ended by then, and been checked."""
        return finished(self._stream.conclude(), self._finisher)

    async def finish(self) -> None:
        """See Stream."""
        await self._stream.finish()

    def close(self) -> None:
        """See Stream."""
        self._stream.close()

    async def _check(self, events: Iterator[StreamEvent]) -> None:
        try:
            for event in events:
                if isinstance(event, Chunk):
                    await self._constraint.check_chunk(event)
                self._events.append(event)
        except UpstreamError as error:
            self._broken = error
