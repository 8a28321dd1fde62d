"""Looks a request up in the response cache, as its headers direct, and calls a deployment if no response is cached.

See `proxy.dispatch.text_answers.TextAnswers`. `cache-control` is RFC 9111, 5.2.1: with `no-store` a response is not
cached, with `no-cache` a cached one is not used. Its other directives are for caches between client and gateway.
"""

from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from enum import Enum
from typing import Final

from providers.completion import Completion
from providers.emulation.plan_calls import CallPlan
from providers.frozen_record import frozen
from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.text_answers import GuardingAnswers, TextAnswers
from proxy.errors import FieldProblem, invalid_request
from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.request_record import RequestRecord
from proxy.response_cache.cache_key import why_not
from proxy.response_cache.cached_request import CachedRequest, CacheLookup
from proxy.response_cache.store import ResponseStore
from proxy.routing.route_settings import CacheRules
from proxy.surfaces.registry import STORING
from proxy.upstream.vendor_stream import Stream

HEADER: Final = "x-dragoman-cache"


class CacheDirectives(Enum):
    """The directive of a client: no directive; a response from the cache; a new response that is cached; or a new
    response that is not cached."""

    NONE = ""
    USE = "use"
    REFRESH = "refresh"
    NO_STORE = "no-store"


_WISHES: Final = {wish.value: wish for wish in CacheDirectives if wish is not CacheDirectives.NONE}


def wish_of(headers: Mapping[str, str]) -> CacheDirectives:
    """Return the directive in a client's headers. Raises GatewayError for an unknown one.

    `no-cache` alone is no such directive. It only renews the response if the cache is used for the request anyway.
    """
    control = headers.get("cache-control")
    directives = () if control is None else tuple(each.strip().lower() for each in control[:256].split(","))
    own = headers.get(HEADER)
    wish = CacheDirectives.NONE if own is None else _WISHES.get(own.strip().lower())
    if wish is None:
        message = f"'{HEADER}' must be one of {', '.join(_WISHES)}."
        raise invalid_request((FieldProblem((HEADER,), message),))
    return CacheDirectives.NO_STORE if "no-store" in directives else wish


def renews(headers: Mapping[str, str]) -> bool:
    """Return whether the client wants a new response although the cache is used for its request."""
    control = headers.get("cache-control")
    return control is not None and any(each.strip().lower() == "no-cache" for each in control[:256].split(","))


class CacheHook(RequestHook):
    """The hook of the response cache in one request for a name with a cache. It has the client's headers."""

    __slots__ = ("_cache", "_headers", "_record")

    def __init__(self, cache: "ResponseCache", record: RequestRecord, headers: Mapping[str, str]) -> None:
        self._cache = cache
        self._record = record
        self._headers = headers

    def answers(self, answers: TextAnswers) -> TextAnswers:
        """Return the object that looks in the cache first, unless the response is private to its client."""
        record = self._record
        return answers if record.private else self._cache.before(answers, record.surface, self._headers)


class ResponseCache(ResponseStore):
    """The response cache of this process."""

    def before(self, answers: TextAnswers, surface: str, headers: Mapping[str, str]) -> TextAnswers:
        """Return the object that responds to a request for a name with a cache. It uses `answers` if nothing is cached.
        If `answers` is a guard, it checks cached responses too. Raises GatewayError for an unknown directive in a
        header."""
        wish = wish_of(headers)
        if wish is CacheDirectives.NO_STORE:
            return answers
        guard = answers if isinstance(answers, GuardingAnswers) else None
        renewing = wish is CacheDirectives.REFRESH or renews(headers)
        inner = answers if guard is None else guard.inner
        return CachedResponses(CacheLookup(self, inner, guard, surface, renewing), wish)


@frozen(eq=False)
class CachedResponses:
    """The TextAnswers of a request for a name with a cache."""

    lookup: CacheLookup
    wish: CacheDirectives

    def whole(self, exchange: Exchange[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        rules = self._rules(exchange)
        if rules is None:
            return (self.lookup.guard or self.lookup.answers).whole(exchange)
        return CachedRequest(self.lookup, exchange, rules).whole()

    async def streamed(
        self, exchange: Exchange[UnifiedRequest]
    ) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        rules = self._rules(exchange)
        guard = self.lookup.guard
        if rules is None:
            return await (guard or self.lookup.answers).streamed(exchange)
        opened = CachedRequest(self.lookup, exchange, rules).streamed()
        return opened if guard is None else guard.passing(exchange, opened)

    def _rules(self, exchange: Exchange[UnifiedRequest]) -> CacheRules | None:
        """Return the rules of the cache for a request; `None` if the cache is not used for it."""
        if self.wish is CacheDirectives.NONE and not is_determined(exchange.request):
            return None
        return None if why_not(exchange.request) else exchange.plan.cache


def is_determined(request: UnifiedRequest) -> bool:
    """Return whether the client wants the same response every time: its request has a temperature of 0."""
    return request.params.get("temperature") == 0 and "temperature" not in request.injected


def attach_cache(hooks: TeamHooks, cache: ResponseCache) -> None:
    """Use `cache` for requests of names with a cache."""

    def hook_of(exchange: Exchange[UnifiedRequest], headers: Mapping[str, str]) -> CacheHook:
        return CacheHook(cache, exchange.record, headers)

    hooks.attach_to_plans("response_cache", hook_of)


def explained_use(request: UnifiedRequest, surface: str) -> str:
    """Return whether the cache of a name is used for a request of a surface, as a clause for the operator."""
    why = "its surface stores answers" if surface in STORING else why_not(request)
    if why is not None:
        return f"this request's is not, because {why}"
    if is_determined(request):
        return "this request's is"
    return f"this request's is where it says {HEADER}: use, since it sends no temperature of 0"
