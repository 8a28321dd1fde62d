"""Answers that pass guards: stands before what answers text, a cache included, for teams with guards of answers."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from providers.completion import Completion
from providers.emulation.estimate_missing_usage import estimate_usage, size_of
from providers.emulation.split_into_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import GatewayError
from proxy.plugins.answer_texts import with_choices
from proxy.plugins.guard_desk import GuardChain
from proxy.plugins.guarded_stream import GuardedStream
from proxy.upstream.vendor_stream import Stream


@dataclass(frozen=True, slots=True, eq=False)
class GuardedAnswers:
    """See TextAnswers; raises GatewayError too where a guard refuses an answer, or fails and has to work."""

    inner: TextAnswers
    chain: GuardChain

    async def whole(self, planned: PlannedRequest[UnifiedRequest]) -> tuple[CallPlan, Completion]:
        """See TextAnswers."""
        prepared, completion = await self.inner.whole(planned)
        record = planned.record
        try:
            choices = [await self.chain.choice_passed(choice, record) for choice in completion.choices]
        except GatewayError:
            # The vendor has generated it, and bills it.
            size = sum([size_of(choice.text) for choice in completion.choices])
            record.usage = completion.usage or estimate_usage(prepared.request, size)
            raise
        if all(new is old for new, old in zip(choices, completion.choices, strict=True)):
            return prepared, completion
        return prepared, with_choices(completion, choices)

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """See TextAnswers. A stream is held back until a guard lets content through, or until its end where a guard
        needs all of it."""
        return self._streamed(planned)

    @asynccontextmanager
    async def _streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AsyncIterator[tuple[CallPlan, Stream]]:
        record = planned.record
        async with self.inner.streamed(planned) as (prepared, stream):
            guarded = GuardedStream(stream, self.chain, planned, prepared)
            try:
                await guarded.begin()
            except GatewayError:
                record.usage = guarded.usage or estimate_usage(prepared.request, guarded.size)
                raise
            yield prepared, guarded
