"""One request that gets a cached response, or that calls a deployment and has the response cached.

A hit calls no deployment: it costs nothing, uses no tokens of limits and budgets, and does not affect the health of
deployments. It does count as a request of its team, because it was admitted before the look-up. Responses of this cache
are read-only.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from providers.completion import Completion, ContentLogprobs, LegacyLogprobs, Usage
from providers.emulation.join_extras import size_of_extras
from providers.emulation.plan_calls import CallPlan
from providers.failure import VERDICTS, UpstreamError
from providers.frozen_record import frozen
from providers.pricing import Price
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.text_answers import GuardingAnswers, TextAnswers
from proxy.errors import GatewayError
from proxy.request_outcomes import CacheUse
from proxy.response_cache.cache_key import request_key
from proxy.response_cache.cached_streams import GOOD_ENDS, RecordedStream, ReplayedStream
from proxy.response_cache.coalescing import CoalescedRequest
from proxy.response_cache.packed_response import (
    FORM,
    CachedResponse,
    age_at,
    join,
    open_sealed,
    pack_completion,
    pack_head,
    seal,
    unpack,
)
from proxy.response_cache.store import FoundResponse, OpenedResponse, ResponseStore
from proxy.routing.route_settings import CacheRules
from proxy.upstream.vendor_stream import Stream

MOST_LEADERS: Final = 2
"""The most leaders that a request follows, one after the other, if each of them fails. After that the request calls a
deployment by itself."""

STREAM_PATIENCE: Final = 10.0
"""The most seconds for which a streamed request waits for the stream of an equal request. That stream ends when its
client has read it, and the client may be slow. A non-streaming response depends only on its vendor."""

NOTHING: Final = Usage(0, 0)
FREE: Final = Price(0.0, 0.0)
"""The usage and the price of a response from the cache."""

_LOGPROB: Final = 48
"""The least bytes that a token's log probability takes."""


@frozen(eq=False)
class CacheLookup:
    """The parts of a look-up that all tries of one exchange share. `answers` responds if nothing is cached. `guard`
    checks responses; `None`: there is no guard. `renews` is set if the client wants no cached response."""

    cache: ResponseStore
    answers: TextAnswers
    guard: GuardingAnswers | None
    surface: str
    renews: bool


class CachedRequest:
    """One request that the cache is used for."""

    __slots__ = (
        *("_answers", "_cache", "_flight", "_guard", "_key", "_owner"),
        *("_exchange", "_renews", "_rules", "_secret", "_stale", "_surface"),
    )

    def __init__(self, lookup: CacheLookup, exchange: Exchange[UnifiedRequest], rules: CacheRules) -> None:
        self._cache = lookup.cache
        self._answers = lookup.answers
        self._guard = lookup.guard
        self._exchange = exchange
        self._rules = rules
        self._renews = lookup.renews
        self._secret = lookup.cache.secret(rules)
        self._owner = f"team {exchange.team.tenant}" if rules.scope == "team" else "table"
        self._surface = lookup.surface
        self._key = ""
        self._flight: CoalescedRequest[FoundResponse] | None = None
        self._stale: FoundResponse | None = None

    async def whole(self) -> tuple[CallPlan, Completion]:
        try:
            found = await self._found(None)
            if found is None:
                try:
                    prepared, completion = await self._answers.whole(self._exchange)
                except (UpstreamError, GatewayError) as error:
                    found = self._instead(error)
                else:
                    return await self._asked(prepared, completion)
            completion = found.answer.completion or Completion((), None)
            prepared = self._shown(found)
            if self._guard is None:
                return prepared, completion
            try:
                return await self._guard.passed(self._exchange, prepared, completion)
            except GatewayError:
                self._forget()
                raise
        finally:
            self._leave()

    async def _asked(self, prepared: CallPlan, completion: Completion) -> tuple[CallPlan, Completion]:
        """Return a new response, and cache it unless the guard refuses it. The requests that wait for it get it even
        then, because their own guards check it."""
        packed = self._packed(completion)
        if self._guard is None:
            self._keep(prepared, packed, ())
            return prepared, completion
        try:
            shown = await self._guard.passed(self._exchange, prepared, completion)
        except GatewayError:
            self._land(prepared, self._joined(prepared, packed, ()))
            raise
        self._keep(prepared, packed, ())
        return shown

    @asynccontextmanager
    async def streamed(self) -> AsyncIterator[tuple[CallPlan, Stream]]:
        async with AsyncExitStack() as stack:
            stack.callback(self._leave)
            found = await self._found(STREAM_PATIENCE)
            if found is None:
                try:
                    opened = await stack.enter_async_context(await self._answers.streamed(self._exchange))
                except (UpstreamError, GatewayError) as error:
                    found = self._instead(error)
                else:
                    prepared, stream = opened
                    ended = partial(self._ended, prepared)
                    yield prepared, RecordedStream(stream, self._rules.max_bytes, prepared.request.choices, ended)
                    return
            prepared = self._shown(found)
            try:
                yield prepared, ReplayedStream(found.answer.events or ())
            except GatewayError:
                self._forget()
                raise

    def _forget(self) -> None:
        """Remove a response from the cache, because a guard refused it that had passed it before, or had not checked it
        yet."""
        self._cache.memory(self._rules).put(self._owner, {self._key: b""})
        self._cache.kept.drop(self._owner, self._key)

    def _leave(self) -> None:
        """Release the followers, if that has not been done. Without a response, one of them becomes the leader."""
        if self._flight is not None:
            self._flight.close()

    async def _found(self, patience: float | None) -> FoundResponse | None:
        """Return the cached response, or the response that an equal request gets within `patience` seconds; `None` if
        this request has to call a deployment."""
        found = await self._searched(patience)
        if found is None:
            self._count(CacheUse("miss"))
        return found

    async def _searched(self, patience: float | None) -> FoundResponse | None:
        cache, exchange = self._cache, self._exchange
        make = partial(request_key, self._secret, FORM, self._surface, exchange.plan, exchange.team, exchange.request)
        key = self._key = await cache.threads.run(exchange.record.owner, make) if exchange.heavy else make()
        if self._renews:
            return None
        here = cache.kept.take(self._owner, (key,), cache.now()).get(key)
        found = None if here is None else self._fresh(here)
        if found is not None:
            return found
        for _ in range(MOST_LEADERS):
            flight = cache.flights.of(key)
            if flight is None:
                self._flight = cache.flights.lead(key)
                found = await self._looked_up(here)
                if found is not None:
                    self._flight.land(found)
                return found
            if flight.full:
                return None
            started = cache.now()
            try:
                found = await flight.follow(patience)
            finally:
                waited = cache.now() - started
                exchange.record.waited += waited
                exchange.record.waits().cached += waited
            if found is not None or flight.alone or not flight.over:
                return found
        return None

    async def _looked_up(self, here: bytes | None) -> FoundResponse | None:
        """Return a fresh response that another process has cached, or `None`. `here` is this process's entry, which is
        not fresh."""
        cache, owner, key = self._cache, self._owner, self._key
        memory = cache.memory(self._rules)
        if memory.others is None:
            return None
        if here is not None:
            # The entry is dropped here, because only keys without an entry here are looked up in other processes'
            # entries.
            cache.kept.drop(owner, key)
        started = cache.now()
        try:
            entry = (await memory.find(owner, (key,))).get(key)
        finally:
            self._exchange.record.waits().cached += cache.now() - started
        if entry is None:
            if here is not None and self._stale is not None:
                cache.kept.put(owner, key, here, cache.now())
            return None
        return self._fresh(entry)

    def _fresh(self, entry: bytes) -> FoundResponse | None:
        """Return the response of an entry if it is fresh. A stale response is held in case no deployment responds. An
        entry that can never be used is dropped."""
        cache, rules, key = self._cache, self._rules, self._key
        opened = cache.opened.find(key, entry) or self._opened(entry)
        if opened is not None:
            age = age_at(opened.made, cache.wall())
            target = self._target_of(opened.answer)
            if target is not None and age <= rules.ttl + rules.stale:
                if age <= rules.ttl:
                    return FoundResponse(opened.answer, target, CacheUse("hit", age))
                self._stale = FoundResponse(opened.answer, target, CacheUse("stale", age))
                return None
        cache.kept.drop(self._owner, key)
        return None

    def _opened(self, entry: bytes) -> OpenedResponse | None:
        """Open an entry, and remember its response. Return `None` if no gateway with this secret wrote the entry."""
        found = open_sealed(self._secret, self._key, entry, self._rules.max_bytes)
        answer = None if found is None else unpack(found[1])
        if found is None or answer is None:
            return None
        opened = OpenedResponse(entry, found[0], answer)
        self._cache.opened.put(self._key, opened)
        return opened

    def _instead(self, error: UpstreamError | GatewayError) -> FoundResponse:
        """Return the stale response instead of an error that the request did not cause, otherwise raise the error. If
        the deployments caused it, the followers get the stale response too, or all call a deployment by themselves. If
        they led one after the other, each would repeat the wait of the previous one."""
        status = VERDICTS[error.failure.kind].status if isinstance(error, UpstreamError) else error.facts.status
        others = status >= 500 or status == 429
        if self._flight is not None and others:
            self._flight.land(self._stale)
        if self._stale is None or not others:
            raise error
        return self._stale

    def _target_of(self, answer: CachedResponse) -> Target | None:
        """Return the deployment that gave a response, if the request could go to it."""
        for target in self._exchange.plan.every_target:
            if target.name == answer.deployment:
                return target
        return None

    def _shown(self, found: FoundResponse) -> CallPlan:
        """Record that a response came from the cache, and return a call plan without calls for the deployment that gave
        it."""
        told, answer = self._exchange.record, found.answer
        self._count(found.use)
        told.called, told.emulated, told.dropped = answer.deployment, answer.emulated, answer.dropped
        told.max_tokens, told.billed, told.price = answer.max_tokens, NOTHING, FREE
        return CallPlan(found.target, self._exchange.request, (), answer.emulated, answer.dropped)

    def _count(self, use: CacheUse) -> None:
        told = self._exchange.record
        told.cache = use
        self._cache.metrics.cache_used(use.result, told.model)

    def _packed(self, completion: Completion) -> bytes | None:
        """Return a response as bytes; `None` if it is not cached, because a choice is missing or ended abnormally, or
        because the response is too large."""
        choices, most = completion.choices, self._rules.max_bytes
        good = len(choices) == self._exchange.request.choices
        if not good or any(choice.finish_reason not in GOOD_ENDS for choice in choices):
            return None
        return None if least_size(completion) > most else pack_completion(completion)

    def _ended(self, prepared: CallPlan, events: Sequence[bytes] | None) -> None:
        self._keep(prepared, None if events is None else b"", events or ())

    def _keep(self, prepared: CallPlan, whole: bytes | None, events: Sequence[bytes]) -> None:
        """Cache a response, and give it to the followers. Without a response, each follower calls a deployment by
        itself."""
        data = self._joined(prepared, whole, events)
        if data is not None:
            cache = self._cache
            entry = seal(self._secret, self._key, cache.wall(), data)
            cache.memory(self._rules).put(self._owner, {self._key: entry})
            cache.metrics.cache_used("stored", self._exchange.record.model)
        self._land(prepared, data)

    def _joined(self, prepared: CallPlan, whole: bytes | None, events: Sequence[bytes]) -> bytes | None:
        """Return the bytes of a response with its head; `None` if it is not cached."""
        if whole is None:
            return None
        told = self._exchange.record
        head = pack_head(prepared.target.name, tuple(told.emulated), tuple(told.dropped), told.max_tokens)
        data = join(head, whole or None, events)
        return None if len(data) > self._rules.max_bytes else data

    def _land(self, prepared: CallPlan, data: bytes | None) -> None:
        flight = self._flight
        if flight is None:
            return
        answer = None if data is None or not flight.followed else unpack(data)
        if answer is not None:
            flight.land(FoundResponse(answer, prepared.target, CacheUse("hit", 0.0)))
        elif data is None:
            flight.land(None)


def least_size(completion: Completion) -> int:
    """Return the least bytes that a response takes, so that a response that is too large is not packed in vain."""
    size = len(completion.native or b"")
    for choice in completion.choices:
        size += len(choice.text) + len(choice.reasoning or "")
        size += sum([len(lookup.arguments) for lookup in choice.tool_calls])
        match choice.logprobs:
            case ContentLogprobs(content):
                size += _LOGPROB * sum([1 + len(token.top) for token in content])
            case LegacyLogprobs(tokens):
                size += _LOGPROB * len(tokens)
            case None:
                pass
        size += 0 if choice.extras is None else size_of_extras(choice.extras)
    return size
