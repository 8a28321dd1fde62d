"""Answers planned requests: each attempt takes its place at a deployment, calls it, and gives the place back. A stream
is handed over at its first content, the commit point."""

import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

from providers.completion import Completion
from providers.emulation.split_into_calls import CallPlan
from providers.failure import UpstreamError
from providers.unified_request import UnifiedRequest
from proxy.deployment_health.circuit_breaker import AnswerKind
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.deployment_health.deployment_registry import Deployments
from proxy.deployment_health.last_failures import LastFailures
from proxy.dispatch.attempt_deadline import AttemptLimits
from proxy.dispatch.attempt_loop import Attempts, ClientRequest, PlannedRequest, RetryContext
from proxy.dispatch.deployment_rules import DeploymentRules
from proxy.dispatch.next_deployment import P, Prepare, Prepared, prepared_off_loop
from proxy.dispatch.running_attempt import AttemptReports, RunningAttempt, Secrets
from proxy.loop_clock import loop_clock
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import Attempt
from proxy.routing.deployment_load import LiveLoad
from proxy.routing.snapshot import Snapshot
from proxy.teams.team_states import TeamStates
from proxy.telemetry.metrics import Metrics
from proxy.upstream.call_vendor import UpstreamCaller
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import Transport
from proxy.upstream.vendor_stream import Stream

T = TypeVar("T")
S = TypeVar("S")


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
        self.teams = TeamStates()
        self.last_failures = LastFailures(time.time)
        self.log = logging.getLogger("dragoman")
        self.off_loop = off_loop
        self.calls = CallSender(http)
        self._caller = UpstreamCaller(self.calls, off_loop)
        self._context = RetryContext(
            *(self.now, self.draw, self.deployments.breakers, self.teams, rules.retries, metrics, off_loop)
        )
        self.reports = AttemptReports(self.now, self.deployments, metrics, self.last_failures, self.log, secrets)
        metrics.watch(lambda: self.deployments.breakers.states(self.now()))
        metrics.watch_limits(lambda: self.deployments.limited(self.now()))

    def keep(self, snapshot: Snapshot) -> None:
        """Forget what a new table does not have."""
        self.deployments.keep(snapshot.targets())
        self.last_failures.keep(target.label for target in snapshot.targets())
        names = {*snapshot.models, *(f"{vendor}/*" for vendor in snapshot.wildcards), *snapshot.routes}
        names.update(*(team.routes for team in snapshot.teams.values()))
        self.teams.keep({"", *snapshot.teams}, names)
        self.load.keep(names)

    def whole(self, planned: PlannedRequest[UnifiedRequest]) -> Awaitable[tuple[CallPlan, Completion]]:
        """Return the answer of a request that is not streamed, and the target's calls that gave it. Raises as `answer`
        does."""

        def read(prepared: CallPlan, limits: AttemptLimits) -> Awaitable[Completion]:
            return self._caller.whole(prepared, planned.record, planned.deadlines, limits.answer)

        return self.answer(planned, self._preparing(planned), read)

    async def answer(
        self,
        planned: PlannedRequest[ClientRequest],
        prepare: Prepare[P],
        read: Callable[[P, AttemptLimits], Awaitable[T]],
    ) -> tuple[P, T]:
        """Return what `read` reads of the first target that answers, and as what the request was prepared for it.

        Raises UpstreamError with the last failure, GatewayError when no target can be called.
        """

        async def make(prepared: P, limits: AttemptLimits) -> tuple[P, T]:
            queue = await self._place(prepared, planned)
            running = RunningAttempt(self.reports, prepared, planned, queue, AnswerKind.WHOLE)
            with running, planned.deadlines.attempt(limits.total):
                return prepared, await read(prepared, limits)

        return await Attempts(self._context, planned, prepare, make).answer()

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> "OpenedAttempt[CallPlan, Stream]":
        """Yield the stream of a request, read up to its first content, and the calls that give it; closed on leaving.
        Raises as `opened` does."""

        def begin(prepared: CallPlan) -> AbstractAsyncContextManager[Stream]:
            return self._caller.streamed(prepared, planned.record, planned.deadlines)

        return self.opened(planned, self._preparing(planned), begin)

    def opened(
        self,
        planned: PlannedRequest[ClientRequest],
        prepare: Prepare[P],
        begin: Callable[[P], AbstractAsyncContextManager[S]],
    ) -> "OpenedAttempt[P, S]":
        """Yield what `begin` yields on the first target that begins to answer, and as what the request was prepared for
        it; closed on leaving. Raises the same errors as `answer` before that.

        What fails within the block has been committed, so no attempt follows.
        """
        return OpenedAttempt(self._context, self.reports, planned, prepare, begin, self._place)

    def _preparing(self, planned: PlannedRequest[UnifiedRequest]) -> Prepare[CallPlan]:
        # Not a method: the attempts and their candidates would form a cycle, which waits for the garbage collector.
        return partial(
            prepared_off_loop, self.off_loop, planned.request, planned.team, planned.record.owner, planned.heavy
        )

    async def _place(self, prepared: Prepared, planned: PlannedRequest[ClientRequest]) -> DeploymentQueue:
        """Take a place at the deployment. Raises UpstreamError BUSY when there is none."""
        queue = self.deployments.queue(prepared.target)
        if queue.take_free(planned.team.name):
            return queue
        try:
            await queue.take(planned.team.name)
        except UpstreamError as error:
            now = self.now()
            failure = error.failure
            target, kind = prepared.target, failure.kind.value
            planned.record.attempts.append(
                Attempt(target.label, now, now, kind, None, failure.message, name=target.name)
            )
            raise
        return queue


@dataclass(slots=True, eq=False)
class OpenedAttempt(Generic[P, S]):
    """See Dispatcher.opened."""

    _context: RetryContext
    _reports: AttemptReports
    _planned: PlannedRequest[ClientRequest]
    _prepare: Prepare[P]
    _begin: Callable[[P], AbstractAsyncContextManager[S]]
    _place: Callable[[P, PlannedRequest[ClientRequest]], Awaitable[DeploymentQueue]]
    _running: RunningAttempt | None = None
    _answer: AbstractAsyncContextManager[S] | None = None

    async def __aenter__(self) -> tuple[P, S]:
        return await Attempts(self._context, self._planned, self._prepare, self._make).answer()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._running is None or self._answer is None:
            raise RuntimeError("an attempt that has not been opened")
        try:
            await self._answer.__aexit__(kind, error, traceback)
        except BaseException as failed:
            self._running.__exit__(type(failed), failed, failed.__traceback__)
            raise
        self._running.__exit__(kind, error, traceback)

    async def _make(self, prepared: P, limits: AttemptLimits) -> tuple[P, S]:
        queue = await self._place(prepared, self._planned)
        running = RunningAttempt(self._reports, prepared, self._planned, queue, AnswerKind.STREAM)
        running.__enter__()
        try:
            answer = self._begin(prepared)
            with self._planned.deadlines.attempt(limits.total):
                begun = await answer.__aenter__()
        except BaseException as error:
            running.__exit__(type(error), error, error.__traceback__)
            raise
        running.first_byte()
        self._running, self._answer = running, answer
        return prepared, begun
