"""From a plan to an answer: who is asked, and what becomes of a failure. The only place that may try again.

Never reads an answer, and never writes to the client; a stream is handed over at its first content, the commit point.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Generic, TypeVar

from pydantic import SecretStr

from providers.completion import Completion
from providers.dialect import Target
from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.shape import Prepared
from providers.unified import UnifiedRequest
from proxy.bulkhead import Bulkhead
from proxy.caller import Caller
from proxy.candidates import Candidates, prepared_off_loop
from proxy.concurrency_limit import has_too_much
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.deployments import Deployments, Rules
from proxy.errors import GatewayError
from proxy.health import Answer, Health, Try
from proxy.load import LiveLoad
from proxy.metrics import Metrics
from proxy.mock_transport import SCHEME
from proxy.off_loop import OffLoop
from proxy.record import Attempt, RequestRecord
from proxy.retries import RetryBudgets, is_free, least_useful, may_repeat, retried, wait_for_other, wait_for_same
from proxy.routing import Plan
from proxy.snapshot import Snapshot, Team
from proxy.streams import Stream
from proxy.upstream import Transport

T = TypeVar("T")

_SHORTENED = frozenset({Phase.TOTAL, Phase.TRY})
"""Limits that follow the client's wish where that is less than the operator's."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """One request on its way to an answer. `total` is its whole deadline in seconds, under which `clock` runs;
    `hurried` says that the client made it shorter than the operator would have it, `heavy` that it takes so long to
    read that this is done in a thread."""

    plan: Plan
    team: Team
    request: UnifiedRequest
    record: RequestRecord
    clock: Deadlines
    total: float
    hurried: bool = False
    heavy: bool = False

    def impatient(self, phase: Phase, elapsed: float, target: Target) -> bool:
        """Whether a try that ended after `elapsed` seconds did so for the client's patience alone: by a limit that the
        client shortened, before the operator's own for one try was over. That says nothing of the deployment."""
        return self.hurried and phase in _SHORTENED and elapsed < target.timeouts.total


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
        self.rules = rules.retries
        self.budgets = RetryBudgets(self.rules, self.clock())
        self.log = logging.getLogger("dragoman")
        self.off_loop = off_loop
        self._caller = Caller(http, off_loop)
        self._secrets = secrets
        metrics.watch(lambda: self.deployments.healths.states(self.clock()))
        metrics.watch_limits(lambda: self.deployments.limited(self.clock()))

    def keep(self, snapshot: Snapshot) -> None:
        """A new table is in force: forget what it does not have."""
        self.deployments.keep(snapshot.targets())
        names = {*snapshot.models, *(f"{vendor}/*" for vendor in snapshot.wildcards), *snapshot.routes}
        names.update(*(team.routes for team in snapshot.teams.values()))
        self.budgets.keep(names, {"", *snapshot.teams})
        self.load.keep(names)

    async def whole(self, job: Job) -> tuple[Prepared, Completion]:
        """The answer of a request that is not streamed, and who gave it.

        Raises UpstreamError with the last failure, GatewayError when nobody may be asked.
        """

        async def ask(prepared: Prepared, limit: float | None) -> tuple[Prepared, Completion]:
            bulkhead = await self._place(prepared, job)
            with self._attempt(prepared, job, bulkhead, Answer.WHOLE), job.clock.trying(limit):
                return prepared, await self._caller.whole(prepared, job.record, job.clock)

        return await Tries(self, job, ask).answer()

    @asynccontextmanager
    async def streamed(self, job: Job) -> AsyncIterator[tuple[Prepared, Stream]]:
        """The stream of a request, read up to its first content, and who gives it; closed on leaving. Raises the same.

        What breaks within the block has been committed, so nothing is tried again after it.
        """
        async with AsyncExitStack() as stack:

            async def ask(prepared: Prepared, limit: float | None) -> tuple[Prepared, Stream]:
                bulkhead = await self._place(prepared, job)
                async with AsyncExitStack() as opened:
                    trial = opened.enter_context(self._attempt(prepared, job, bulkhead, Answer.STREAM))
                    with job.clock.trying(limit):
                        calls = self._caller.streamed(prepared, job.record, job.clock)
                        stream = await opened.enter_async_context(calls)
                    trial.first_byte(self.clock())
                    stack.push_async_exit(opened.pop_all())
                return prepared, stream

            yield await Tries(self, job, ask).answer()

    async def _place(self, prepared: Prepared, job: Job) -> Bulkhead:
        """A place at the deployment. Raises UpstreamError BUSY when there is none to be had."""
        bulkhead = self.deployments.bulkhead(prepared.target)
        try:
            await bulkhead.take(job.team.name)
        except UpstreamError as error:
            now = self.clock()
            failure = error.failure
            attempt = Attempt(prepared.target.label, now, now, failure.kind.value, None, failure.message)
            job.record.attempts.append(attempt)
            raise
        return bulkhead

    @contextmanager
    def _attempt(self, prepared: Prepared, job: Job, bulkhead: Bulkhead, answer: Answer) -> Iterator[Try]:
        """One target's entry in the record, its place, and what its end says of its health, whatever that end is."""
        record, target = job.record, prepared.target
        attempt = Attempt(target.label, self.clock())
        record.attempts.append(attempt)
        record.price, record.max_tokens = target.price, None
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
            failure = Failure(FailureKind.TIMEOUT, late.message)
            if job.impatient(late.phase, self.clock() - attempt.started, target):
                _note(attempt, failure)
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
            else:
                self._failed(target, attempt, trial, bulkhead, Failure(FailureKind.TIMEOUT, passed.message))
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
        ejected = trial.failed(now, failure)
        health = self.deployments.healths.of(target)
        if has_too_much(failure, ejected) and not trial.disputed:
            lone = health.lone if ejected else None
            bulkhead.limit.lost(failure.kind, now, attempt.started, bulkhead.in_flight, lone)
        if ejected:
            wait = health.wait(now)
            self.log.warning("%s is left alone for %.1f s: %s", attempt.deployment, wait, failure.kind.value)


def _note(attempt: Attempt, failure: Failure) -> None:
    """Write a failure into the record of its attempt."""
    attempt.outcome, attempt.status, attempt.message = failure.kind.value, failure.status, failure.message
    attempt.maybe_executed = failure.maybe_executed
    if failure.evidence:
        attempt.message = f"{failure.message} It began: {failure.evidence}"


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
    message, evidence = conceal(failure.message), conceal(failure.evidence)
    return replace(failure, message=message, code=code, param=param, evidence=evidence)


class Tries(Generic[T]):
    """The attempts of one request: the first, and those that follow a failure."""

    __slots__ = (
        "_ask",
        "_candidates",
        "_dispatcher",
        "_failure",
        "_first",
        "_job",
        "_most",
        "_next",
        "_paid",
        "_repeats",
        "_turned",
    )

    def __init__(self, dispatcher: Dispatcher, job: Job, ask: Callable[[Prepared, float | None], Awaitable[T]]) -> None:
        self._dispatcher = dispatcher
        self._job = job
        self._ask = ask
        # Not a method of this object, which keeps the candidates: they would hold each other until the collector comes.
        prepare = partial(prepared_off_loop, dispatcher.off_loop, job.request, job.team, job.record.owner, job.heavy)
        self._candidates = Candidates(dispatcher.deployments.healths, job.team.tenant, prepare)
        self._first: UpstreamError | None = None
        self._paid = 0
        self._repeats = False
        self._turned: tuple[FailureKind, ...] = ()

    async def answer(self) -> T:
        """What the first that answers gives. Raises UpstreamError with the last failure."""
        dispatcher, job = self._dispatcher, self._job
        now = dispatcher.clock()
        dispatcher.budgets.arrived(job.plan.label, job.team.tenant, now)
        self._next = await self._candidates.first(job.plan, now)
        self._most = self._next.target.retries.attempts
        try:
            return await self._try()
        except UpstreamError as error:
            self._first = error
        return await retried(self._again, self._decide, self._pause)

    async def _again(self) -> T:
        """The next attempt; the one that has failed already, when the failure is first looked at."""
        first, self._first = self._first, None
        if first is not None:
            try:
                raise first
            finally:
                del first  # its traceback holds this frame
        # Others may have waited for the same moment, and one of them is finding out.
        while not self._health(self._next.target).admits(now := self._dispatcher.clock(), self._job.team.tenant):
            following = await self._candidates.next(now)
            if following is None:
                raise UpstreamError(self._failure)
            self._next = following
        return await self._try()

    def _try(self) -> Awaitable[T]:
        prepared, job = self._next, self._job
        longest = prepared.target.timeouts.total
        limit = None if longest >= job.total else longest
        if self._candidates.more:
            share = self._dispatcher.rules.share * job.clock.remaining
            limit = share if limit is None else min(limit, share)
        return self._ask(prepared, limit)

    async def _pause(self, seconds: float) -> None:
        self._job.record.waited += seconds
        await asyncio.sleep(seconds)

    async def _decide(self, failure: Failure) -> float | None:
        """Seconds until the next attempt, which is chosen here; None when this failure is the answer."""
        dispatcher, job, failed = self._dispatcher, self._job, self._next
        self._failure = failure
        free = is_free(failure)
        self._paid += not free
        if self._paid >= self._most or not may_repeat(failure, failed.target.retries.safety):
            return None
        wait = await self._elsewhere(failure)
        if wait is None:
            wait = self._here(failure)
        if wait is None:
            return None
        usual = self._health(self._next.target).first_byte
        if job.clock.remaining - wait < least_useful(usual, job.total, dispatcher.rules):
            return None
        if not free and not dispatcher.budgets.spend(job.plan.label, job.team.tenant, dispatcher.clock()):
            dispatcher.metrics.retry_denied(job.record.model)
            return None
        if self._next is not failed:
            dispatcher.metrics.fallback(job.record.model, failure.kind.value)
        return wait

    async def _elsewhere(self, failure: Failure) -> float | None:
        """Choose another target, after what the route says for a failure of this kind."""
        kind = failure.kind
        fallbacks = self._job.plan.fallbacks.get(kind)
        if fallbacks and kind not in self._turned:
            self._turned = (*self._turned, kind)
            self._candidates.turn_to(fallbacks)
        elif not VERDICTS[kind].try_next:
            return None
        dispatcher = self._dispatcher
        prepared = await self._candidates.next(dispatcher.clock())
        if prepared is None:
            return None
        self._next = prepared
        return wait_for_other(failure, dispatcher.rules, dispatcher.draw)

    def _here(self, failure: Failure) -> float | None:
        """Choose the same target again, where there is no other: once, and of several only one that said when."""
        dispatcher, target = self._dispatcher, self._next.target
        alone = len(self._job.plan.targets) == 1
        if self._repeats or not (alone or failure.kind is FailureKind.RATE_LIMITED):
            return None
        self._repeats = True
        return wait_for_same(failure, self._health(target).wait(dispatcher.clock()), dispatcher.rules, dispatcher.draw)

    def _health(self, target: Target) -> Health:
        return self._dispatcher.deployments.healths.of(target)
