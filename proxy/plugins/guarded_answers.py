"""Answers that pass guards: stands before what answers text, for teams with guards of answers.

An answer cache lets what it gives pass by itself, so that it keeps nothing that was refused.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

from providers.completion import Completion, Usage
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN, estimate_usage, with_usage
from providers.emulation.split_into_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import GatewayError
from proxy.plugins.answer_texts import with_choices, without_beside
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
        return await self.passed(planned, *await self.inner.whole(planned))

    async def passed(
        self, planned: PlannedRequest[UnifiedRequest], prepared: CallPlan, completion: Completion
    ) -> tuple[CallPlan, Completion]:
        """Return an answer as the guards let it through. Raises GatewayError."""
        record = planned.record
        try:
            choices = [await self.chain.choice_passed(choice, record) for choice in completion.choices]
            if any(new is not old for new, old in zip(choices, completion.choices, strict=True)):
                completion = with_choices(completion, choices)
            native = planned.request.native
            if not await self.chain.beside_passed(completion, None if native is None else native.body, record):
                completion = without_beside(completion)
        except GatewayError:
            # The vendor has generated it, and bills it.
            record.usage = with_usage(prepared.request, completion).usage
            raise
        return prepared, completion

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """See TextAnswers. A stream is held back until a guard lets content through, or until its end where a guard
        needs all of it."""
        return self.passing(planned, self.inner.streamed(planned))

    @asynccontextmanager
    async def passing(
        self,
        planned: PlannedRequest[UnifiedRequest],
        opened: AbstractAsyncContextManager[tuple[CallPlan, Stream]],
    ) -> AsyncIterator[tuple[CallPlan, Stream]]:
        """Yield what is opened, as the guards let it through. What they refuse is raised within it."""
        record = planned.record
        async with opened as (prepared, stream):
            guarded = GuardedStream(stream, self.chain, planned, prepared)
            try:
                await guarded.begin()
            except BaseException:
                # However it ends, the vendor has generated this much.
                record.usage = guarded.usage or estimate_usage(prepared.request, guarded.size)
                raise
            try:
                yield prepared, guarded
            except GatewayError:
                # The client was shown less than the vendor has generated.
                record.usage = _with_refused(record.usage, guarded)
                raise


def _with_refused(usage: Usage | None, guarded: GuardedStream) -> Usage | None:
    """Return the usage of a stream that a guard has refused, whose estimate counts the refused text too."""
    if usage is None or not usage.estimated or guarded.usage is not None:
        return usage
    return replace(usage, completion_tokens=max(usage.completion_tokens, -(-guarded.size // BYTES_PER_TOKEN)))
