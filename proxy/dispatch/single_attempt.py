"""Dispatches exchanges: each attempt takes a slot at a deployment, calls it, and gives the slot back. A stream is
handed on to the client when its first content arrives, which is the commit point."""

import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Generic, TypeVar

from providers.completion import Completion, Usage
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.background_tasks import StrayTasks
from proxy.deadlines import Deadlines
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.deployment_health.deployment_registry import Deployments
from proxy.deployment_health.last_failures import LastFailures
from proxy.dispatch.attempt_loop import RetryContext, first_success
from proxy.dispatch.exchange import AttemptLimits, ClientRequest, Exchange
from proxy.dispatch.hedged_attempt import HedgeContext, HedgedAttempts
from proxy.dispatch.next_deployment import P, Prepare, prepared_off_loop
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.running_attempt import AttemptReports, RunningAttempt, S, Secrets, taken_slot
from proxy.dispatch.target_limiter import TargetLimiter
from proxy.hedging.hedge_state import HedgeStates
from proxy.limits.limit_registry import LimitRegistry
from proxy.loop_clock import loop_clock
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.routing.deployment_load import LiveLoad
from proxy.routing.snapshot import Snapshot
from proxy.teams.retry_budget import RetryBudgets
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.upstream.call_vendor import UpstreamCaller
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import Transport
from proxy.upstream.vendor_stream import Stream

T = TypeVar("T")

Read = Callable[[P, RequestRecord, Deadlines, float | None], Awaitable[T]]
"""Calls a target and reads its response. The last argument is the number of seconds within which the response has to
begin; `None` means no such limit."""

Begin = Callable[[P, RequestRecord, Deadlines], AbstractAsyncContextManager[S]]
"""Calls a target and yields its response, which has begun. The record and the deadlines are the attempt's."""


class Dispatcher:
    """Responds to exchanges by calling the targets of their plans, and has the state of all deployments."""

    def __init__(
        self,
        http: Transport,
        metrics: Metrics,
        off_loop: OffLoop,
        rules: DeploymentRules | None = None,
        draw: Callable[[], float] | None = None,
        secrets: Secrets = lambda target: (),
    ) -> None:
        rules = rules or DeploymentRules()
        self.now = loop_clock()
        self.draw = draw or random.Random().random  # noqa: S311 - spreads load, guards nothing
        self.deployments = Deployments(rules.health, rules.queue, self.draw)
        self.load = LiveLoad(self.deployments.breakers, self.draw)
        self.metrics = metrics
        self.retry_budgets = RetryBudgets()
        self.last_failures = LastFailures(time.time)
        self.log = logging.getLogger("dragoman")
        self.off_loop = off_loop
        self.calls = CallSender(http, off_loop.threads)
        self._caller = UpstreamCaller(self.calls, off_loop)
        self._context = RetryContext(
            *(self.now, self.draw, self.deployments.breakers, self.retry_budgets, rules.retries, metrics, off_loop)
        )
        self.guard = ObserverGuard(metrics.observer_failed, self.now)
        self.limits = TargetLimiter(LimitRegistry(self.now, time.time), self.now, time.time, self.guard)
        ends = (self.now, self.deployments, metrics, self.last_failures, self.log, secrets)
        self.reports = AttemptReports(*ends, self.limits)
        self._wholes = WholeAttempts(self.reports, self._caller.whole)
        self._streams = OpenedAttempts(self.reports, self._caller.streamed)
        self.hedges = HedgeContext(self._context, self.reports, HedgeStates(), StrayTasks())
        self._hedged_wholes = HedgedAttempts(self.hedges, self._wholes)
        self._hedged_streams = HedgedAttempts(self.hedges, self._streams)
        metrics.watch(lambda: self.deployments.breakers.states(self.now()))
        metrics.watch_limits(lambda: self.deployments.limited(self.now()))

    def keep(self, snapshot: Snapshot) -> None:
        """Apply a configuration's limits, and forget the state of names and deployments that are not in the
        configuration."""
        self.limits.use(snapshot)
        self.deployments.keep(snapshot.targets())
        self.last_failures.keep(target.label for target in snapshot.targets())
        names = {*snapshot.models, *(f"{vendor}/*" for vendor in snapshot.wildcards), *snapshot.routes}
        names.update(*(team.routes for team in snapshot.teams.values()))
        self.retry_budgets.keep({"", *snapshot.teams}, names)
        self.hedges.states.keep(names, {"", *snapshot.teams})
        self.load.keep(names)

    def whole(self, exchange: Exchange[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Return the response to a non-streaming request, and the prepared calls that it came from. Raises as `answer`
        does."""
        # If `prepare` were a method, the attempts and their candidates would form a cycle that only the garbage
        # collector frees.
        asked = exchange.request, exchange.team, exchange.record, exchange.heavy
        prepare = partial(prepared_off_loop, self.off_loop, *asked)
        return first_success(self._context, exchange, prepare, self._wholes, self._hedged_wholes)

    def answer(
        self, exchange: Exchange[ClientRequest], prepare: Prepare[P], read: Read[P, T]
    ) -> Awaitable[tuple[P, T]]:
        """Return the prepared calls of the first target that responds, and the result of `read` for it.

        Raises UpstreamError with the last failure, and GatewayError if no target can be called.
        """
        return first_success(self._context, exchange, prepare, WholeAttempts(self.reports, read))

    def streamed(self, exchange: Exchange[UnifiedRequest]) -> Awaitable[RunningAttempt[CallPlan, Stream]]:
        """Return the attempt with the stream of a request, read up to its first content. Raises as `opened` does."""
        asked = exchange.request, exchange.team, exchange.record, exchange.heavy
        prepare = partial(prepared_off_loop, self.off_loop, *asked)
        return first_success(self._context, exchange, prepare, self._streams, self._hedged_streams)

    def opened(
        self, exchange: Exchange[ClientRequest], prepare: Prepare[P], begin: Begin[P, S]
    ) -> Awaitable[RunningAttempt[P, S]]:
        """Return the first attempt whose response begins, as `begin` yields it. Entering the attempt, which is
        required, yields the prepared calls of its target and the response; leaving it closes the response. Raises as
        `answer` does.

        A failure within the block comes after the commit point, so that no attempt follows it.
        """
        return first_success(self._context, exchange, prepare, OpenedAttempts(self.reports, begin))


class WholeAttempts(Generic[P, T]):
    """Attempts whose response is read as a whole. Implements `Attempts` and `Hedgeable`."""

    __slots__ = ("_read", "_reports")

    kind = AnswerKind.WHOLE

    def __init__(self, reports: AttemptReports, read: Read[P, T]) -> None:
        self._reports = reports
        self._read = read

    async def make(
        self,
        exchange: Exchange[ClientRequest],
        prepared: P,
        limits: AttemptLimits,
        queue: DeploymentQueue | None = None,
    ) -> tuple[P, T]:
        reports = self._reports
        if queue is None and not reports.limits.scopes:
            queue = reports.deployments.take_free(prepared.target, exchange.team.name)
        if queue is None:
            queue = await taken_slot(reports, prepared, exchange)
        attempt: RunningAttempt[P, T] = RunningAttempt(
            reports, prepared, exchange, queue, AnswerKind.WHOLE, limits.total
        )
        with attempt:
            return prepared, await self._read(prepared, exchange.record, exchange.deadlines, limits.answer)

    def adopt(self, exchange: Exchange[ClientRequest], made: tuple[P, T]) -> None:
        """Do nothing, because the response has been read completely."""

    async def discard(self, record: RequestRecord, made: tuple[P, T], error: BaseException) -> None:
        usage = getattr(made[1], "usage", None)
        if isinstance(usage, Usage):
            record.note_unanswered(usage)


class OpenedAttempts(Generic[P, S]):
    """Attempts whose response is handed on as soon as it begins. Implements `Attempts` and `Hedgeable`."""

    __slots__ = ("_begin", "_reports")

    kind = AnswerKind.STREAM

    def __init__(self, reports: AttemptReports, begin: Begin[P, S]) -> None:
        self._reports = reports
        self._begin = begin

    async def make(
        self,
        exchange: Exchange[ClientRequest],
        prepared: P,
        limits: AttemptLimits,
        queue: DeploymentQueue | None = None,
    ) -> RunningAttempt[P, S]:
        reports = self._reports
        if queue is None and not reports.limits.scopes:
            queue = reports.deployments.take_free(prepared.target, exchange.team.name)
        if queue is None:
            queue = await taken_slot(reports, prepared, exchange)
        attempt: RunningAttempt[P, S] = RunningAttempt(
            reports, prepared, exchange, queue, AnswerKind.STREAM, limits.total
        )
        try:
            response = self._begin(prepared, exchange.record, exchange.deadlines)
            begun = await response.__aenter__()
        except BaseException as error:
            attempt.__exit__(type(error), error, error.__traceback__)
            raise
        attempt.opened(begun, response)
        return attempt

    def adopt(self, exchange: Exchange[ClientRequest], made: RunningAttempt[P, S]) -> None:
        made.adopt(exchange)

    async def discard(self, record: RequestRecord, made: RunningAttempt[P, S], error: BaseException) -> None:
        await made.__aexit__(type(error), error, error.__traceback__)
        if record.usage is not None:
            record.note_unanswered(record.usage)
            record.usage = None
