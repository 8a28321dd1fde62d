"""Answers planned requests: each attempt takes its place at a deployment, calls it, and gives the place back. A stream
is handed over at its first content, the commit point."""

import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Generic, TypeAlias, TypeVar

from providers.completion import Completion, Usage
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import UnifiedRequest
from proxy.background_tasks import StrayTasks
from proxy.deadlines import Deadlines
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.deployment_health.deployment_registry import Deployments
from proxy.deployment_health.last_failures import LastFailures
from proxy.dispatch.attempt_deadline import AttemptLimits
from proxy.dispatch.attempt_loop import ClientRequest, Hedges, PlannedRequest, RetryContext, first_success
from proxy.dispatch.hedged_attempt import HedgeContext, HedgedAttempts
from proxy.dispatch.next_deployment import P, Prepare, prepared_off_loop
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.dispatch.running_attempt import AttemptReports, RunningAttempt, Secrets, free_place, taken_place
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
from proxy.upstream.call_vendor import SingleStream, UpstreamCaller
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import Transport
from proxy.upstream.vendor_stream import Stream

T = TypeVar("T")
S = TypeVar("S")

Read = Callable[[P, RequestRecord, Deadlines, float | None], Awaitable[T]]
"""Calls a target and reads its answer, which has to begin within so many seconds (None: at any time)."""

Begin = Callable[[P, RequestRecord, Deadlines], AbstractAsyncContextManager[S]]
"""Calls a target and yields its response, which has begun. The record and the deadlines are the attempt's."""


class Dispatcher:
    """Answers planned requests by calling their targets, and keeps the state of all deployments."""

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
        """Put a table's limits in force, and forget what it does not have."""
        self.limits.use(snapshot)
        self.deployments.keep(snapshot.targets())
        self.last_failures.keep(target.label for target in snapshot.targets())
        names = {*snapshot.models, *(f"{vendor}/*" for vendor in snapshot.wildcards), *snapshot.routes}
        names.update(*(team.routes for team in snapshot.teams.values()))
        self.retry_budgets.keep({"", *snapshot.teams}, names)
        self.hedges.states.keep(names, {"", *snapshot.teams})
        self.load.keep(names)

    def whole(self, planned: PlannedRequest[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Return the answer of a request that is not streamed, and the target's calls that gave it. Raises as `answer`
        does."""
        # Not a method: the attempts and their candidates would form a cycle, which waits for the garbage collector.
        asked = planned.request, planned.team, planned.record, planned.heavy
        prepare = partial(prepared_off_loop, self.off_loop, *asked)
        return first_success(self._context, planned, prepare, self._wholes, self._hedged_wholes)

    def answer(
        self, planned: PlannedRequest[ClientRequest], prepare: Prepare[P], read: Read[P, T]
    ) -> Awaitable[tuple[P, T]]:
        """Return what `read` reads of the first target that answers, and as what the request was prepared for it.

        Raises UpstreamError with the last failure, GatewayError when no target can be called.
        """
        return first_success(self._context, planned, prepare, WholeAttempts(self.reports, read))

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> "OpenedAttempt[CallPlan, Stream]":
        """Yield the stream of a request, read up to its first content, and the calls that give it; closed on leaving.
        Raises as `opened` does."""
        asked = planned.request, planned.team, planned.record, planned.heavy
        prepare = partial(prepared_off_loop, self.off_loop, *asked)
        return OpenedAttempt(self._context, planned, prepare, self._streams, self._hedged_streams)

    def opened(
        self, planned: PlannedRequest[ClientRequest], prepare: Prepare[P], begin: Begin[P, S]
    ) -> "OpenedAttempt[P, S]":
        """Yield what `begin` yields on the first target that begins to answer, and as what the request was prepared for
        it; closed on leaving. Raises the same errors as `answer` before that.

        What fails within the block has been committed, so no attempt follows.
        """
        return OpenedAttempt(self._context, planned, prepare, OpenedAttempts(self.reports, begin))


class WholeAttempts(Generic[P, T]):
    """Attempts whose response is read as a whole. See Dispatcher.answer, Attempts and Hedgeable."""

    __slots__ = ("_read", "_reports")

    kind = AnswerKind.WHOLE

    def __init__(self, reports: AttemptReports, read: Read[P, T]) -> None:
        self._reports = reports
        self._read = read

    async def make(
        self,
        planned: PlannedRequest[ClientRequest],
        prepared: P,
        limits: AttemptLimits,
        queue: DeploymentQueue | None = None,
    ) -> tuple[P, T]:
        """See Attempts."""
        reports = self._reports
        queue = queue or free_place(reports, prepared, planned) or await taken_place(reports, prepared, planned)
        with RunningAttempt(reports, prepared, planned, queue, AnswerKind.WHOLE, limits.total):
            return prepared, await self._read(prepared, planned.record, planned.deadlines, limits.answer)

    def adopt(self, planned: PlannedRequest[ClientRequest], made: tuple[P, T]) -> None:
        """See Hedgeable."""

    async def discard(self, record: RequestRecord, made: tuple[P, T], error: BaseException) -> None:
        """See Hedgeable."""
        usage = getattr(made[1], "usage", None)
        if isinstance(usage, Usage):
            record.note_unanswered(usage)


Opened: TypeAlias = tuple[P, S, RunningAttempt, AbstractAsyncContextManager[S]]
"""An attempt whose response has begun: the call, the response, the attempt, and the context manager that closes it. A
plain tuple: each stream makes one."""


class OpenedAttempts(Generic[P, S]):
    """Attempts whose response is handed over at its begin. See Attempts and Hedgeable."""

    __slots__ = ("_begin", "_reports")

    kind = AnswerKind.STREAM

    def __init__(self, reports: AttemptReports, begin: Begin[P, S]) -> None:
        self._reports = reports
        self._begin = begin

    async def make(
        self,
        planned: PlannedRequest[ClientRequest],
        prepared: P,
        limits: AttemptLimits,
        queue: DeploymentQueue | None = None,
    ) -> Opened[P, S]:
        """See Attempts."""
        reports = self._reports
        queue = queue or free_place(reports, prepared, planned) or await taken_place(reports, prepared, planned)
        running = RunningAttempt(reports, prepared, planned, queue, AnswerKind.STREAM, limits.total)
        try:
            answer = self._begin(prepared, planned.record, planned.deadlines)
            begun = await answer.__aenter__()
        except BaseException as error:
            running.__exit__(type(error), error, error.__traceback__)
            raise
        running.commit()
        return prepared, begun, running, answer

    def adopt(self, planned: PlannedRequest[ClientRequest], made: Opened[P, S]) -> None:
        """See Hedgeable."""
        _, _, running, answer = made
        running.adopt(planned)
        closing: object = answer
        if isinstance(closing, SingleStream):
            closing.record = planned.record

    async def discard(self, record: RequestRecord, made: Opened[P, S], error: BaseException) -> None:
        """See Hedgeable."""
        await end_opened(made, type(error), error, error.__traceback__)
        if record.usage is not None:
            record.note_unanswered(record.usage)
            record.usage = None


async def end_opened(
    opened: Opened[P, S],
    kind: type[BaseException] | None,
    error: BaseException | None,
    traceback: TracebackType | None,
) -> None:
    """End an attempt whose response has begun: with its whole response, or with an error."""
    _, _, running, answer = opened
    try:
        await answer.__aexit__(kind, error, traceback)
    except BaseException as failed:
        running.__exit__(type(failed), failed, failed.__traceback__)
        raise
    running.__exit__(kind, error, traceback)


class OpenedAttempt(Generic[P, S]):
    """See Dispatcher.opened."""

    __slots__ = ("_attempts", "_context", "_hedges", "_opened", "_planned", "_prepare")

    def __init__(
        self,
        context: RetryContext,
        planned: PlannedRequest[ClientRequest],
        prepare: Prepare[P],
        attempts: OpenedAttempts[P, S],
        hedges: Hedges[P, Opened[P, S]] | None = None,
    ) -> None:
        self._context = context
        self._planned = planned
        self._prepare = prepare
        self._attempts = attempts
        self._hedges = hedges
        self._opened: Opened[P, S] | None = None

    async def __aenter__(self) -> tuple[P, S]:
        opened = self._opened = await first_success(
            self._context, self._planned, self._prepare, self._attempts, self._hedges
        )
        # No attempt follows, and a stream may last for minutes.
        del self._prepare, self._attempts
        return opened[0], opened[1]

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Coroutine[object, object, None]:
        # Not a coroutine that awaits another, which would cost each stream 0.3 us.
        if self._opened is None:
            raise RuntimeError("an attempt that has not been opened")
        return end_opened(self._opened, kind, error, traceback)
