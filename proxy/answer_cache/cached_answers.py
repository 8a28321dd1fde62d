"""Answers text out of the cache, or asks and keeps the answer. See `proxy.dispatch.text_answers.TextAnswers`.

A hit asks no deployment: it costs nothing, uses no tokens of limits and budgets, and says nothing about health. It
counts as a request of its team, which has been admitted before. Answers of this cache are read-only.
"""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final

from providers.completion import Completion, ContentLogprobs, LegacyLogprobs, Usage
from providers.emulation.join_extras import size_of_extras
from providers.emulation.split_into_calls import CallPlan
from providers.failure import VERDICTS, UpstreamError
from providers.frozen_record import record
from providers.target import Price, Target
from providers.unified_request import UnifiedRequest
from proxy.answer_cache.client_wish import Wish, renews, wish_of
from proxy.answer_cache.flights import Flight, Flights
from proxy.answer_cache.kept_streams import GOOD_ENDS, RecordedStream, ReplayedStream
from proxy.answer_cache.packed_answer import FORM, KeptAnswer, join, pack_completion, pack_head, unpack
from proxy.answer_cache.request_key import request_key, why_not
from proxy.answer_cache.sealed_entry import age_at, open_sealed, seal
from proxy.conversations.kept_entries import KeptEntries
from proxy.conversations.owner_memory import OwnerMemory
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import GatewayError
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_record import CacheUse
from proxy.routing.cache_rules import CacheRules
from proxy.telemetry.metrics import Metrics
from proxy.upstream.vendor_stream import Stream

ANSWER_BYTES: Final = 64 * 1024 * 1024
ANSWER_SECONDS: Final = 2 * 86400.0
"""What all answers may take in one process, and how long each is kept after it was made or last used at most: as long
as `ttl` and `stale` can be together."""

MOST_LEADERS: Final = 2
"""Requests that one follows, one after the other where they fail. Then it asks by itself."""

STREAM_PATIENCE: Final = 10.0
"""Seconds for which a stream follows another. That ends when its client has read it, who may be slow; a whole answer
waits for its vendor alone."""

NOTHING: Final = Usage(0, 0)
FREE: Final = Price(0.0, 0.0)
"""What an answer out of the cache uses, and what that costs."""

_LOGPROB: Final = 48
"""Bytes that a token's log probability takes at least."""

Planned = PlannedRequest[UnifiedRequest]


@record(eq=False)
class FoundAnswer:
    """A kept answer, its age in seconds, and how it is used."""

    answer: KeptAnswer
    use: CacheUse


class AnswerCache:
    """The kept answers of this process, and of others where they are shared. `now` is the event loop's clock, `wall`
    tells unix seconds. `here` and `there` have the same bytes of this process; `there` also has others'."""

    def __init__(
        self, now: Callable[[], float], metrics: Metrics, threads: RequestThreads, wall: Callable[[], float] = time.time
    ) -> None:
        self.now = now
        self.wall = wall
        self.metrics = metrics
        self.threads = threads
        self.kept = KeptEntries(ANSWER_BYTES, ANSWER_SECONDS)
        self.here = OwnerMemory(now, self.kept)
        self.there = OwnerMemory(now, self.kept)
        self.flights: Flights[FoundAnswer] = Flights()
        self._secret = secrets.token_bytes(32)

    def secret(self, rules: CacheRules) -> bytes:
        """Return what the keys and entries of a name are sealed with."""
        return rules.seal.encode() or self._secret

    def memory(self, rules: CacheRules) -> OwnerMemory:
        """Return where the answers of a name are."""
        return self.there if rules.shared else self.here

    def before(self, answers: TextAnswers, surface: str, headers: Mapping[str, str]) -> TextAnswers:
        """Return what answers a request of a name with a cache; `answers` is asked. Raises GatewayError for a header
        that asks for what there is not."""
        wish = wish_of(headers)
        return answers if wish is Wish.NO_STORE else CachedAnswers(self, answers, surface, wish, renews(headers))


@record(eq=False)
class CachedAnswers:
    """See TextAnswers. For the requests of one client's call, to names with a cache."""

    cache: AnswerCache
    answers: TextAnswers
    surface: str
    wish: Wish
    renews: bool

    def whole(self, planned: Planned) -> Awaitable[tuple[CallPlan, Completion]]:
        """See TextAnswers."""
        rules = self._rules(planned)
        return self.answers.whole(planned) if rules is None else CachedRequest(self, planned, rules).whole()

    def streamed(self, planned: Planned) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """See TextAnswers."""
        rules = self._rules(planned)
        return self.answers.streamed(planned) if rules is None else CachedRequest(self, planned, rules).streamed()

    def _rules(self, planned: Planned) -> CacheRules | None:
        """Return the rules by which a request is answered; None for one that is not for the cache."""
        if self.wish is Wish.NONE and not is_determined(planned.request):
            return None
        return None if why_not(planned.request) else planned.plan.cache


def is_determined(request: UnifiedRequest) -> bool:
    """Return whether a client asks for the same answer every time, by a temperature of 0 of its own."""
    return request.params.get("temperature") == 0 and "temperature" not in request.injected


class CachedRequest:
    """One request that is for the cache."""

    __slots__ = (
        *("_answers", "_cache", "_flight", "_key", "_owner"),
        *("_planned", "_renews", "_rules", "_secret", "_stale", "_surface"),
    )

    def __init__(self, call: CachedAnswers, planned: Planned, rules: CacheRules) -> None:
        self._cache = call.cache
        self._answers = call.answers
        self._planned = planned
        self._rules = rules
        self._renews = call.renews or call.wish is Wish.REFRESH
        self._secret = call.cache.secret(rules)
        self._owner = f"team {planned.team.tenant}" if rules.scope == "team" else "table"
        self._surface = call.surface
        self._key = ""
        self._flight: Flight[FoundAnswer] | None = None
        self._stale: FoundAnswer | None = None

    async def whole(self) -> tuple[CallPlan, Completion]:
        """See TextAnswers."""
        try:
            found = await self._found(None)
            if found is None:
                try:
                    prepared, completion = await self._answers.whole(self._planned)
                except (UpstreamError, GatewayError) as error:
                    found = self._instead(error)
                else:
                    self._keep(prepared, self._packed(completion), ())
                    return prepared, completion
            completion = found.answer.completion or Completion((), None)
            return self._shown(found), completion
        finally:
            self._leave()

    @asynccontextmanager
    async def streamed(self) -> AsyncIterator[tuple[CallPlan, Stream]]:
        """See TextAnswers."""
        async with AsyncExitStack() as stack:
            stack.callback(self._leave)
            found = await self._found(STREAM_PATIENCE)
            if found is None:
                try:
                    opened = await stack.enter_async_context(self._answers.streamed(self._planned))
                except (UpstreamError, GatewayError) as error:
                    found = self._instead(error)
                else:
                    prepared, stream = opened
                    ended = partial(self._ended, prepared)
                    yield prepared, RecordedStream(stream, self._rules.max_bytes, prepared.request.choices, ended)
                    return
            yield self._shown(found), ReplayedStream(found.answer.events or ())

    def _leave(self) -> None:
        """Let the followers go on, if they have not: without an answer one of them leads."""
        if self._flight is not None:
            self._flight.close()

    async def _found(self, patience: float | None) -> FoundAnswer | None:
        """Return the answer that is kept, or that an equal request gets within `patience`; None where this one asks."""
        found = await self._searched(patience)
        if found is None:
            self._count(CacheUse("miss"))
        return found

    async def _searched(self, patience: float | None) -> FoundAnswer | None:
        cache, planned = self._cache, self._planned
        make = partial(request_key, self._secret, FORM, self._surface, planned.plan, planned.team, planned.request)
        key = self._key = await cache.threads.run(planned.record.owner, make) if planned.heavy else make()
        if self._renews:
            return None
        for _ in range(MOST_LEADERS):
            flight = cache.flights.of(key)
            if flight is None:
                self._flight = cache.flights.lead(key)
                found = await self._looked_up()
                if found is not None:
                    self._flight.land(found)
                return found
            if flight.full:
                return None
            started = cache.now()
            try:
                found = await flight.follow(patience)
            finally:
                planned.record.waited += cache.now() - started
            if found is not None or flight.alone or not flight.over:
                return found
        return None

    async def _looked_up(self) -> FoundAnswer | None:
        """Return the answer that is kept and fresh. One that is stale is held for the case that none is to be had."""
        cache, rules, owner, key = self._cache, self._rules, self._owner, self._key
        memory = cache.memory(rules)
        entry = (await memory.find(owner, (key,))).get(key)
        opened = None if entry is None else open_sealed(self._secret, key, entry, rules.max_bytes)
        if opened is None:
            return None
        age = age_at(opened[0], cache.wall())
        answer = unpack(opened[1]) if age <= rules.ttl + rules.stale else None
        if answer is None or self._target(answer) is None:
            cache.kept.drop(owner, key)
            return None
        if age <= rules.ttl:
            return FoundAnswer(answer, CacheUse("hit", age))
        self._stale = FoundAnswer(answer, CacheUse("stale", age))
        return None

    def _instead(self, error: UpstreamError | GatewayError) -> FoundAnswer:
        """Return the stale answer in place of an error that is no fault of the request's. Raises the error."""
        status = VERDICTS[error.failure.kind].status if isinstance(error, UpstreamError) else error.facts.status
        if self._stale is None or (status < 500 and status != 429):
            raise error
        if self._flight is not None:
            self._flight.land(self._stale)
        return self._stale

    def _target(self, answer: KeptAnswer) -> Target | None:
        """Return the deployment that gave an answer, if the request could go to it."""
        targets = self._planned.plan.every_target
        return next((target for target in targets if target.name == answer.deployment), None)

    def _shown(self, found: FoundAnswer) -> CallPlan:
        """Record that an answer came out of the cache, and return what its request was prepared as."""
        told, answer, request = self._planned.record, found.answer, self._planned.request
        self._count(found.use)
        told.called, told.emulated, told.dropped = answer.deployment, answer.emulated, answer.dropped
        told.max_tokens, told.billed, told.price = answer.max_tokens, NOTHING, FREE
        target = self._target(answer)
        if target is None:
            raise LookupError("the deployment of an answer has been found before")
        return CallPlan(target, request, (), answer.emulated, answer.dropped)

    def _count(self, use: CacheUse) -> None:
        told = self._planned.record
        told.cache = use
        self._cache.metrics.cache_used(use.result, told.model)

    def _packed(self, completion: Completion) -> bytes | None:
        """Return a good answer as bytes; None for one that is not kept."""
        choices, most = completion.choices, self._rules.max_bytes
        good = len(choices) == self._planned.request.choices
        if not good or any(choice.finish_reason not in GOOD_ENDS for choice in choices):
            return None
        return None if least_size(completion) > most else pack_completion(completion)

    def _ended(self, prepared: CallPlan, events: Sequence[bytes] | None) -> None:
        self._keep(prepared, None if events is None else b"", events or ())

    def _keep(self, prepared: CallPlan, whole: bytes | None, events: Sequence[bytes]) -> None:
        """Keep an answer, and give it to the followers. Without one they ask by themselves."""
        cache, told, rules, flight = self._cache, self._planned.record, self._rules, self._flight
        data = None
        if whole is not None:
            head = pack_head(prepared.target.name, tuple(told.emulated), tuple(told.dropped), told.max_tokens)
            data = join(head, whole or None, events)
        if data is None or len(data) > rules.max_bytes:
            if flight is not None:
                flight.land(None)
            return
        entry = seal(self._secret, self._key, cache.wall(), data)
        cache.memory(rules).put(self._owner, {self._key: entry})
        cache.metrics.cache_used("stored", told.model)
        if flight is not None and flight.followed:
            answer = unpack(data)
            flight.land(None if answer is None else FoundAnswer(answer, CacheUse("hit", 0.0)))


def least_size(completion: Completion) -> int:
    """Return the bytes that an answer takes at least: a large one is not packed to learn that it is too large."""
    size = len(completion.native or b"")
    for choice in completion.choices:
        size += len(choice.text) + len(choice.reasoning or "")
        size += sum([len(call.arguments) for call in choice.tool_calls])
        match choice.logprobs:
            case ContentLogprobs(content):
                size += _LOGPROB * sum([1 + len(token.top) for token in content])
            case LegacyLogprobs(tokens):
                size += _LOGPROB * len(tokens)
            case None:
                pass
        size += 0 if choice.extras is None else size_of_extras(choice.extras)
    return size
