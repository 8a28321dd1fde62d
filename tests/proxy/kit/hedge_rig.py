"""A dispatcher that makes second attempts, before deployments that behave as scripted, in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.pricing import Price
from providers.unified_request import UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.single_attempt import Dispatcher
from proxy.hedging.hedge_rules import HedgeRules
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.dispatch_rig import NO_FALLBACKS, Behaviour, Fallbacks, Rig, says

AFTER_ONE = HedgeRules(times=None, seconds=1.0)
"""A second attempt after a second."""

DOLLAR = Price(1_000_000.0, 1_000_000.0)
"""A USD for each token."""

Job = Exchange[UnifiedRequest]


def says_after(seconds: float, text: str) -> Behaviour:
    """Return a response whose content comes after this many seconds."""
    return says(text, seconds)


@dataclass
class HedgeRig(Rig):
    """A dispatch rig with the hedge rules of the name and one price of every deployment. `change` turns the rig's
    request into another one.
    """

    hedge: HedgeRules | None = AFTER_ONE
    price: Price | None = None
    change: Callable[[Job], Job] = lambda job: job
    stream: bool = True
    made: list[Dispatcher] = field(default_factory=list)

    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        request.note_written()
        return await super().open(request, request_id, repeats)

    @override
    def dispatcher(self) -> Dispatcher:
        self.made.append(super().dispatcher())
        return self.made[-1]

    @override
    def whole(self, total: float = 600.0, hurried: bool = False, fallbacks: Fallbacks = NO_FALLBACKS) -> str:
        self.stream = False
        return super().whole(total, hurried, fallbacks)

    @override
    def job(self, total: float = 600.0, hurried: bool = False, fallbacks: Fallbacks = NO_FALLBACKS) -> Job:
        job = super().job(total, hurried, fallbacks)
        targets = tuple(replace(target, price=self.price) for target in job.plan.targets)
        request = replace(job.request, stream=self.stream)
        plan = replace(job.plan, targets=targets, hedge=self.hedge)
        return self.change(replace(job, plan=plan, request=request))

    @property
    def attempts(self) -> list[tuple[str, str, bool, int]]:
        """Each attempt of the record: its deployment, its outcome, whether it is a second one, and its number."""
        return [
            (attempt.deployment.rpartition("/")[2], attempt.outcome, attempt.hedge, attempt.number)
            for attempt in self.record.attempts
        ]

    @property
    def spent(self) -> float:
        """The USD of cancelled calls. Nothing is reserved for any."""
        spending = self.made[-1].hedges.states.spending("v/m")
        assert spending.reserved == 0.0
        return spending.spent(0.0)
