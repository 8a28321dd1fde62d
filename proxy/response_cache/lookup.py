"""Answers text out of the cache, or asks and keeps the answer. See `proxy.dispatch.text_answers.TextAnswers`."""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager

from providers.completion import Completion
from providers.emulation.plan_calls import CallPlan
from providers.frozen_record import record
from providers.unified_request import UnifiedRequest
from proxy.dispatch.text_answers import GuardingAnswers, TextAnswers
from proxy.response_cache.cache_directives import CacheDirectives, renews, wish_of
from proxy.response_cache.cache_key import why_not
from proxy.response_cache.cached_request import CachedCall, CachedRequest, Planned
from proxy.response_cache.store import ResponseStore
from proxy.routing.cache_rules import CacheRules
from proxy.upstream.vendor_stream import Stream


class ResponseCache(ResponseStore):
    """The answer cache of this process."""

    def before(self, answers: TextAnswers, surface: str, headers: Mapping[str, str]) -> TextAnswers:
        """Return what answers a request of a name with a cache, by `answers` if nothing is cached. If that is a guard,
        cached responses pass it too. Raises GatewayError for a header that asks for what there is not."""
        wish = wish_of(headers)
        if wish is CacheDirectives.NO_STORE:
            return answers
        guard = answers if isinstance(answers, GuardingAnswers) else None
        renewing = wish is CacheDirectives.REFRESH or renews(headers)
        inner = answers if guard is None else guard.inner
        return CachedResponses(CachedCall(self, inner, guard, surface, renewing), wish)


@record(eq=False)
class CachedResponses:
    """See TextAnswers. For the requests of one client's call, to names with a cache."""

    call: CachedCall
    wish: CacheDirectives

    def whole(self, planned: Planned) -> Awaitable[tuple[CallPlan, Completion]]:
        """See TextAnswers."""
        rules = self._rules(planned)
        if rules is None:
            return (self.call.guard or self.call.answers).whole(planned)
        return CachedRequest(self.call, planned, rules).whole()

    def streamed(self, planned: Planned) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """See TextAnswers."""
        rules = self._rules(planned)
        guard = self.call.guard
        if rules is None:
            return (guard or self.call.answers).streamed(planned)
        opened = CachedRequest(self.call, planned, rules).streamed()
        return opened if guard is None else guard.passing(planned, opened)

    def _rules(self, planned: Planned) -> CacheRules | None:
        """Return the rules by which a request is answered; None for one that is not for the cache."""
        if self.wish is CacheDirectives.NONE and not is_determined(planned.request):
            return None
        return None if why_not(planned.request) else planned.plan.cache


def is_determined(request: UnifiedRequest) -> bool:
    """Return whether a client asks for the same answer every time, by a temperature of 0 of its own."""
    return request.params.get("temperature") == 0 and "temperature" not in request.injected
