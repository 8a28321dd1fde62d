"""One attempt at a deployment: its place, its account in the record, and what its end says of the deployment.

Never reads an answer, and never writes to the client; a stream is handed over at its first content, the commit point.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import replace
from typing import TypeVar

from pydantic import SecretStr

from providers.completion import Completion
from providers.dialect import Target
from providers.failure import Failure, FailureKind, UpstreamError
from providers.shape import Prepared
from providers.unified import UnifiedRequest
from proxy.attempts import Attempts, Job, Shared
from proxy.bulkhead import Bulkhead
from proxy.caller import Caller
from proxy.concurrency_limit import has_too_much
from proxy.deadlines import DeadlinePassed, Phase
from proxy.deployments import Deployments, Rules
from proxy.errors import GatewayError
from proxy.health import Answer, Try
from proxy.last_failures import LastFailures, summary
from proxy.load import LiveLoad
from proxy.metrics import Metrics
from proxy.mock_transport import SCHEME
from proxy.off_loop import OffLoop
from proxy.record import Attempt
from proxy.retries import RetryBudgets
from proxy.snapshot import Snapshot
from proxy.streams import Stream
from proxy.turns import Turn
from proxy.upstream import Transport

T = TypeVar("T")


Secrets = Callable[[Target], Sequence[SecretStr]]
"""What calls of a target have carried lately besides its own credential."""


class Dispatcher:
    """Has targets asked, one after the other where one fails, and keeps their account in the request's record."""

    def __init__(
        self,
        http: Transport,
        metrics: Metrics,
        off_loop: OffLoop,
        rules: Rules | None = None,
        draw: Callable[[], float] | None = None,
        secrets: Secrets = lambda target: (),
    ) -> None:
        rules = rules or Rules()
        self.clock = asyncio.get_running_loop().time
        self.draw = draw or random.Random().random  # noqa: S311 - spreads load, guards nothing
        self.deployments = Deployments(rules, self.draw)
        self.load = LiveLoad(self.deployments.healths, self.draw)
        self.metrics = metrics
        self.budgets = RetryBudgets(rules.retries)
        self.last_failures = LastFailures(time.time)
        self.log = logging.getLogger("dragoman")
        self.off_loop = off_loop
        self._caller = Caller(http, off_loop)
        self._secrets = secrets
        self._shared = Shared(
            *(self.clock, self.draw, self.deployments.healths, self.budgets, rules.retries, metrics, off_loop)
        )
        metrics.watch(lambda: self.deployments.healths.states(self.clock()))
        metrics.watch_limits(lambda: self.deployments.limited(self.clock()))

    def keep(self, snapshot: Snapshot) -> None:
        """A new table is in force: forget what it does not have."""
        self.deployments.keep(snapshot.targets())
        self.last_failures.keep(target.label for target in snapshot.targets())
        names = {*snapshot.models, *(f"{vendor}/*" for vendor in snapshot.wildcards), *snapshot.routes}
        names.update(*(team.routes for team in snapshot.teams.values()))
        self.budgets.keep(names, {"", *snapshot.teams})
        self.load.keep(names)

    async def whole(self, job: Job) -> tuple[Prepared, Completion]:
        """The answer of a request that is not streamed, and who gave it.

        Raises UpstreamError with the last failure, GatewayError when nobody may be asked.
        """

        async def ask(prepared: Prepared, turn: Turn) -> tuple[Prepared, Completion]:
            bulkhead = await self._place(prepared, job)
            with self._attempt(prepared, job, bulkhead, Answer.WHOLE), job.clock.trying(turn.limit):
                return prepared, await self._caller.whole(prepared, job.record, job.clock, turn.answer)

        return await Attempts(self._shared, job, ask).answer()

    @asynccontextmanager
    async def streamed(self, job: Job) -> AsyncIterator[tuple[Prepared, Stream]]:
        """The stream of a request, read up to its first content, and who gives it; closed on leaving. Raises the same.

        What breaks within the block has been committed, so nothing is tried again after it.
        """
        async with AsyncExitStack() as stack:

            async def ask(prepared: Prepared, turn: Turn) -> tuple[Prepared, Stream]:
                bulkhead = await self._place(prepared, job)
                async with AsyncExitStack() as opened:
                    trial = opened.enter_context(self._attempt(prepared, job, bulkhead, Answer.STREAM))
                    with job.clock.trying(turn.limit):
                        calls = self._caller.streamed(prepared, job.record, job.clock)
                        stream = await opened.enter_async_context(calls)
                    trial.first_byte(self.clock())
                    stack.push_async_exit(opened.pop_all())
                return prepared, stream

            yield await Attempts(self._shared, job, ask).answer()

    async def _place(self, prepared: Prepared, job: Job) -> Bulkhead:
        """A place at the deployment. Raises UpstreamError BUSY when there is none to be had."""
        bulkhead = self.deployments.bulkhead(prepared.target)
        try:
            await bulkhead.take(job.team.name)
        except UpstreamError as error:
            now = self.clock()
            failure = error.failure
            attempt = Attempt(prepared.target.label, now, now, failure.kind.value, None, failure.message)
            attempt.name = prepared.target.name
            job.record.attempts.append(attempt)
            raise
        return bulkhead

    @contextmanager
    def _attempt(self, prepared: Prepared, job: Job, bulkhead: Bulkhead, answer: Answer) -> Iterator[Try]:
        """One target's entry in the record, its place, and what its end says of its health, whatever that end is."""
        record, target = job.record, prepared.target
        attempt = Attempt(target.label, self.clock(), name=target.name)
        record.attempts.append(attempt)
        record.called, record.price, record.max_tokens = target.name, target.price, None
        record.emulated, record.dropped = prepared.emulated, prepared.dropped
        trial = self.deployments.healths.of(target).begin(attempt.started, answer, job.team.tenant)
        self.metrics.inflight(attempt.deployment, 1)
        try:
            yield trial
        except UpstreamError as error:
            error.failure = _unquoted(_attributed(error.failure, job.request), target, self._secrets)
            self._failed(target, attempt, trial, bulkhead, error.failure)
            raise
        except DeadlinePassed as late:
            # Of this try alone: being late is an upstream's failure like others.
            failure = Failure(FailureKind.TIMEOUT, late.message, ours=True)
            if job.impatient(late.phase, self.clock() - attempt.started, target):
                _note(attempt, failure)
                trial.outlasted(self.clock())
            else:
                self._failed(target, attempt, trial, bulkhead, failure)
            raise UpstreamError(failure) from None
        except (asyncio.CancelledError, ConnectionError):
            # The upstream's own connection errors have become UpstreamErrors: this one is the client's.
            passed = job.clock.passed
            if record.finished:
                # It had its whole answer, and left while the connection to the upstream was being tidied up.
                self._succeeded(trial, bulkhead)
            elif passed is None or passed.phase in (Phase.CLIENT, Phase.DRAIN):
                attempt.outcome = "cancelled"
            elif job.impatient(passed.phase, self.clock() - attempt.started, target):
                _note(attempt, Failure(FailureKind.TIMEOUT, passed.message))
                trial.outlasted(self.clock())
            else:
                failure = Failure(FailureKind.TIMEOUT, passed.message, ours=True)
                self._failed(target, attempt, trial, bulkhead, failure)
            raise
        except GatewayError:
            # What the client wants of the window cannot be kept there, which only this attempt could tell.
            attempt.outcome = FailureKind.INVALID_REQUEST.value
            raise
        else:
            self._succeeded(trial, bulkhead)
        finally:
            attempt.finished = self.clock()
            trial.abandoned(attempt.finished)
            bulkhead.release(job.team.name)
            self.metrics.inflight(attempt.deployment, -1)

    def _succeeded(self, trial: Try, bulkhead: Bulkhead) -> None:
        now = self.clock()
        trial.succeeded(now)
        bulkhead.limit.won(now)

    def _failed(self, target: Target, attempt: Attempt, trial: Try, bulkhead: Bulkhead, failure: Failure) -> None:
        now = self.clock()
        _note(attempt, failure)
        if target.base_url.startswith(SCHEME):
            return  # its failures are what it was asked for
        self.last_failures.note(target, failure)
        ejected = trial.failed(now, failure)
        health = self.deployments.healths.of(target)
        if has_too_much(failure, ejected) and not trial.disputed:
            lone = health.lone if ejected else None
            bulkhead.limit.lost(failure.kind, now, attempt.started, bulkhead.in_flight, lone)
        if ejected:
            wait = health.wait(now)
            self.log.warning("%s is left alone for %.1f s: %s", target.name, wait, summary(failure))


def _note(attempt: Attempt, failure: Failure) -> None:
    """Write a failure into the record of its attempt."""
    attempt.outcome, attempt.status, attempt.message = failure.kind.value, failure.status, failure.told
    attempt.maybe_executed, attempt.cause = failure.maybe_executed, failure.cause


def _attributed(failure: Failure, request: UnifiedRequest) -> Failure:
    """An answer that cannot be read is the request's doing where the client had members handed on unseen, which may
    change its form; not a page of whatever stands before the vendor."""
    unseen = request.extra_params or request.extra_headers or request.unknown
    if failure.kind is FailureKind.MALFORMED and unseen and not failure.evidence:
        return replace(failure, kind=FailureKind.NONCONFORMING)
    return failure


def _unquoted(failure: Failure, target: Target, secrets: Secrets) -> Failure:
    """The failure without what the vendor repeated of the operator's credential, for the client and for the log."""
    fetched = secrets(target)

    def conceal(text: str) -> str:
        return target.credential.conceal(text, fetched)

    code, param = (value and conceal(value) for value in (failure.code, failure.param))
    message, peer, evidence = conceal(failure.message), conceal(failure.peer), conceal(failure.evidence)
    return replace(failure, message=message, code=code, param=param, peer=peer, evidence=evidence)
