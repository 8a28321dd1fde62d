"""What answers planned requests for text: the dispatcher, by calling vendors, and what stands before it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from providers.completion import Completion
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.upstream.vendor_stream import Stream


class TextAnswers(Protocol):
    """Answers planned requests for text. `proxy.dispatch.single_attempt.Dispatcher` is one."""

    def whole(self, planned: PlannedRequest[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Return the answer of a request that is not streamed, and the target's calls that gave it.

        Raises UpstreamError, DeadlinePassed and GatewayError.
        """

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """Yield the stream of a request, read up to its first content, and the calls that give it; closed on leaving.

        Raises what `whole` does before the stream is yielded. What fails within the block has been committed.
        """


class GuardingAnswers(ABC):
    """TextAnswers that let through only what clients may get of what `inner` answers. A response cache uses it for
    cached responses too, each time, and caches none that it refuses."""

    __slots__ = ()

    inner: TextAnswers

    @abstractmethod
    def whole(self, planned: PlannedRequest[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """See TextAnswers."""

    @abstractmethod
    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """See TextAnswers."""

    @abstractmethod
    async def passed(
        self, planned: PlannedRequest[UnifiedRequest], prepared: CallPlan, completion: Completion
    ) -> tuple[CallPlan, Completion]:
        """Return a non-streaming response as it is let through. Raises GatewayError if it is not."""

    @abstractmethod
    def passing(
        self,
        planned: PlannedRequest[UnifiedRequest],
        opened: AbstractAsyncContextManager[tuple[CallPlan, Stream]],
    ) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """Yield a stream as it is let through. GatewayError is raised within `opened` if it is not."""
