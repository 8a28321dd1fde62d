"""What the process knows of each deployment: its health, and who has a place there.

Never the table's own words; what is known of a deployment outlives the table it was learned under.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from providers.dialect import Target
from proxy.bulkhead import Bulkhead, BulkheadRules
from proxy.health_rules import HealthRules
from proxy.healths import MOST, Healths, Identity, forget_one, kept
from proxy.retries import RetryRules


@dataclass(frozen=True, slots=True)
class Rules:
    """How deployments are judged, and how their failures are answered."""

    health: HealthRules = field(default_factory=HealthRules)
    bulkhead: BulkheadRules = field(default_factory=BulkheadRules)
    retries: RetryRules = field(default_factory=RetryRules)


class Deployments:
    """The live state of every deployment by identity."""

    __slots__ = ("_bulkheads", "_rules", "healths")

    def __init__(self, rules: Rules, draw: Callable[[], float]) -> None:
        self.healths = Healths(rules.health, draw)
        self._rules = rules.bulkhead
        self._bulkheads: dict[Identity, Bulkhead] = {}

    def bulkhead(self, target: Target) -> Bulkhead:
        """The places of a target's deployment."""
        bulkhead = self._bulkheads.get(target.identity)
        if bulkhead is None:
            bulkhead = self._bulkheads[target.identity] = Bulkhead(self._rules)
            if len(self._bulkheads) > MOST:
                forget_one(self._bulkheads)
        return bulkhead

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget deployments that a new table does not have. A request under way keeps what it holds."""
        those = list(targets)
        self.healths.keep(those)
        self._bulkheads = kept(self._bulkheads, those)
