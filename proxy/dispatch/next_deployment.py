"""The targets of one request that can still be called, each prepared when it is needed. Sends nothing."""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Generic, Protocol, TypeVar

from providers.emulation.split_into_calls import CallPlan, plan_calls, unsupported_field
from providers.failure import Refusal
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.deployment_health.breaker_registry import Breakers
from proxy.dispatch.plan_translated import plan_translated
from proxy.errors import cooling_down, field_refused, no_healthy_deployment
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.routing.resolve_model import Plan
from proxy.routing.snapshot import Team


def prepared_for(request: UnifiedRequest, target: Target, team: Team) -> CallPlan:
    """Return the calls of one target for a team, whose settings precede the deployment's. Raises Refusal."""
    on_unsupported = team.on_unsupported or target.on_unsupported
    behavior = team.context_behavior or target.context_behavior
    if request.losses is not None:
        return plan_translated(request.losses, request, target, on_unsupported, behavior, team.media)
    return plan_calls(request, target, on_unsupported, behavior, team.media)


class Prepared(Protocol):
    """What a request becomes on one target: a `CallPlan`, or `TaskCalls`."""

    @property
    def target(self) -> Target:
        """The target."""

    @property
    def emulated(self) -> tuple[str, ...]:
        """The fields that the gateway emulates."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields that are left out."""


P = TypeVar("P", bound=Prepared)

Prepare = Callable[[Target], Awaitable[P]]
"""Prepares the request for a target. Raises Refusal."""


async def prepared_off_loop(
    off_loop: OffLoop, request: UnifiedRequest, team: Team, record: RequestRecord, heavy: bool, target: Target
) -> CallPlan:
    """Return the calls of one target, with a check of its answers that has been compiled. Raises Refusal.

    `heavy` requests are prepared in a thread, since they are large.
    """
    if heavy:
        prepared = await off_loop.threads.run(record.owner, partial(prepared_for, request, target, team))
    else:
        prepared = prepared_for(request, target, team)
    for check in prepared.checks:
        if (problem := await off_loop.checks.problem(check, record.owner)) is not None:
            raise unsupported_field(target, check.field, problem)
    return prepared


def _without_traceback(refusal: Refusal) -> Refusal:
    """Return the refusal without its traceback, which holds the frame that keeps it: a cycle with the whole request in
    it, which would wait for the garbage collector."""
    return refusal.with_traceback(None)


class Candidates(Generic[P]):
    """The targets of a plan that have not been called. `tenant` is that of `Team.tenant`."""

    __slots__ = ("_breakers", "_left", "_prepare", "_tenant")

    def __init__(self, breakers: Breakers, tenant: str, prepare: Prepare[P]) -> None:
        self._breakers = breakers
        self._tenant = tenant
        self._prepare = prepare
        self._left: deque[Target] = deque()

    @property
    def more(self) -> bool:
        """Whether there may be another."""
        return bool(self._left)

    async def first(self, plan: Plan, now: float) -> P:
        """Return the best target that admits a request and can honour this one. Raises GatewayError without one."""
        order = self._breakers.arrange(plan.targets, now, self._tenant)
        self._left.extend(order.ready)
        first: Refusal | None = None
        while self._left:
            try:
                return await self._prepare(self._left.popleft())
            except Refusal as refusal:
                first = first or _without_traceback(refusal)
        blocked = [target for target in plan.targets if target not in order.ready]
        for target in blocked:
            try:
                await self._prepare(target)
            except Refusal as refusal:
                first = first or _without_traceback(refusal)
            else:
                wait = order.wait or min(self._breakers.of(each).wait(now) for each in blocked)
                why = self._breakers.of(target).why
                raise cooling_down(wait, why) if order.cooling else no_healthy_deployment(wait, why)
        if first is None:
            raise RuntimeError(f"the plan for {plan.asked!r} has no targets")
        raise field_refused(first)

    async def next(self, now: float) -> P | None:
        """Return the next target that admits a request now and can honour this one, or None."""
        while self._left:
            target = self._left.popleft()
            if not self._breakers.of(target).admits(now, self._tenant):
                continue
            try:
                return await self._prepare(target)
            except Refusal:
                # The client gets the failure that led here.
                continue
        return None

    def turn_to(self, targets: Sequence[Target]) -> None:
        """Continue with these targets instead of those that are left."""
        self._left = deque(targets)
