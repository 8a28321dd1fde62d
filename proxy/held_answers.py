"""Answers on their way to the client, held against the request's constraint before a choice is said to be finished.

Never compiles or runs the constraint itself, and never repairs a text.
"""

from collections.abc import Iterator

from providers.completion import Chunk, Completion, StreamEvent
from providers.emulate import Finisher
from providers.failure import Failure, FailureKind, UpstreamError
from providers.verify import AnswerCheck, FinishedTexts
from proxy.answer_checks import CheckFailed, TooCostly
from proxy.off_loop import AnswerChecker
from proxy.streams import Stream, finished


class Constraint:
    """What the answer of one request must keep. `owner` is the team, or the client where there are no teams."""

    __slots__ = ("_check", "_checks", "_owner", "_texts")

    def __init__(self, checks: AnswerChecker, check: AnswerCheck, owner: str) -> None:
        self._checks = checks
        self._check = check
        self._owner = owner
        self._texts = FinishedTexts()

    async def hold(self, chunk: Chunk) -> None:
        """Raises UpstreamError where the chunk ends a choice whose text breaks the constraint, or cannot be checked."""
        text = self._texts.add(chunk)
        if text is None:
            return
        field = self._check.field
        try:
            reason = await self._checks.breach(self._check, text, self._owner)
        except TooCostly as error:
            # The client's own constraint is at fault, which another deployment would not change.
            message = f"The answer could not be held against '{field}': it {error}."
            raise UpstreamError(Failure(FailureKind.INVALID_REQUEST, message, param=field)) from None
        except CheckFailed:
            message = f"The gateway could not hold the answer against '{field}'."
            raise UpstreamError(Failure(FailureKind.BUSY, message)) from None
        if reason is not None:
            message = f"The upstream's answer breaks '{field}': {reason}."
            raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))

    async def hold_all(self, completion: Completion) -> None:
        """The same for every choice of a whole answer."""
        for choice in completion.choices:
            await self.hold(Chunk(choice.index, choice.text, choice.finish_reason, refusal=choice.refusal))


class HeldStream:
    """A stream that breaks where a choice ends and breaks its constraint. See `proxy.streams.Stream`.

    Events are decoded when they have come, so that checks can be waited for, and are given out as `take` is called.
    """

    __slots__ = ("_broken", "_constraint", "_events", "_finisher", "_stream")

    def __init__(self, stream: Stream, constraint: Constraint, finisher: Finisher) -> None:
        self._stream = stream
        self._constraint = constraint
        self._finisher = finisher
        self._events: list[StreamEvent] = []
        self._broken: UpstreamError | None = None

    async def begin(self) -> None:
        """Check what has come up to the first content. To be called once, before the others."""
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
                    await self._constraint.hold(event)
                self._events.append(event)
        except UpstreamError as error:
            self._broken = error
