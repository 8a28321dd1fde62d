"""The targets of one request that can still be called, each prepared when it is needed. Sends nothing."""

from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from types import CoroutineType
from typing import Any, Final, Generic, Protocol, TypeVar

import orjson

from providers.adaptation.carry_session import carry_session
from providers.emulation.check_tool_calls import has_strict_tools
from providers.emulation.plan_calls import CallPlan, plan_calls, unsupported_field
from providers.failure import Refusal
from providers.target import Target
from providers.unified_request import Params, UnifiedRequest
from proxy.deployment_health.breaker_registry import Breakers, Order
from proxy.dispatch.plan_translated import plan_translated
from proxy.errors import cooling_down, field_refused, no_healthy_deployment
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.snapshot import Team

_EFFORTS: Final = frozenset({"reasoning_effort", "thinking"})

_ENFORCING: Final = frozenset({"guided", "response_format", "tools"})
"""Fields with JSON Schemas that a response may have to match."""

LARGE_SCHEMAS: Final = 8192
"""The most bytes of enforced JSON Schemas, written as JSON, of a request that is prepared on the event loop: it takes
20 to 40 us to check one property and to adapt it to a vendor's subset."""


def prepared_for(request: UnifiedRequest, target: Target, team: Team, session: str | None = None) -> CallPlan:
    """Return the calls of one target for a team, whose settings override the deployment's. `session` is the digest of
    the conversation, which is sent if the vendor accepts it. Raises Refusal."""
    on_unsupported = team.on_unsupported or target.on_unsupported
    behavior = team.context_length_exceeded_behavior or target.context_length_exceeded_behavior
    losses = request.losses
    if losses is not None:
        prepared = plan_translated(losses, request, target, on_unsupported, behavior, team.media)
    else:
        prepared = plan_calls(request, target, on_unsupported, behavior, team.media)
    if (
        not _EFFORTS.isdisjoint(prepared.request.params)
        and not (prepared.calls and prepared.calls[0].sent.native)
        and (on_unsupported == "drop" or (losses is not None and not _EFFORTS.isdisjoint(losses.instead)))
    ):
        prepared = _with_yielding_effort(prepared)
    if session is None or target.profile.session is None:
        return prepared
    carrying = [replace(each, sent=carry_session(each.sent, session)) for each in prepared.calls]
    return replace(prepared, calls=tuple(carrying))


def _with_yielding_effort(prepared: CallPlan) -> CallPlan:
    """Return the prepared calls so that a call is repeated without its fields for effort if the vendor refuses them
    because the model does not reason."""
    names = _EFFORTS & prepared.request.params.keys()
    return replace(prepared, calls=tuple([replace(each, yielding=names) for each in prepared.calls]))


class Prepared(Protocol):
    """A request as prepared for one target: a `CallPlan`, `TaskCalls` or a `PassedCall`."""

    @property
    def target(self) -> Target:
        """The target."""

    @property
    def emulated(self) -> tuple[str, ...]:
        """The fields that the gateway emulates."""

    @property
    def dropped(self) -> tuple[str, ...]:
        """The fields that are left out."""

    @property
    def max_tokens(self) -> int | None:
        """The limit to which the client's `max_tokens` was lowered; `None` if it was not lowered."""


P = TypeVar("P", bound=Prepared)

Later = Coroutine[Any, Any, P]
"""An awaitable of a value. It is distinguished from a value by its class, CoroutineType, which type checkers do not
know here. A check for the abstract class would take 1 us."""

Prepare = Callable[[Target], P | Later[P]]
"""Prepares the request for a target: at once, or by an awaitable if it has to wait. Both raise Refusal. Most requests
wait for nothing, and a coroutine would cost them 1 us."""


def prepared_off_loop(
    off_loop: OffLoop, request: UnifiedRequest, team: Team, record: RequestRecord, heavy: bool, target: Target
) -> CallPlan | Later[CallPlan]:
    """Return the calls of one target, with the compiled check of its responses. Raises Refusal.

    `heavy` requests are prepared in a thread, since they are large; so are requests with large schemas.
    """
    params = request.params
    if heavy or (not _ENFORCING.isdisjoint(params) and _enforces_large_schemas(params)):
        return _prepared_in_thread(off_loop, request, team, record, target)
    prepared = prepared_for(request, target, team, record.session)
    return prepared if prepared.finishing is None else _checked(off_loop, prepared, record)


def _enforces_large_schemas(params: Params) -> bool:
    """Return whether the schemas that a response has to match have more than LARGE_SCHEMAS bytes."""
    held: list[object] = [each for each in (params.get("guided"), params.get("response_format")) if each is not None]
    if "tools" in params and has_strict_tools(params):
        held.append(params["tools"])
    return bool(held) and len(orjson.dumps(held)) > LARGE_SCHEMAS


async def _prepared_in_thread(
    off_loop: OffLoop, request: UnifiedRequest, team: Team, record: RequestRecord, target: Target
) -> CallPlan:
    prepared = await off_loop.threads.run(record.owner, partial(prepared_for, request, target, team, record.session))
    return await _checked(off_loop, prepared, record)


async def _checked(off_loop: OffLoop, prepared: CallPlan, record: RequestRecord) -> CallPlan:
    """Return the calls once the checks of their response have been compiled. Raises Refusal if one cannot be."""
    target = prepared.target
    for check in prepared.checks:
        if (problem := await off_loop.checks.problem(check, record.owner)) is not None:
            raise unsupported_field(target, check.field, problem)
    return prepared


def _without_traceback(refusal: Refusal) -> Refusal:
    """Return the refusal without its traceback. The traceback holds the frame that holds the refusal, a cycle that
    would keep the whole request until the garbage collector runs."""
    return refusal.with_traceback(None)


class Candidates(Generic[P]):
    """The targets of a plan that have not been called: `left`, best first. `tenant` is `Team.tenant` of the request's
    team."""

    __slots__ = ("_breakers", "_prepare", "_tenant", "left")

    def __init__(self, breakers: Breakers, tenant: str, prepare: Prepare[P]) -> None:
        self._breakers = breakers
        self._tenant = tenant
        self._prepare = prepare
        self.left: deque[Target] = deque()

    def first(self, plan: Plan, now: float, session: int | None = None) -> P | Later[P]:
        """Return the prepared call of the best target that admits a request of the conversation and can honour this
        request; an awaitable of it if preparing has to wait. Raises GatewayError if there is no such target."""
        order = self._breakers.arrange(plan.targets, now, self._tenant, session)
        self.left = deque(order.ready)
        refusal: Refusal | None = None
        if self.left:
            try:
                prepared = self._prepare(self.left.popleft())
            except Refusal as refused:
                refusal = _without_traceback(refused)
            else:
                if isinstance(prepared, CoroutineType):
                    return self._waited(prepared, plan, order, now)
                return prepared
        return self._first_of_others(plan, order, now, refusal)

    async def _waited(self, preparing: Later[P], plan: Plan, order: Order, now: float) -> P:
        try:
            return await preparing
        except Refusal as refused:
            refusal = _without_traceback(refused)
        return await self._first_of_others(plan, order, now, refusal)

    async def _first_of_others(self, plan: Plan, order: Order, now: float, first: Refusal | None) -> P:
        """Do as `first`, after `first` has refused the request, or if no target was tried."""
        while self.left:
            try:
                return await self._prepared(self.left.popleft())
            except Refusal as refusal:
                first = first or _without_traceback(refusal)
        blocked = [target for target in plan.targets if target not in order.ready]
        for target in blocked:
            try:
                await self._prepared(target)
            except Refusal as refusal:
                first = first or _without_traceback(refusal)
            else:
                breakers = [self._breakers.of(each) for each in blocked]
                why = self._breakers.of(target).why
                if order.cooling:
                    raise cooling_down(min(each.requested_wait(now) for each in breakers), why)
                raise no_healthy_deployment(order.wait or min(each.wait(now) for each in breakers), why)
        if first is None:
            raise RuntimeError(f"the plan for {plan.asked!r} has no targets")
        raise field_refused(first)

    async def next(self, now: float) -> P | None:
        """Return the prepared call of the next target that admits a request now and can honour this request; `None` if
        there is no such target."""
        while self.left:
            target = self.left.popleft()
            if not self._breakers.of(target).admits(now, self._tenant):
                continue
            try:
                return await self._prepared(target)
            except Refusal:
                # The client gets the failure of the previous attempt instead of this refusal.
                continue
        return None

    async def _prepared(self, target: Target) -> P:
        prepared = self._prepare(target)
        return await prepared if isinstance(prepared, CoroutineType) else prepared  # type: ignore[return-value]

    async def take(self, target: Target) -> P | None:
        """Return the prepared call of a target that is left. If it cannot honour the request, drop the target and
        return `None`."""
        try:
            return await self._prepared(target)
        except Refusal:
            self.drop(target)
            return None

    def drop(self, target: Target) -> None:
        """Leave out a target that has been called or cannot be called."""
        if target in self.left:
            self.left.remove(target)

    def turn_to(self, targets: Sequence[Target]) -> None:
        """Continue with these targets instead of the remaining ones."""
        self.left = deque(targets)
