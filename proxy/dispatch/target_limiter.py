"""Holds calls to the limits that the operator wrote for vendors, models and deployments: a deployment that is at one is
passed over before it is asked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from providers.failure import Failure, FailureKind, UpstreamError
from providers.target import Target
from proxy.limits.limit_book import LimitBook
from proxy.limits.reservation import Reservation
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import Snapshot


@dataclass(slots=True, eq=False)
class TargetLimiter:
    """The limits of the deployments of a table. `now` returns seconds of the event loop, `wall` unix seconds."""

    book: LimitBook
    now: Callable[[], float]
    wall: Callable[[], float]
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Those with limits, by the label of the target; empty where no deployment has any."""

    def use(self, snapshot: Snapshot) -> None:
        """Put a table's limits in force."""
        self.scopes = {
            label: tuple(scope for scope, _ in limits) for label, limits in snapshot.target_limits.items() if limits
        }

    async def hold(self, target: Target, record: RequestRecord) -> None:
        """Take what one call needs from the limits of a target, until the request or another call ends it. Raises
        UpstreamError where it is at one, which is no attempt. What an earlier call of the request held is given back
        first."""
        held = record.held
        if held is None:
            return
        held.leave_target()
        scopes = self.scopes.get(target.label)
        if scopes is None:
            return
        outcome = self.book.try_target(scopes, held.tokens, self.now(), self.wall())
        if outcome == 0.0:
            outcome = await self.book.target_waiting(scopes, held.tokens)
        if isinstance(outcome, Reservation):
            held.hold_target(outcome)
            return
        held.soonest = min(held.soonest, outcome)
        message = f"'{target.name}' is at a limit that the gateway's operator has set."
        failure = Failure(FailureKind.RATE_LIMITED, message, retry_after=held.soonest, unsent=True, ours=True)
        raise UpstreamError(failure)
