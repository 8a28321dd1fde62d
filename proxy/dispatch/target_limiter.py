"""Enforces the limits and budgets that the operator set for vendors, models and deployments: a deployment at a limit is
skipped before it is called."""

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from providers.failure import Failure, UpstreamError
from providers.target import Target
from proxy.limits.limit import Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import Snapshot
from proxy.teams.limit_errors import refusing_limit, target_limited
from proxy.telemetry.observer_guard import ObserverGuard


@dataclass(slots=True, eq=False)
class TargetLimiter:
    """The limits of the deployments of a configuration. `now` returns the event loop's time in seconds, `wall` unix
    seconds, `draw` a random number from 0 to 1. Periods are reported in the configuration's time `zone`."""

    registry: LimitRegistry
    now: Callable[[], float]
    wall: Callable[[], float]
    guard: ObserverGuard
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The scopes with limits, by the label of the target; empty if no deployment has any."""
    priced: frozenset[str] = frozenset()
    """The labels of targets with a budget in USD."""
    zone: tzinfo = UTC
    draw: Callable[[], float] = random.random

    def use(self, snapshot: Snapshot) -> None:
        """Apply a configuration's limits."""
        self.zone = snapshot.zone
        self.scopes = {
            label: tuple(scope for scope, _ in limits) for label, limits in snapshot.target_limits.items() if limits
        }
        of_usd = {scope for scope, every in snapshot.budgets.items() if any(each.unit is Unit.USD for each in every)}
        self.priced = frozenset(label for label, scopes in self.scopes.items() if not of_usd.isdisjoint(scopes))

    async def hold(self, target: Target, record: RequestRecord) -> None:
        """Reserve the need of one call in the limits of a target, until the request or another call ends it. Raises
        UpstreamError if the target is at a limit; this does not count as an attempt. The reservation of an earlier call
        of the request is given back first."""
        held = record.held
        if held is None:
            return
        self.guard.call("limits", record.request_id, held.leave_target)
        scopes = self.scopes.get(target.label)
        if scopes is None:
            return
        cost = held.cost_at(target.price) if target.label in self.priced else 0
        outcome = self.registry.try_target(scopes, held.tokens, cost, self.now(), self.wall())
        if outcome is None:
            outcome = await self.registry.target_waiting(scopes, held.tokens, cost)
        if isinstance(outcome, Reservation):
            held.hold_target(outcome)
            return
        failure = target_limited(outcome, self.zone, self.draw)
        if held.soonest is None or _wait(failure) < _wait(held.soonest):
            held.soonest, record.limit = failure, refusing_limit(outcome)
        raise UpstreamError(held.soonest)

    def hold_at_once(self, target: Target, record: RequestRecord) -> tuple[bool, Reservation | None]:
        """Reserve one more call of a request in the limits of a target, beside the reservation of its first call.
        Return whether all limits had room at once, and the reservation (`None` if nothing limits the target), which the
        caller settles."""
        held, scopes = record.held, self.scopes.get(target.label)
        if held is None or scopes is None:
            return True, None
        cost = held.cost_at(target.price) if target.label in self.priced else 0
        outcome = self.registry.try_target(scopes, held.tokens, cost, self.now(), self.wall())
        return (True, outcome) if isinstance(outcome, Reservation) else (False, None)


def _wait(failure: Failure) -> float:
    """Return the seconds until a deployment may be called again."""
    return math.inf if failure.retry_after is None else failure.retry_after
