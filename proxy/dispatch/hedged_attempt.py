"""The first attempt of a request, and a second one at another deployment if the first is late. The first content wins.

The first attempt runs in the task of the request, as without a second one. The second runs in a task of its own, with a
record and deadlines of its own, which become the request's if it wins. The attempt that has content first ends the
other attempt by expiring its deadlines, within the same event loop iteration, so that no content of the losing attempt
is handed on."""

from asyncio import Task, wait
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from providers.emulation.plan_calls import CallPlan
from providers.failure import VERDICTS, Failure, UpstreamError
from providers.target import Target
from proxy.background_tasks import StrayTasks
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.dispatch.attempt_loop import RetryContext
from proxy.dispatch.exchange import AttemptLimits, ClientRequest, Exchange, attempt_limits
from proxy.dispatch.hedge_costs import bounded, most_lost, usd_of
from proxy.dispatch.next_deployment import Candidates
from proxy.dispatch.retry_rules import may_repeat
from proxy.dispatch.running_attempt import AttemptReports, SupersededError
from proxy.errors import GatewayError
from proxy.hedging.hedge_rules import HedgeRules
from proxy.hedging.hedge_state import HedgeBucket, HedgeStates, HourlySpending
from proxy.hedging.hedged_requests import why_not_first
from proxy.limits.reservation import Reservation
from proxy.request_outcomes import SUPERSEDED, HedgeOutcome
from proxy.request_record import Attempt, RequestRecord
from proxy.timers import Timer, loop_alarms

T = TypeVar("T")

SPARE: Final = 1.0
"""Seconds by which the deadlines of a second attempt outlast the request's. So the request's deadlines end both
attempts, and a deployment that was called late is not blamed when the request's time is over."""

UNWINDING: Final = 5.0
"""Seconds that a cancelled attempt may take to end. Closing a connection takes no time."""


class Hedgeable(Protocol[T]):
    """Attempts of which two may run at a time. They are also `proxy.dispatch.attempt_loop.Attempts`."""

    @property
    def kind(self) -> AnswerKind:
        """The kind of response that an attempt waits for."""

    def make(
        self,
        exchange: Exchange[ClientRequest],
        prepared: CallPlan,
        limits: AttemptLimits,
        queue: DeploymentQueue | None = None,
    ) -> Awaitable[T]:
        """Make one attempt. If `queue` is given, the attempt already has its slot in it."""

    def adopt(self, exchange: Exchange[ClientRequest], made: T) -> None:
        """Make the result of an attempt the result of this request, whose record and deadlines apply to it from now
        on."""

    async def discard(self, record: RequestRecord, made: T, error: BaseException) -> None:
        """End the result of an attempt that lost, and note its usage."""


class HedgeContext(NamedTuple):
    """The objects that the second attempts of all requests share."""

    retries: RetryContext
    reports: AttemptReports
    states: HedgeStates
    tasks: StrayTasks


class HedgedAttempts(Generic[T]):
    """Makes the second attempts of requests whose names have them. Implements `proxy.dispatch.attempt_loop.Hedges`."""

    __slots__ = ("attempts", "context")

    def __init__(self, context: HedgeContext, attempts: Hedgeable[T]) -> None:
        self.context = context
        self.attempts = attempts

    def race(
        self, exchange: Exchange[ClientRequest], first: CallPlan, candidates: Candidates[CallPlan]
    ) -> "HedgeRace[T] | None":
        """Implement `Hedges`. Every request of the name is counted, whether or not it may have a second attempt."""
        context, rules, plan = self.context, exchange.plan.hedge, exchange.plan
        if rules is None:
            return None
        context.states.bucket(plan.label, exchange.team.tenant).count(rules)
        if not candidates.left or why_not_first(first) is not None:
            return None
        placed = exchange.record.placed
        if placed is not None and placed.outcome(first.target.label) == "spilled_load":
            return None  # the conversation's own deployment is only busy, and has its cache
        wait = rules.wait(context.retries.breakers.of(first.target).percentile(self.attempts.kind))
        return None if wait is None else HedgeRace(self, exchange, first, candidates, rules, wait)


@dataclass(slots=True, eq=False)
class _Second(Generic[T]):
    """A second attempt that has begun: the request with a record of its own, its prepared call, and the amounts of the
    deployment's limits and of USD per hour that are reserved for it."""

    exchange: Exchange[ClientRequest]
    prepared: CallPlan
    hold: Reservation | None
    reserved: float
    made: T | None = None
    failure: Failure | None = None


class HedgeRace(Generic[T]):
    """One request, whose first attempt may be followed by a second one after `wait` seconds without content. `failed`
    is the prepared call of the attempt whose failure `run` raises. If both failed, `other` is the failure of the other
    attempt."""

    __slots__ = (
        *("_alarm", "_attempts", "_before", "_candidates", "_context", "_counted", "_ended", "_first", "_late", "_own"),
        *("_exchange", "_rules", "_second", "_task", "_wait", "failed", "other"),
    )

    def __init__(
        self,
        hedged: HedgedAttempts[T],
        exchange: Exchange[ClientRequest],
        first: CallPlan,
        candidates: Candidates[CallPlan],
        rules: HedgeRules,
        wait: float,
    ) -> None:
        self._context, self._attempts = hedged.context, hedged.attempts
        self._exchange = exchange
        self._first = self.failed = first
        self.other: Failure | None = None
        self._candidates = candidates
        self._rules = rules
        self._wait = wait
        self._alarm: Timer | None = None
        self._own: Deadlines | None = None
        self._second: _Second[T] | None = None
        self._task: Task[None] | None = None
        self._ended = self._late = False
        self._before, self._counted = len(exchange.record.attempts), len(exchange.record.unanswered)

    async def run(self, limits: AttemptLimits) -> T:
        """Return the result of the attempt whose content comes first. Raises UpstreamError with the last failure."""
        exchange = self._exchange
        try:
            made = await self._run_first(limits)
        except SupersededError:
            return self._second_won()
        except UpstreamError as error:
            if self._task is None:
                raise
            made_after = await self._second_or(self._task, error.failure)
            if made_after is None:
                raise
            return made_after
        except BaseException as error:
            await self._end_second("cancelled", error)
            raise
        if self._task is None:
            if not self._late:
                self._context.states.note(self._first.target.identity, late=False)
            return made
        try:
            await self._end_second("lost", SupersededError())
        except BaseException as error:
            await self._attempts.discard(exchange.record, made, error)
            raise
        return made

    async def _run_first(self, limits: AttemptLimits) -> T:
        ringing = loop_alarms()
        self._alarm = ringing.set(ringing.now() + self._wait, self._rang)
        try:
            return await self._attempts.make(self._exchange, self._first, limits)
        finally:
            self._ended = True
            if self._alarm is not None:
                ringing.drop(self._alarm)

    # When the first attempt is late ----------------------------------------------------------------------------------

    def _rang(self) -> None:
        """Begin a second attempt if the first has waited long enough for content and no rule forbids it."""
        self._alarm = None
        ringing, record = loop_alarms(), self._exchange.record
        now = ringing.now()
        started = record.attempts[-1].started if len(record.attempts) > self._before else now
        due = started + self._wait
        if due > now:  # the first attempt has waited for its slot
            self._alarm = ringing.set(due, self._rang)
            return
        if self._attempts.kind is AnswerKind.WHOLE and record.attempts[-1].head:
            return  # the response has begun
        states, plan = self._context.states, self._exchange.plan
        self._late = True
        states.note(self._first.target.identity, late=True)
        if states.closed([target.identity for target in plan.targets]):
            record.hedge = "closed"
        elif not self._bucket.has_one(self._rules):
            record.hedge = "refused_share"
        else:
            self._task = self._context.tasks.start(self._run_second())

    async def _run_second(self) -> None:
        """Make the second attempt, if a deployment takes it at once. Its result or failure is in `_second`."""
        exchange = self._exchange
        own = self._own = Deadlines(exchange.deadlines.remaining + SPARE)
        try:
            with own:
                found = await self._begun(own)
                if not isinstance(found, tuple):
                    exchange.record.hedge = found
                    return
                second, queue = found
                limits = attempt_limits(second.prepared.target.timeouts, exchange.total)
                await self._made(second, limits, queue)
        except DeadlinePassed:
            return  # the first attempt got content while this one was being prepared

    async def _begun(self, own: Deadlines) -> "tuple[_Second[T], DeploymentQueue] | HedgeOutcome":
        """Return a second attempt with its slot at the first deployment with a free slot, or the reason if no
        deployment has one. Nothing is awaited after the slot has been taken."""
        exchange, reports, bucket = self._exchange, self._context.reports, self._bucket
        refused: HedgeOutcome = "refused_target"
        for target in tuple(self._candidates.left):
            if not self._is_well(target):
                continue
            prepared = await self._candidates.take(target)
            if prepared is None or len(prepared.calls) != 1 or not self._is_well(target):
                continue
            if not bucket.has_one(self._rules):
                return "refused_share"  # other requests have used the share up during the preparation
            queue = reports.deployments.take_free(target, exchange.team.name)
            if queue is None:
                refused = "refused_busy"
                continue
            there, hold = reports.limits.hold_at_once(target, exchange.record)
            if not there:
                queue.release(exchange.team.name)
                refused = "refused_busy"
                continue
            reserved = most_lost(self._first, prepared)
            if not self._spending.reserve(reserved, self._rules.usd_per_hour, self._context.retries.now()):
                queue.release(exchange.team.name)
                if hold is not None:
                    hold.release()
                return "refused_cap"
            bucket.take(self._rules)
            self._candidates.drop(target)
            second = self._second = _Second(self._branch(own, prepared), prepared, hold, reserved)
            return second, queue
        return refused

    @property
    def _bucket(self) -> HedgeBucket:
        return self._context.states.bucket(self._exchange.plan.label, self._exchange.team.tenant)

    @property
    def _spending(self) -> HourlySpending:
        return self._context.states.spending(self._exchange.plan.label)

    def _is_well(self, target: Target) -> bool:
        """Return whether a deployment is healthy for a second attempt. A recovering deployment is not."""
        retries = self._context.retries
        breaker, now, tenant = retries.breakers.of(target), retries.now(), self._exchange.team.tenant
        return breaker.untroubled(now) and breaker.healthy(now, tenant)

    def _branch(self, own: Deadlines, prepared: CallPlan) -> Exchange[ClientRequest]:
        """Return the request for the second attempt, with a record of its own."""
        exchange, record = self._exchange, self._exchange.record
        if exchange.heavy:
            record.heavy.append(prepared)
        branch = replace(record, attempts=[*record.attempts], heavy=[], held=None, unanswered=())
        return exchange.branch(branch, own)

    async def _made(self, second: _Second[T], limits: AttemptLimits, queue: DeploymentQueue) -> None:
        making = self._attempts.make(second.exchange, second.prepared, limits, queue)
        try:
            made = await making
        except SupersededError:
            return
        except UpstreamError as error:
            second.failure = error.failure
        except GatewayError:
            return  # the model's window is too small for the request, as only this attempt found out
        else:
            second.made = made
            if not self._ended:
                self._exchange.deadlines.expire(Phase.HEDGE)

    # How the race ends -----------------------------------------------------------------------------------------------

    def _second_won(self) -> T:
        """Return the result of the second attempt, and make it the result of the request."""
        second, record, context = self._second, self._exchange.record, self._context
        if second is None or second.made is None:
            raise RuntimeError("an attempt was ended by one that has not succeeded")
        branch, made, lost = second.exchange.record, second.made, record.unanswered[self._counted :]
        second.made, cancelled = None, 0.0
        if record.attempts[-1].outcome == SUPERSEDED:  # else the first failed, and the second replaced its retry
            lost = bounded(lost, self._first)
            cancelled = usd_of(lost)
        self._spending.settle(second.reserved, cancelled, context.retries.now())
        record.unanswered = (*record.unanswered[: self._counted], *lost, *branch.unanswered)
        record.attempts[-1].number = len(record.attempts)
        record.attempts.append(_attempt_of(second))
        record.called, record.price, record.max_tokens = branch.called, branch.price, branch.max_tokens
        record.emulated, record.dropped, record.passed = branch.emulated, branch.dropped, branch.passed
        if record.held is not None:
            record.held.leave_target()
            if second.hold is not None:
                record.held.hold_target(second.hold)
        self._attempts.adopt(self._exchange, made)
        record.hedge = "won"
        return made

    async def _second_or(self, task: Task[None], failure: Failure) -> T | None:
        """Return the result of the second attempt after the first has failed; `None` if the second attempt did not
        begin, or would be of no use. Raises UpstreamError if it fails too."""
        final = not (VERDICTS[failure.kind].try_next and may_repeat(failure, self._first.target.retries.safety))
        if final or task.done():
            await self._end_second("cancelled", SupersededError())
            self.other = None if self._second is None else self._second.failure
            return None
        try:
            await wait((task,))  # the deadlines of the request end this wait
        except BaseException as error:
            await self._end_second("cancelled", error)
            raise
        await self._context.tasks.settled(task, UNWINDING)
        second = self._second
        if second is None:
            return None
        if second.made is not None:
            return self._second_won()
        self._second_lost(second, "failed", place=len(self._exchange.record.attempts))
        if second.failure is None:
            return None
        self.failed, self.other = second.prepared, failure
        raise UpstreamError(second.failure)

    async def _end_second(self, outcome: HedgeOutcome, error: BaseException) -> None:
        """End the second attempt, if there is one. `outcome` says whether it lost or is cancelled together with the
        request; `error` ends the request."""
        task = self._task
        if task is None:
            return
        if self._own is None or outcome == "cancelled":
            task.cancel()
        else:
            self._own.expire(Phase.HEDGE)
        if not await self._context.tasks.settled(task, UNWINDING):
            self._context.reports.log.warning("a second attempt has not ended %.0f s after its end", UNWINDING)
        second = self._second
        if second is None:
            return
        made, second.made = second.made, None
        if made is not None:
            await self._attempts.discard(second.exchange.record, made, error)
        self._second_lost(second, outcome, place=max(0, len(self._exchange.record.attempts) - 1))

    def _second_lost(self, second: _Second[T], outcome: HedgeOutcome, place: int) -> None:
        """Record a second attempt that did not win, at this index of the recorded attempts."""
        record, context = self._exchange.record, self._context
        lost = second.exchange.record.unanswered
        if second.failure is None:
            lost = bounded(lost, second.prepared)
        self._spending.settle(second.reserved, usd_of(lost), context.retries.now())
        record.unanswered += lost
        if second.hold is not None:
            second.hold.settle(0, 0)
        if record.attempts:
            record.attempts[-1].number = len(record.attempts)
        record.attempts.insert(place, _attempt_of(second))
        record.hedge = outcome if second.failure is None else "failed"


def _attempt_of(second: _Second[T]) -> Attempt:
    """Return the entry of a second attempt in the record."""
    attempts = second.exchange.record.attempts
    attempt = attempts[-1]
    attempt.hedge, attempt.number = True, len(attempts)
    return attempt
