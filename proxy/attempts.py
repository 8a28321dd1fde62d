"""The attempts of one request: which target comes next, whether it may be asked, and when. The only place that tries
again.

Never makes an attempt itself, and never reads an answer.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, NamedTuple, TypeVar

from providers.dialect import Target
from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.shape import Prepared
from providers.unified import UnifiedRequest
from proxy.candidates import Candidates, prepared_off_loop
from proxy.deadlines import Deadlines, Phase
from proxy.health import Health
from proxy.healths import Healths
from proxy.metrics import Metrics
from proxy.off_loop import OffLoop
from proxy.record import RequestRecord
from proxy.retries import (
    RetryBudgets,
    RetryRules,
    is_free,
    least_useful,
    may_repeat,
    retried,
    wait_for_other,
    wait_for_same,
)
from proxy.routing import Plan
from proxy.snapshot import Team
from proxy.turns import Turn, turn

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


class Shared(NamedTuple):
    """What the attempts of all requests have in common. `clock` gives seconds of the event loop, `draw` a number from
    0 to 1."""

    clock: Callable[[], float]
    draw: Callable[[], float]
    healths: Healths
    budgets: RetryBudgets
    rules: RetryRules
    metrics: Metrics
    off_loop: OffLoop


class Attempts(Generic[T]):
    """The first attempt of a request, and those that follow a failure. `ask` makes one."""

    __slots__ = (
        "_ask",
        "_budget",
        "_candidates",
        "_failure",
        "_first",
        "_hopped",
        "_job",
        "_most",
        "_next",
        "_paid",
        "_repeats",
        "_same",
        "_shared",
        "_turned",
    )

    def __init__(self, shared: Shared, job: Job, ask: Callable[[Prepared, Turn], Awaitable[T]]) -> None:
        self._shared = shared
        self._job = job
        self._ask = ask
        # Not a method of this object, which keeps the candidates: they would hold each other until the collector comes.
        prepare = partial(prepared_off_loop, shared.off_loop, job.request, job.team, job.record.owner, job.heavy)
        self._candidates = Candidates(shared.healths, job.team.tenant, prepare)
        self._first: UpstreamError | None = None
        self._paid = 0
        self._hopped = False
        self._repeats = False
        self._same = 0
        self._turned: tuple[FailureKind, ...] = ()

    async def answer(self) -> T:
        """What the first that answers gives. Raises UpstreamError with the last failure."""
        shared, job = self._shared, self._job
        now = shared.clock()
        shared.budgets.arrived(job.plan.label, job.team.tenant, now)
        self._next = await self._candidates.first(job.plan, now)
        retries = self._next.target.retries
        self._most, self._budget = retries.attempts, retries.budget
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
        while not self._health(self._next.target).admits(now := self._shared.clock(), self._job.team.tenant):
            following = await self._candidates.next(now)
            if following is None:
                raise UpstreamError(self._failure)
            self._next = following
        return await self._try()

    def _try(self) -> Awaitable[T]:
        prepared, job = self._next, self._job
        target = prepared.target
        another = self._candidates.more and self._paid + 1 < self._most and target.retries.safety == "safe"
        return self._ask(prepared, turn(target.timeouts, job.total, job.clock.remaining, another, self._shared.rules))

    async def _pause(self, seconds: float) -> None:
        self._job.record.waited += seconds
        await asyncio.sleep(seconds)

    async def _decide(self, failure: Failure) -> float | None:
        """Seconds until the next attempt, which is chosen here; None when this failure is the answer."""
        shared, job, failed = self._shared, self._job, self._next
        self._failure = failure
        free = is_free(failure)
        self._paid += not free
        if self._paid >= self._most or not may_repeat(failure, failed.target.retries.safety):
            return None
        wait = self._here_first(failure, free)
        if wait is not None:
            return wait
        wait = await self._elsewhere(failure)
        if wait is None:
            wait = self._here(failure)
        if wait is None or not self._worth_it(wait):
            return None
        if not free and not self._first_hop(failed) and not self._affordable():
            shared.metrics.retry_denied(job.record.model)
            return None
        if self._next is not failed:
            self._same = 0
            self._hopped = self._hopped or not free
            shared.metrics.fallback(job.record.model, failure.kind.value)
        return wait

    def _first_hop(self, failed: Prepared) -> bool:
        """Whether this goes to another target for the first time, and to one of which nothing bad is known: that is
        what targets are listed for. Where all of them fail, that is known."""
        if self._hopped or self._next is failed:
            return False
        return self._health(self._next.target).well(self._shared.clock(), self._job.team.tenant)

    def _affordable(self) -> bool:
        """Pay for another attempt, if the budget of the name holds out."""
        shared, job = self._shared, self._job
        return shared.budgets.spend(job.plan.label, job.team.tenant, shared.clock(), self._budget)

    async def _elsewhere(self, failure: Failure) -> float | None:
        """Choose another target, after what the route says for a failure of this kind."""
        kind = failure.kind
        fallbacks = self._job.plan.fallbacks.get(kind)
        if fallbacks and kind not in self._turned:
            self._turned = (*self._turned, kind)
            self._candidates.turn_to(fallbacks)
        elif not VERDICTS[kind].try_next:
            return None
        shared = self._shared
        prepared = await self._candidates.next(shared.clock())
        if prepared is None:
            return None
        self._next = prepared
        return wait_for_other(failure, shared.rules, shared.draw)

    def _worth_it(self, wait: float) -> bool:
        """Whether an attempt after `wait` seconds has the time that it needs."""
        job, usual = self._job, self._health(self._next.target).first_byte
        return job.clock.remaining - wait >= least_useful(usual, job.total, self._shared.rules)

    def _here_first(self, failure: Failure, free: bool) -> float | None:
        """Choose the same target again before another, as often as it is written, where it may be asked at once or said
        itself when, and pay for that: nobody waits for it to be well while another is, which gets the last attempt."""
        shared, target = self._shared, self._next.target
        last = self._candidates.more and self._paid + 1 >= self._most
        if last or self._same >= target.retries.same_deployment:
            return None
        now, health = shared.clock(), self._health(target)
        if failure.retry_after is None and not health.admits(now, self._job.team.tenant):
            return None
        wait = wait_for_same(failure, health.wait(now), shared.rules, shared.draw)
        if wait is None or not self._worth_it(wait) or not (free or self._affordable()):
            return None
        self._same += 1
        return wait

    def _here(self, failure: Failure) -> float | None:
        """Choose the same target again, where there is no other: once, and of several only one that said when."""
        shared, target = self._shared, self._next.target
        alone = len(self._job.plan.targets) == 1
        if self._repeats or self._same or not (alone or failure.kind is FailureKind.RATE_LIMITED):
            return None
        self._repeats = True
        return wait_for_same(failure, self._health(target).wait(shared.clock()), shared.rules, shared.draw)

    def _health(self, target: Target) -> Health:
        return self._shared.healths.of(target)
