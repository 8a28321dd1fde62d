"""The state of each deployment in this process: its circuit breaker and its queue. It outlives reloads of the
configuration."""

from collections.abc import Callable, Iterable, Iterator

from providers.target import Target
from proxy.bounded_dict import BoundedDict
from proxy.deployment_health.breaker_registry import Breakers, Identity, by_identity, keep_only
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules, Limited
from proxy.deployment_health.deployment_queue import DeploymentQueue


class Deployments:
    """The state of every deployment by identity."""

    __slots__ = ("_queues", "_rules", "breakers")

    def __init__(self, health: HealthRules, queues: ConcurrencyRules, draw: Callable[[], float]) -> None:
        self.breakers = Breakers(health, draw)
        self._rules = queues
        self._queues: BoundedDict[Identity, DeploymentQueue] = by_identity()

    def queue(self, target: Target) -> DeploymentQueue:
        """Return the queue of a target's deployment."""
        queue = self._queues.get(target.identity)
        if queue is None:
            queue = self._queues[target.identity] = DeploymentQueue(self._rules, target.concurrent)
        return queue

    def take_free(self, target: Target, team: str) -> DeploymentQueue | None:
        """Take a slot of a target's deployment for a team, and return the queue of the slot; `None` if no slot is
        free."""
        queue = self._queues.get(target.identity)
        if queue is None:
            queue = self.queue(target)
        return queue if queue.take_free(team) else None

    def limited(self, now: float) -> Iterator[tuple[str, Limited]]:
        """Yield the label and the limit of each deployment that has one; for an entry for any model, the lowest
        limit."""
        tightest: dict[str, Limited] = {}
        # This iterates over a copy, because metrics are rendered in another thread.
        for (label, _, _), queue in list(self._queues.items()):
            found = queue.limited(now)
            if found is not None and (label not in tightest or found.limit < tightest[label].limit):
                tightest[label] = found
        return iter(tightest.items())

    def keep(self, targets: Iterable[Target]) -> None:
        """Forget the deployments that a new configuration lacks, and set the limits of the others. A running request
        keeps its slot."""
        wanted = list(targets)
        self.breakers.keep(wanted)
        keep_only(self._queues, wanted)
        limits = {target.identity[:2]: target.concurrent for target in wanted}
        for identity, queue in self._queues.items():
            queue.bind(limits[identity[:2]])
