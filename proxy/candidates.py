"""The targets of one request that are still to be asked, each made ready when its turn comes.

Never sends anything; what cannot honour the request is passed over, and what may not be asked now is left out.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from providers.dialect import Target
from providers.failure import Refusal
from providers.shape import Prepared, prepare, unsupported
from providers.unified import UnifiedRequest
from proxy.errors import cooling_down, no_healthy_deployment, refused
from proxy.healths import Healths
from proxy.off_loop import OffLoop
from proxy.routing import Plan
from proxy.snapshot import Team


def prepared_for(request: UnifiedRequest, target: Target, team: Team) -> Prepared:
    """The calls of one target, as the team wants them; its word goes before the deployment's. Raises Refusal."""
    on_unsupported = team.on_unsupported or target.on_unsupported
    behavior = team.context_behavior or target.context_behavior
    return prepare(request, target, on_unsupported, behavior, team.media)


Prepare = Callable[[Target], Awaitable[Prepared]]
"""Makes one request ready for a target. Raises Refusal."""


async def prepared_off_loop(
    off_loop: OffLoop, request: UnifiedRequest, team: Team, owner: str, heavy: bool, target: Target
) -> Prepared:
    """The calls of one target, whose answer can be held against what the client wants of it. Raises Refusal.

    `heavy` says that the request takes long to read, which is then done in a thread.
    """
    work = partial(prepared_for, request, target, team)
    prepared = await off_loop.threads.run(owner, work) if heavy else work()
    check = prepared.check
    if check is not None and (problem := await off_loop.checks.problem(check, owner)) is not None:
        raise unsupported(target, check.field, problem)
    return prepared


def _kept(refusal: Refusal) -> Refusal:
    """The refusal without its traceback, which would hold the frame that keeps it, and a request of megabytes with it:
    a cycle that waits for the collector."""
    return refusal.with_traceback(None)


class Candidates:
    """What is left of a plan. The first is asked whatever its turn took; the others only if they may be by then.

    `tenant` is that of `Team.tenant`.
    """

    __slots__ = ("_healths", "_left", "_prepare", "_tenant")

    def __init__(self, healths: Healths, tenant: str, prepare: Prepare) -> None:
        self._healths = healths
        self._tenant = tenant
        self._prepare = prepare
        self._left: deque[Target] = deque()

    @property
    def more(self) -> bool:
        """Whether there may be another."""
        return bool(self._left)

    async def first(self, plan: Plan, now: float) -> Prepared:
        """The best target that may be asked and can honour the request. Raises GatewayError when there is none."""
        arranged = self._healths.arrange(plan.targets, now, self._tenant)
        self._left.extend(arranged.ready)
        first: Refusal | None = None
        while self._left:
            try:
                return await self._prepare(self._left.popleft())
            except Refusal as refusal:
                first = first or _kept(refusal)
        away = [target for target in plan.targets if target not in arranged.ready]
        for target in away:
            try:
                await self._prepare(target)
            except Refusal as refusal:
                first = first or _kept(refusal)
            else:
                wait = arranged.wait or min(self._healths.of(each).wait(now) for each in away)
                why = self._healths.of(target).why
                raise cooling_down(wait, why) if arranged.cooling else no_healthy_deployment(wait, why)
        if first is None:
            raise RuntimeError(f"the plan for {plan.asked!r} has no targets")
        raise refused(first)

    async def next(self, now: float) -> Prepared | None:
        """The next that may be asked now and can honour the request; None when none is left."""
        while self._left:
            target = self._left.popleft()
            if not self._healths.of(target).admits(now, self._tenant):
                continue
            try:
                return await self._prepare(target)
            except Refusal:
                # It is passed over, as before: the client is told of the failure that led here.
                continue
        return None

    def turn_to(self, targets: Sequence[Target]) -> None:
        """Ask these instead of what is left."""
        self._left = deque(targets)
