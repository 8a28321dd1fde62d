"""When a deployment is left alone, and for how long: what is built in, and what its settings say instead.

Never the state of a deployment.
"""

from dataclasses import dataclass, replace

from providers.dialect import CircuitBreaker


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Every count, share and time (seconds) of the machine.

    `failures` in a row, or `window_share` of at least `window_least` tries within `window`, eject a deployment: for
    `cooldown`, twice as long each time up to `longest_cooldown`, all ± `jitter` of it, from the start again once it was
    well for `forgive`. `auth` is the ejection after a refused credential. A vendor that says wait is left alone for
    what it asks, between `asked_least` and `asked_most`, or for the first cooldown when it does not say how long;
    `quota` when the money is gone. Whichever way it was away, it gets one request, and after that one succeeded a share
    of them that rises from `slow_start_from` to 1 over `slow_start`.

    It hangs while more than `hanging_least` tries and `hanging_times` the usual number have no first byte, and the
    oldest is older than `hanging_age` and `hanging_slowness` times the usual wait's tail. `panic_every` is the time
    between two requests to a group of which no deployment may be asked. While it is half-open each team may have one
    request there, `probes_most` in all.
    """

    failures: int = 5
    window: float = 30.0
    window_least: int = 10
    window_share: float = 0.5
    cooldown: float = 5.0
    # No longer than the first: to find out costs one request, and a primary that is back is to be used.
    longest_cooldown: float = 5.0
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

    def asked(self, seconds: float | None) -> float:
        """For how long a vendor is left alone that asks for so many seconds, or does not say for how many."""
        if seconds is None:
            return min(self.cooldown, self.longest_cooldown)
        return min(max(seconds, self.asked_least), self.asked_most)

    def of(self, own: CircuitBreaker) -> "HealthRules":
        """These rules with a deployment's own settings instead.

        Failures among successes count as before beside those in a row: half of twice as many tries.
        """
        rules = self
        if own.failures is not None:
            rules = replace(rules, failures=own.failures, window_least=2 * own.failures)
        cooldown = self.cooldown if own.cooldown is None else own.cooldown
        longest = max(cooldown, self.longest_cooldown) if own.longest_cooldown is None else own.longest_cooldown
        return replace(rules, cooldown=cooldown, longest_cooldown=longest)
