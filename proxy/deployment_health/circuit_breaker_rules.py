"""The built-in rules of circuit breakers, and the settings of a deployment that replace them."""

from dataclasses import dataclass, replace
from typing import Final

from config.sections.failover_section import CircuitBreakerSection
from config.sections.section import built_in
from providers.target import CircuitBreaker

_FAILURES: Final = built_in(CircuitBreakerSection, "failures", int)


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Every count, share and time (seconds) of a circuit breaker.

    The breaker opens after `failures` failures in a row, or if `window_share` of at least `window_least` attempts
    within `window` failed. The first cooldown is `cooldown`, each further one is twice as long, up to
    `longest_cooldown`, and each varies by ± `jitter` of it. Once the breaker has been closed for `forgive`, the next
    cooldown has the first length again. `auth` is the cooldown after a refused credential or model. If a vendor
    requests a wait, the cooldown is that wait, but at least `requested_least` and at most `requested_most`. If it
    refuses a request without a wait, the cooldown has the first length. `quota` is the cooldown after a spent quota.
    After the cooldown the breaker is half-open: each team may have one request there, and all teams together
    `probes_most`. After a vendor's first byte for one of them, the deployment's share of requests rises from
    `slow_start_from` to 1 over `slow_start`.

    A deployment hangs while more than `hanging_least` attempts, and more than `hanging_times` the usual number, wait
    for a first byte, and the oldest has waited longer than `hanging_age` and longer than `hanging_slowness` times the
    95th percentile of the wait. `panic_every` is the time between two requests to a group in which no deployment admits
    a request.
    """

    failures: int = _FAILURES
    window: float = 30.0
    window_least: int = 2 * _FAILURES
    window_share: float = 0.5
    cooldown: float = built_in(CircuitBreakerSection, "cooldown", float)
    longest_cooldown: float = built_in(CircuitBreakerSection, "longest_cooldown", float)
    jitter: float = 0.2
    forgive: float = 60.0
    slow_start: float = 10.0
    slow_start_from: float = 0.1
    requested_least: float = 1.0
    requested_most: float = 60.0
    quota: float = 300.0
    auth: float = 60.0
    hanging_least: int = 16
    hanging_times: float = 3.0
    hanging_age: float = 5.0
    hanging_slowness: float = 4.0
    panic_every: float = 1.0
    probes_most: int = 4

    def cooldown_for(self, seconds: float | None) -> float:
        """Return the cooldown, in seconds, for a wait of `seconds` that a vendor requested (`None` if it requested no
        wait)."""
        if seconds is None:
            return min(self.cooldown, self.longest_cooldown)
        return min(max(seconds, self.requested_least), self.requested_most)

    def of(self, own: CircuitBreaker) -> "HealthRules":
        """Return these rules with a deployment's own settings. If it has its own `failures`, the breaker also opens
        when half of at least twice as many attempts within the window failed."""
        rules = self
        if own.failures is not None:
            rules = replace(rules, failures=own.failures, window_least=2 * own.failures)
        cooldown = self.cooldown if own.cooldown is None else own.cooldown
        longest = max(cooldown, self.longest_cooldown) if own.longest_cooldown is None else own.longest_cooldown
        return replace(rules, cooldown=cooldown, longest_cooldown=longest)
