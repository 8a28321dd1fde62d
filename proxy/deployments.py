"""What the process knows of each deployment: its health, and who has a place there.

Never the table's own words; what is known of a deployment outlives the table it was learned under.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from providers.dialect import Target
from proxy.bulkhead import Bulkhead
from proxy.concurrency_limit import BulkheadRules, Limited
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
            bulkhead = self._bulkheads[target.identity] = Bulkhead(self._rules, target.concurrent)
            if len(self._bulkheads) > MOST:
                forget_one(self._bulkheads)
        return bulkhead

    def limited(self, now: float) -> Iterator[tuple[str, Limited]]:
        """The label of each deployment whose requests are limited; of a row for any model the tightest of them."""
        tightest: dict[str, Limited] = {}
        # Copied first: whoever renders metrics does so in a thread of its own.
        for (label, _, _), bulkhead in list(self._bulkheads.items()):
            found = bulkhead.limited(now)
            if found is not None and (label not in tightest or found.limit < tightest[label].limit):
                tightest[label] = found
        return iter(tightest.items())

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget deployments that a new table does not have, and let the bounds of the others be as it says. A request
        under way keeps what it holds."""
        those = list(targets)
        self.healths.keep(those)
        self._bulkheads = kept(self._bulkheads, those)
        bounds = {target.identity[:2]: target.concurrent for target in those}
        for identity, bulkhead in self._bulkheads.items():
            bulkhead.bind(bounds[identity[:2]])
