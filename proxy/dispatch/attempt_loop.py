"""The attempts of one request: which target is called next, and when. No other module begins another attempt.
`proxy.upstream.send_call` may repeat a call within an attempt, which takes nothing from the budget."""

import asyncio
from collections.abc import Awaitable, Callable
from types import CoroutineType
from typing import Generic, NamedTuple, Protocol, TypeVar

from tenacity import AsyncRetrying, RetryCallState
from tenacity.asyncio import retry_if_exception

from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.target import Target
from proxy.deployment_health.breaker_registry import Breakers
from proxy.deployment_health.circuit_breaker import Breaker
from proxy.dispatch.exchange import AttemptLimits, ClientRequest, Exchange, attempt_limits
from proxy.dispatch.next_deployment import Candidates, P, Prepare, Prepared
from proxy.dispatch.retry_rules import RetryRules, is_free, least_useful, may_repeat, wait_for_other, wait_for_same
from proxy.off_loop.request_threads import OffLoop
from proxy.teams.retry_budget import RetryBucket, RetryBudgets
from proxy.telemetry.metrics import Metrics

T = TypeVar("T")
P_out = TypeVar("P_out", bound=Prepared, covariant=True)
P_in = TypeVar("P_in", bound=Prepared, contravariant=True)
T_out = TypeVar("T_out", covariant=True)


_EARLY = 0.002
"""The most seconds by which a timer may end too early. uvloop 0.22 counts whole milliseconds, and every fifth wait
ended up to 0.5 ms before its time (measured)."""


class RetryContext(NamedTuple):
    """The objects that the attempts of all requests share. `now` returns the event loop's time in seconds, `draw` a
    random number from 0 to 1."""

    now: Callable[[], float]
    draw: Callable[[], float]
    breakers: Breakers
    budgets: RetryBudgets
    rules: RetryRules
    metrics: Metrics
    off_loop: OffLoop


class Attempts(Protocol[P_in, T_out]):
    """The interface that makes the attempts of a request. An attempt uses only the record and the deadlines of the
    exchange that it is given. So two attempts with separate records and deadlines may run at a time."""

    def make(self, exchange: Exchange[ClientRequest], prepared: P_in, limits: AttemptLimits) -> Awaitable[T_out]:
        """Make one attempt at the target for which the request has been prepared. Raises UpstreamError."""


class Race(Protocol[P_out, T_out]):
    """The first attempt of a request, and a second one if the first is late."""

    @property
    def failed(self) -> P_out:
        """The prepared call of the attempt whose failure `run` has raised."""

    @property
    def other(self) -> Failure | None:
        """The failure of the other attempt, if both failed."""

    def run(self, limits: AttemptLimits) -> Awaitable[T_out]:
        """Return the result of the attempt whose content comes first. Raises UpstreamError if both fail."""


class Hedges(Protocol[P, T_out]):
    """The interface that begins the requests for names with second attempts."""

    def race(self, exchange: Exchange[ClientRequest], first: P, candidates: Candidates[P]) -> Race[P, T_out] | None:
        """Return the race of a request that may have a second attempt at one of the candidates, else `None`."""


async def first_success(
    context: RetryContext,
    exchange: Exchange[ClientRequest],
    prepare: Prepare[P],
    attempts: Attempts[P, T],
    hedges: Hedges[P, T] | None = None,
) -> T:
    """Return the result of the first attempt that succeeds. Raises UpstreamError with the last failure, and
    GatewayError if no target can be called."""
    now, tenant = context.now(), exchange.team.tenant
    budget = context.budgets.count_request(tenant, exchange.plan.label, now)
    candidates = Candidates(context.breakers, tenant, prepare)
    placed = exchange.record.placed
    first = candidates.first(exchange.plan, now, None if placed is None else placed.number)
    prepared: P = await first if isinstance(first, CoroutineType) else first  # type: ignore[assignment]  # see Later
    if exchange.heavy:
        exchange.record.heavy.append(prepared)
    target = prepared.target
    another = candidates.left and target.retries.attempts > 1 and target.retries.safety == "safe"
    share = context.rules.share * exchange.deadlines.remaining if another else None
    limits, race = attempt_limits(target.timeouts, exchange.total, share), None
    if exchange.plan.hedge is not None and hedges is not None:
        race = hedges.race(exchange, prepared, candidates)
    try:
        return await (attempts.make(exchange, prepared, limits) if race is None else race.run(limits))
    except UpstreamError as error:
        if race is None:
            others = OtherAttempts(context, exchange, attempts, candidates, budget, prepared)
        else:
            others = OtherAttempts(context, exchange, attempts, candidates, budget, race.failed)
            others.count_other(race.other)
            del race
        del prepared  # may be large, and is not needed once another target is called
        if not await others.follow(error):
            raise
    return await others.answer()


class OtherAttempts(Generic[P, T]):
    """The attempts of a request that follow a failure; `failed` is the prepared call of the failed attempt."""

    def __init__(
        self,
        context: RetryContext,
        exchange: Exchange[ClientRequest],
        attempts: Attempts[P, T],
        candidates: Candidates[P],
        budget: RetryBucket,
        failed: P,
    ) -> None:
        self.context = context
        self.exchange = exchange
        self._attempts = attempts
        self._candidates = candidates
        self._budget = budget
        self._next = failed
        self._most, self._own_budget = failed.target.retries.attempts, failed.target.retries.budget
        self._first: Failure | None = None
        self._wait = 0.0
        self._paid = self._same = 0
        self._hopped = self._repeated = False
        self._fallbacks_used: tuple[FailureKind, ...] = ()

    def count_other(self, failure: Failure | None) -> None:
        """Count the failure of the attempt that ran beside the one that failed last. `failure` is `None` if there was
        no other attempt."""
        if failure is not None:
            self._first = failure
            self._paid += not is_free(failure)
            self._hopped = True

    async def answer(self) -> T:
        """Return as `first_success` does. Call it once, after `follow` has returned True."""
        await self._pause(self._wait)
        # Each request has its own object: its state belongs to a thread, so two tasks would share one state.
        retrying = AsyncRetrying(
            retry=retry_if_exception(self.follow), wait=self._decided_wait, sleep=self._pause, reraise=True
        )
        try:
            return await retrying(self._next_attempt)
        except UpstreamError as error:
            # tenacity's frame holds the error, and the error's traceback holds the frame. This cycle would keep the
            # whole request until the garbage collector runs. So would the actions that tenacity stores.
            raise self._reason(error).with_traceback(None) from None
        finally:
            retrying.iter_state.reset()

    def _reason(self, last: UpstreamError) -> UpstreamError:
        """Return the error that the client gets: the last one, or the first one if the last target's model cannot take
        the request, as if that target had been skipped."""
        skipped = last.failure.kind is FailureKind.UNSUPPORTED
        return UpstreamError(self._first) if skipped and self._first is not None else last

    async def follow(self, error: BaseException) -> bool:
        """Choose the attempt that follows a failed attempt, and the wait before it. Returns False if the error is
        final."""
        if self._first is None and isinstance(error, UpstreamError):
            self._first = error.failure
        wait = await self._decide(error.failure) if isinstance(error, UpstreamError) else None
        self._wait = wait or 0.0
        return wait is not None

    def _decided_wait(self, state: RetryCallState) -> float:
        return self._wait

    async def _next_attempt(self) -> T:
        if 0 < self._breaker(self._next.target).wait(self.context.now()) < _EARLY:
            await asyncio.sleep(_EARLY)
        # Other requests may have waited too, and one of them may be the probe by now.
        while not self._breaker(self._next.target).admits(now := self.context.now(), self.exchange.team.tenant):
            following = await self._candidates.next(now)
            if following is None:
                raise UpstreamError(self._failure)
            self._turn_to(following)
        try:
            return await self._attempt()
        except UpstreamError as error:
            # Tenacity keeps the error, whose traceback holds the prepared request.
            raise error.with_traceback(None) from None

    def _turn_to(self, prepared: P) -> None:
        """Call another target next. The prepared call for the previous target is freed in a thread if the request is
        heavy."""
        before, self._next = self._next, prepared
        if self.exchange.heavy:
            held = self.exchange.record.heavy
            held[:] = [*(each for each in held if each is not before), prepared]
            self.context.off_loop.threads.free([before])

    def _attempt(self) -> Awaitable[T]:
        target, exchange = self._next.target, self.exchange
        another = self._candidates.left and self._paid + 1 < self._most and target.retries.safety == "safe"
        share = self.context.rules.share * exchange.deadlines.remaining if another else None
        return self._attempts.make(exchange, self._next, attempt_limits(target.timeouts, exchange.total, share))

    async def _pause(self, seconds: float) -> None:
        record, began = self.exchange.record, self.context.now()
        record.waited += seconds
        await asyncio.sleep(seconds)
        record.waits().paused += self.context.now() - began

    async def _decide(self, failure: Failure) -> float | None:
        """Choose the next target, and return the seconds until it is called; `None` if this failure is final."""
        context, exchange, failed = self.context, self.exchange, self._next
        self._failure = failure
        free = is_free(failure)
        self._paid += not free
        if self._paid >= self._most or not may_repeat(failure, failed.target.retries.safety):
            return None
        wait = self._same_before_others(failure, free)
        if wait is not None:
            return wait
        wait = await self._another(failure)
        if wait is None:
            wait = self._same_at_last(failure)
        if wait is None or not self._leaves_enough_time(wait):
            return None
        if not free and not self._is_first_hop(failed) and not self._pay():
            context.metrics.retry_denied(exchange.record.model)
            return None
        if self._next is not failed:
            self._same = 0
            self._hopped = self._hopped or not free
            context.metrics.fallback(exchange.record.model, failure.kind.value)
        return wait

    def _is_first_hop(self, failed: P) -> bool:
        """Return whether this is the first change of target, and the new target is healthy. This change takes nothing
        from the budget, because further targets are listed for it. If all targets fail, they are no longer healthy."""
        if self._hopped or self._next is failed:
            return False
        return self._breaker(self._next.target).healthy(self.context.now(), self.exchange.team.tenant)

    def _pay(self) -> bool:
        context = self.context
        return self._budget.spend(context.rules.budget.of(self._own_budget), context.now())

    async def _another(self, failure: Failure) -> float | None:
        """Choose another target, by the route's fallbacks for this kind of failure."""
        kind = failure.kind
        fallbacks = self.exchange.plan.fallbacks.get(kind)
        if fallbacks and kind not in self._fallbacks_used:
            self._fallbacks_used = (*self._fallbacks_used, kind)
            self._candidates.turn_to(fallbacks)
        elif not VERDICTS[kind].try_next:
            return None
        context = self.context
        prepared = await self._candidates.next(context.now())
        if prepared is None:
            return None
        self._turn_to(prepared)
        return wait_for_other(failure, context.rules, context.draw)

    def _leaves_enough_time(self, wait: float) -> bool:
        """Return whether an attempt after `wait` seconds has enough time left."""
        exchange, usual = self.exchange, self._breaker(self._next.target).first_byte
        return exchange.deadlines.remaining - wait >= least_useful(usual, exchange.total, self.context.rules)

    def _same_before_others(self, failure: Failure, free: bool) -> float | None:
        """Choose the same target again before others, as often as `retries.same_deployment` and the budget allow, if it
        admits a request at once or has reported when it will. The last attempt goes to another target."""
        if failure.withheld:
            return None
        context, target = self.context, self._next.target
        last = self._candidates.left and self._paid + 1 >= self._most
        if last or self._same >= target.retries.same_deployment:
            return None
        now, breaker = context.now(), self._breaker(target)
        if failure.retry_after is None and not breaker.admits(now, self.exchange.team.tenant):
            return None
        wait = wait_for_same(failure, breaker.wait(now), context.rules, context.draw)
        if wait is None or not self._leaves_enough_time(wait) or not (free or self._pay()):
            return None
        self._same += 1
        return wait

    def _same_at_last(self, failure: Failure) -> float | None:
        """Choose the same target again, once, if no other target is left. If the plan has several targets, this
        requires that the failure is a rate limit. There is no queue for the operator's own limits, so the client gets
        the time of the next try instead."""
        if failure.withheld:
            return None
        context, target = self.context, self._next.target
        alone = len(self.exchange.plan.targets) == 1
        if self._repeated or self._same or not (alone or failure.kind is FailureKind.RATE_LIMITED):
            return None
        self._repeated = True
        return wait_for_same(failure, self._breaker(target).wait(context.now()), context.rules, context.draw)

    def _breaker(self, target: Target) -> Breaker:
        return self.context.breakers.of(target)
