"""One attempt at a deployment: its place in the queue, its entry in the record, and what its end means for the
deployment. A stream is handed over at its first content, the commit point."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pydantic import SecretStr

from providers.completion import Completion
from providers.emulation.split_into_calls import CallPlan
from providers.failure import Failure, FailureKind, UpstreamError
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.deadlines import DeadlinePassed, Phase
from proxy.deployment_health.circuit_breaker import AnswerKind, TrackedAttempt
from proxy.deployment_health.concurrency_limit import has_too_much
from proxy.deployment_health.deployment_queue import DeploymentQueue
from proxy.deployment_health.deployment_registry import Deployments
from proxy.deployment_health.last_failures import LastFailures, summary
from proxy.dispatch.attempt_deadline import AttemptLimits
from proxy.dispatch.attempt_loop import Attempts, ClientRequest, PlannedRequest, RetryContext
from proxy.dispatch.deployment_rules import DeploymentRules
from proxy.dispatch.next_deployment import P, Prepare, Prepared, prepared_off_loop
from proxy.errors import GatewayError
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import Attempt
from proxy.routing.deployment_load import LiveLoad
from proxy.routing.snapshot import Snapshot
from proxy.teams.team_states import TeamStates
from proxy.telemetry.metrics import Metrics
from proxy.upstream.call_vendor import UpstreamCaller
from proxy.upstream.mock_transport import SCHEME
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import Transport
from proxy.upstream.vendor_stream import Stream

T = TypeVar("T")
S = TypeVar("S")

Secrets = Callable[[Target], Sequence[SecretStr]]
"""Returns what calls of a target have lately carried besides its own credential."""


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
        self.now = asyncio.get_running_loop().time
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
        self._secrets = secrets
        self._context = RetryContext(
            *(self.now, self.draw, self.deployments.breakers, self.teams, rules.retries, metrics, off_loop)
        )
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
            with self._attempt(prepared, planned, queue, AnswerKind.WHOLE), planned.deadlines.attempt(limits.total):
                return prepared, await read(prepared, limits)

        return await Attempts(self._context, planned, prepare, make).answer()

    def streamed(self, planned: PlannedRequest[UnifiedRequest]) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """Yield the stream of a request, read up to its first content, and the calls that give it; closed on leaving.
        Raises as `opened` does."""

        def begin(prepared: CallPlan) -> AbstractAsyncContextManager[Stream]:
            return self._caller.streamed(prepared, planned.record, planned.deadlines)

        return self.opened(planned, self._preparing(planned), begin)

    @asynccontextmanager
    async def opened(
        self,
        planned: PlannedRequest[ClientRequest],
        prepare: Prepare[P],
        begin: Callable[[P], AbstractAsyncContextManager[S]],
    ) -> AsyncIterator[tuple[P, S]]:
        """Yield what `begin` yields on the first target that begins to answer, and as what the request was prepared for
        it; closed on leaving. Raises the same errors as `answer` before that.

        What fails within the block has been committed, so no attempt follows.
        """
        async with AsyncExitStack() as stack:

            async def make(prepared: P, limits: AttemptLimits) -> tuple[P, S]:
                queue = await self._place(prepared, planned)
                async with AsyncExitStack() as opened:
                    tracked = opened.enter_context(self._attempt(prepared, planned, queue, AnswerKind.STREAM))
                    with planned.deadlines.attempt(limits.total):
                        begun = await opened.enter_async_context(begin(prepared))
                    tracked.first_byte(self.now())
                    stack.push_async_exit(opened.pop_all())
                return prepared, begun

            yield await Attempts(self._context, planned, prepare, make).answer()

    def _preparing(self, planned: PlannedRequest[UnifiedRequest]) -> Prepare[CallPlan]:
        # Not a method: the attempts and their candidates would form a cycle, which waits for the garbage collector.
        return partial(
            prepared_off_loop, self.off_loop, planned.request, planned.team, planned.record.owner, planned.heavy
        )

    async def _place(self, prepared: Prepared, planned: PlannedRequest[ClientRequest]) -> DeploymentQueue:
        """Take a place at the deployment. Raises UpstreamError BUSY when there is none."""
        queue = self.deployments.queue(prepared.target)
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

    @contextmanager
    def _attempt(
        self,
        prepared: Prepared,
        planned: PlannedRequest[ClientRequest],
        queue: DeploymentQueue,
        answer: AnswerKind,
    ) -> Iterator[TrackedAttempt]:
        """Record one attempt, and report its end, whatever it is, to the deployment's circuit breaker and limit."""
        record, target = planned.record, prepared.target
        attempt = Attempt(target.label, self.now(), name=target.name)
        record.attempts.append(attempt)
        record.called, record.price, record.max_tokens = target.name, target.price, None
        record.emulated, record.dropped = prepared.emulated, prepared.dropped
        tracked = self.deployments.breakers.of(target).begin(attempt.started, answer, planned.team.tenant)
        self.metrics.inflight(attempt.deployment, 1)
        try:
            yield tracked
        except UpstreamError as error:
            error.failure = _unquoted(_attributed(error.failure, planned), target, self._secrets)
            self._failed(target, attempt, tracked, queue, error.failure)
            raise
        except DeadlinePassed as late:
            # A limit of this attempt alone is a failure of the upstream like others.
            failure = Failure(FailureKind.TIMEOUT, late.message, ours=True)
            if planned.impatient(late.phase, self.now() - attempt.started, target):
                _note(attempt, failure)
                tracked.outlasted(self.now())
            else:
                self._failed(target, attempt, tracked, queue, failure)
            raise UpstreamError(failure) from None
        except (asyncio.CancelledError, ConnectionError):
            # The upstream's connection errors have become UpstreamErrors: this one is the client's.
            passed = planned.deadlines.passed
            if record.finished:
                # The client had its whole answer, and left while the rest of the upstream's was being read.
                self._succeeded(tracked, queue)
            elif passed is None or passed.phase in (Phase.CLIENT, Phase.DRAIN):
                attempt.outcome = "cancelled"
            elif planned.impatient(passed.phase, self.now() - attempt.started, target):
                _note(attempt, Failure(FailureKind.TIMEOUT, passed.message))
                tracked.outlasted(self.now())
            else:
                failure = Failure(FailureKind.TIMEOUT, passed.message, ours=True)
                self._failed(target, attempt, tracked, queue, failure)
            raise
        except GatewayError:
            # The client's demand on the context window cannot be met there, which only this attempt could tell.
            attempt.outcome = FailureKind.INVALID_REQUEST.value
            raise
        else:
            self._succeeded(tracked, queue)
        finally:
            attempt.finished = self.now()
            tracked.abandoned(attempt.finished)
            queue.release(planned.team.name)
            self.metrics.inflight(attempt.deployment, -1)

    def _succeeded(self, tracked: TrackedAttempt, queue: DeploymentQueue) -> None:
        now = self.now()
        tracked.succeeded(now)
        queue.limit.won(now)

    def _failed(
        self, target: Target, attempt: Attempt, tracked: TrackedAttempt, queue: DeploymentQueue, failure: Failure
    ) -> None:
        now = self.now()
        _note(attempt, failure)
        if target.base_url.startswith(SCHEME):
            return  # the mock fails where the request wants it to
        self.last_failures.note(target, failure)
        opened = tracked.failed(now, failure)
        breaker = self.deployments.breakers.of(target)
        if has_too_much(failure, opened) and not tracked.disputed:
            only_team = breaker.only_team if opened else None
            queue.limit.lost(failure.kind, now, attempt.started, queue.in_flight, only_team)
        if opened:
            wait = breaker.wait(now)
            self.log.warning("%s is left alone for %.1f s: %s", target.name, wait, summary(failure))


def _note(attempt: Attempt, failure: Failure) -> None:
    attempt.outcome, attempt.status, attempt.message = failure.kind.value, failure.status, failure.operator_message
    attempt.maybe_executed, attempt.cause = failure.maybe_executed, failure.cause


def _attributed(failure: Failure, planned: PlannedRequest[ClientRequest]) -> Failure:
    """Return the failure, blamed on the request where the client passed members through that may have changed the form
    of the answer; not where the answer is a web page."""
    if failure.kind is FailureKind.MALFORMED and planned.request.passes_members and not failure.evidence:
        return replace(failure, kind=FailureKind.NONCONFORMING)
    return failure


def _unquoted(failure: Failure, target: Target, secrets: Secrets) -> Failure:
    """Return the failure without the operator's credential, should the vendor have repeated it."""
    fetched = secrets(target)

    def conceal(text: str) -> str:
        return target.credential.conceal(text, fetched)

    code, param = (value and conceal(value) for value in (failure.code, failure.param))
    message, peer, evidence = conceal(failure.message), conceal(failure.peer), conceal(failure.evidence)
    return replace(failure, message=message, code=code, param=param, peer=peer, evidence=evidence)
