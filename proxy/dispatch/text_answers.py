"""The interface of the objects that respond to requests for text: the dispatcher, which calls vendors, and the objects
that wrap it."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from providers.completion import Completion
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.upstream.vendor_stream import Stream


class TextAnswers(Protocol):
    """Responds to requests for text. `proxy.dispatch.single_attempt.Dispatcher` does."""

    def whole(self, exchange: Exchange[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Return the prepared calls of the target that responded to a non-streaming request, and the response.

        Raises UpstreamError, DeadlinePassed and GatewayError.
        """

    def streamed(
        self, exchange: Exchange[UnifiedRequest]
    ) -> Awaitable[AbstractAsyncContextManager[tuple[CallPlan, Stream]]]:
        """Return the stream of a request as a context manager that has to be entered at once. Entering yields the
        prepared calls and the stream, read up to its first content; leaving closes the stream.

        Raises the errors of `whole` before the stream is yielded. A failure within the block comes after the commit
        point.
        """


class GuardingAnswers(ABC):
    """TextAnswers that pass on only the responses of `inner` that clients may get. A response cache also checks each
    cached response with it, and caches no response that it refuses."""

    __slots__ = ()

    inner: TextAnswers

    @abstractmethod
    def whole(self, exchange: Exchange[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Do as `TextAnswers.whole`."""

    @abstractmethod
    def streamed(
        self, exchange: Exchange[UnifiedRequest]
    ) -> Awaitable[AbstractAsyncContextManager[tuple[CallPlan, Stream]]]:
        """Do as `TextAnswers.streamed`."""

    @abstractmethod
    async def passed(
        self, exchange: Exchange[UnifiedRequest], prepared: CallPlan, completion: Completion
    ) -> tuple[CallPlan, Completion]:
        """Return a non-streaming response in the form that is passed on. Raises GatewayError if it is refused."""

    @abstractmethod
    def passing(
        self,
        exchange: Exchange[UnifiedRequest],
        opened: AbstractAsyncContextManager[tuple[CallPlan, Stream]],
    ) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """Yield a stream in the form that is passed on. If it is refused, GatewayError is raised within `opened`."""
