"""The built-in rules by which deployments are judged and called again, as one value."""

from dataclasses import dataclass, field

from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.concurrency_limit import ConcurrencyRules
from proxy.dispatch.retry_rules import RetryRules


@dataclass(frozen=True, slots=True)
class DeploymentRules:
    """The rules for the circuit breakers, the queues and the retries of all deployments."""

    health: HealthRules = field(default_factory=HealthRules)
    queue: ConcurrencyRules = field(default_factory=ConcurrencyRules)
    retries: RetryRules = field(default_factory=RetryRules)
