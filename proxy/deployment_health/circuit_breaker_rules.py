"""The built-in rules of circuit breakers, and what a deployment's settings replace."""

from dataclasses import dataclass, replace
from typing import Final

from config.sections.failover_section import CircuitBreakerSection
from config.sections.section import built_in
from providers.target import CircuitBreaker

_FAILURES: Final = built_in(CircuitBreakerSection, "failures", int)


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Every count, share and time (seconds) of a circuit breaker.

    `failures` in a row, or `window_share` of at least `window_least` attempts within `window`, open it: for `cooldown`,
    twice as long each time up to `longest_cooldown`, all ± `jitter` of it, from the start again once it was closed for
    `forgive`. `auth` is the cooldown after a refused credential or model. A vendor that says how long to wait gets
    between `asked_least` and `asked_most`, one that does not the first cooldown; `quota` applies when the quota is
    spent. After the cooldown it is half-open: each team may have one request there, `probes_most` in all. After one was
    answered its share of requests rises from `slow_start_from` to 1 over `slow_start`.

    A deployment hangs while more than `hanging_least` attempts and `hanging_times` the usual number have no first byte,
    and the oldest is older than `hanging_age` and `hanging_slowness` times the 95th percentile of the wait.
    `panic_every` is the time between two requests to a group of which no deployment admits any.
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
    asked_least: float = 1.0
    asked_most: float = 60.0
    quota: float = 300.0
    auth: float = 60.0
    hanging_least: int = 16
    hanging_times: float = 3.0
    hanging_age: float = 5.0
    hanging_slowness: float = 4.0
    panic_every: float = 1.0
    probes_most: int = 4

    def cooldown_for(self, seconds: float | None) -> float:
        """Return the cooldown, in seconds, of a vendor that asks for `seconds` (None: does not say)."""
        if seconds is None:
            return min(self.cooldown, self.longest_cooldown)
        return min(max(seconds, self.asked_least), self.asked_most)

    def of(self, own: CircuitBreaker) -> "HealthRules":
        """Return these rules with a deployment's own settings. With its own `failures`, half of twice as many attempts
        within the window open it as well."""
        rules = self
        if own.failures is not None:
            rules = replace(rules, failures=own.failures, window_least=2 * own.failures)
        cooldown = self.cooldown if own.cooldown is None else own.cooldown
        longest = max(cooldown, self.longest_cooldown) if own.longest_cooldown is None else own.longest_cooldown
        return replace(rules, cooldown=cooldown, longest_cooldown=longest)
