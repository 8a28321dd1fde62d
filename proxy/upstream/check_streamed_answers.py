"""Checks responses against the request's constraint before a choice ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from providers.completion import Chunk, Completion, StreamEvent, ToolCallDelta, Usage
from providers.emulation.check_answer import AnswerCheck, FinishedTexts
from providers.emulation.check_tool_calls import FinishedCalls
from providers.emulation.markdown_fence import unfenced
from providers.emulation.post_processing import PostProcessing, PostProcessor
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.off_loop.answer_check_pool import CheckFailed, TooCostly
from proxy.off_loop.request_threads import AnswerChecker
from proxy.upstream.vendor_stream import Stream, finished


class Constraint:
    """The constraint on the response to one request. `checks` validates its texts and the arguments of its calls.
    `owner` is the team, or the client if there are no teams."""

    __slots__ = ("_calls", "_check", "_checks", "_owner", "_texts")

    def __init__(self, checks: AnswerChecker, finishing: PostProcessing, owner: str) -> None:
        self._checks = checks
        self._owner = owner
        self._check = finishing.check
        self._texts = FinishedTexts()
        self._calls = FinishedCalls(finishing.call_checks) if finishing.call_checks else None

    async def check_chunk(self, chunk: Chunk) -> None:
        """Raise UpstreamError if the chunk ends a choice that breaks the constraint, or if the choice cannot be
        checked."""
        if self._check is not None and (text := self._texts.add(chunk)) is not None:
            await self._hold(self._check, unfenced(text) if self._check.fenced else text, "answer breaks")
        if self._calls is not None:
            for check, arguments in self._calls.add(chunk):
                await self._hold(check, arguments, "call of a tool breaks")

    async def _hold(self, check: AnswerCheck, text: str, breaks: str) -> None:
        try:
            reason = await self._checks.breach(check, text, self._owner)
        except TooCostly as error:
            # The client's constraint is the cause, so another deployment would not help.
            message = f"The response could not be checked against '{check.field}': it {error}."
            raise UpstreamError(Failure(FailureKind.INVALID_REQUEST, message, param=check.field)) from None
        except CheckFailed:
            message = f"The gateway could not check the response against '{check.field}'."
            raise UpstreamError(Failure(FailureKind.BUSY, message)) from None
        if reason is not None:
            message = f"The upstream's {breaks} '{check.field}': {reason}."
            raise UpstreamError(Failure(FailureKind.NONCONFORMING, message))

    async def check_all(self, completion: Completion) -> None:
        """Check every choice of a non-streaming response as `check_chunk` does."""
        for choice in completion.choices:
            calls = tuple(
                [
                    ToolCallDelta(number, call.id, call.name, call.arguments, call.kind)
                    for number, call in enumerate(choice.tool_calls)
                ]
            )
            chunk = Chunk(
                choice.index,
                choice.text,
                choice.finish_reason,
                refusal=choice.refusal,
                tool_calls=calls,
                matched_stop=choice.matched_stop,
            )
            await self.check_chunk(chunk)


@dataclass(slots=True, eq=False)
class HeldStream:
    """A stream that raises an error at the end of a choice that breaks its constraint. It is a
    `proxy.upstream.vendor_stream.Stream`.

    Events are decoded in `wait`, so that checks can be awaited, and returned by `take`.
    """

    _stream: Stream
    _constraint: Constraint
    _finisher: PostProcessor
    _events: list[StreamEvent] = field(default_factory=list)
    _broken: UpstreamError | None = None

    async def begin(self) -> None:
        """Check the events up to the first content. It must be called once, before the other methods."""
        await self._check(self._stream.first())

    @property
    def over(self) -> bool:
        return self._stream.over

    def first(self) -> Iterator[StreamEvent]:
        return self.take()

    async def wait(self) -> None:
        await self._stream.wait()
        await self._check(self._stream.take())

    def take(self) -> Iterator[StreamEvent]:
        events, self._events = self._events, []
        yield from finished(iter(events), self._finisher)
        if self._broken is not None:
            raise self._broken

    def conclude(self) -> Iterator[StreamEvent]:
        """Return the events that the decoder still holds. They need no check, because every choice has ended and has
        been checked."""
        return finished(self._stream.conclude(), self._finisher)

    async def finish(self) -> None:
        await self._stream.finish()

    def close(self) -> None:
        self._stream.close()

    async def _check(self, events: Iterator[StreamEvent]) -> None:
        try:
            for event in events:
                if isinstance(event, Chunk):
                    await self._constraint.check_chunk(event)
                self._events.append(event)
        except UpstreamError as error:
            self._broken = error
            # The events after the broken choice are dropped, except the usage: the vendor may report it together with
            # the end of the choice.
            self._events += [event for event in events if isinstance(event, Usage)]
