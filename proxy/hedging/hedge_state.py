"""The limits of second attempts in one process. They are a share of each team's requests, an amount of USD per hour for
each name, and a stop while at least half of a name's deployments are late. The state survives a reload of the
configuration, as the state of deployments does. Pure: `now` is in seconds of the event loop's clock."""

from collections import deque
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.bounded_dict import BoundedDict
from proxy.hedging.hedge_rules import HedgeRules

Identity: TypeAlias = tuple[str, str, str]
"""The identity of a deployment, as in `providers.target.Target`."""

NEWEST_WEIGHT: Final = 0.1
"""The weight of the newest request in the share of late requests. About the last twenty requests count."""

LATE_FROM: Final = 0.3
LATE_UNTIL: Final = 0.1
"""A deployment becomes late above the share LATE_FROM of late requests, and stops being late below LATE_UNTIL. Normally
fewer than one request in twenty is late. Four late requests in a row are an outage rather than a few stalls."""

MAX_DEPLOYMENTS: Final = 4096
"""The maximum number of deployments whose share is stored. It is bounded because clients choose the names under
`vendor/*`."""

_HOUR: Final = 3600.0
_MINUTE: Final = 60.0


@dataclass(slots=True, eq=False)
class HedgeBucket:
    """A token bucket that requests fill and second attempts drain. It starts full."""

    _tokens: float | None = None

    def count(self, rules: HedgeRules) -> None:
        """Count a request."""
        tokens = self._tokens
        if tokens is not None:
            tokens += rules.share
            self._tokens = tokens if tokens < rules.burst else rules.burst

    def has_one(self, rules: HedgeRules) -> bool:
        """Return whether a token is left."""
        return self._left(rules) >= 1

    def take(self, rules: HedgeRules) -> None:
        """Take a token. The caller has checked `has_one`."""
        self._tokens = self._left(rules) - 1

    def _left(self, rules: HedgeRules) -> float:
        return rules.burst if self._tokens is None else min(self._tokens, rules.burst)


@dataclass(slots=True, eq=False)
class HourlySpending:
    """The USD spent in the last hour, by minute. `reserved` is the sum that running attempts may add."""

    reserved: float = 0.0
    _minutes: deque[tuple[float, float]] = field(default_factory=deque)

    def spent(self, now: float) -> float:
        """Return the USD spent in the last hour, to the minute."""
        minutes = self._minutes
        while minutes and minutes[0][0] <= now - _HOUR:
            minutes.popleft()
        return sum([usd for _, usd in minutes])

    def reserve(self, usd: float, most: float, now: float) -> bool:
        """Reserve the USD that an attempt may cost. Return `True` if the limit per hour (`most`) permits it, else
        reserve nothing. `settle` ends the reservation."""
        if usd > 0 and self.spent(now) + self.reserved + usd > most:
            return False
        self.reserved += usd
        return True

    def settle(self, reserved: float, used: float, now: float) -> None:
        """Replace a reservation by the USD that were spent."""
        self.reserved = max(0.0, self.reserved - reserved)
        if used <= 0:
            return
        minutes = self._minutes
        if minutes and now < minutes[-1][0] + _MINUTE:
            began, usd = minutes[-1]
            minutes[-1] = began, usd + used
        else:
            minutes.append((now, used))


@dataclass(slots=True, eq=False)
class LateShare:
    """The decayed share of late requests among a deployment's requests."""

    share: float = 0.0
    is_late: bool = False

    def note(self, late: float) -> None:
        """Count a request: `late` is 1 if it was late, else 0."""
        self.share += NEWEST_WEIGHT * (late - self.share)
        self.is_late = self.share > (LATE_UNTIL if self.is_late else LATE_FROM)


@dataclass(slots=True, eq=False)
class HedgeStates:
    """The limits of all names. Names are labels of the configuration; teams are `Team.tenant`."""

    _buckets: dict[tuple[str, str], HedgeBucket] = field(default_factory=dict)
    _spending: dict[str, HourlySpending] = field(default_factory=dict)
    _late: BoundedDict[Identity, LateShare] = field(default_factory=lambda: BoundedDict(MAX_DEPLOYMENTS))

    def bucket(self, name: str, tenant: str) -> HedgeBucket:
        """Return the bucket of a team's requests for a name."""
        bucket = self._buckets.get((name, tenant))
        if bucket is None:
            bucket = self._buckets[name, tenant] = HedgeBucket()
        return bucket

    def spending(self, name: str) -> HourlySpending:
        """Return the amount spent on a name's cancelled calls."""
        spending = self._spending.get(name)
        if spending is None:
            spending = self._spending[name] = HourlySpending()
        return spending

    def note(self, deployment: Identity, *, late: bool) -> None:
        """Record whether a request was late at a deployment. A request is late if it has no content at the time when a
        second attempt might begin."""
        found = self._late.get(deployment)
        if found is None:
            if not late:
                return  # the usual case
            found = self._late[deployment] = LateShare()
        found.note(1.0 if late else 0.0)

    def closed(self, deployments: Iterable[Identity]) -> bool:
        """Return whether at least half of these deployments are late."""
        late = [found is not None and found.is_late for found in map(self._late.get, deployments)]
        return 2 * sum(late) >= len(late)

    def keep(self, names: Set[str], tenants: Set[str]) -> None:
        """Forget the names and teams that are not in a new configuration."""
        self._buckets = {pair: each for pair, each in self._buckets.items() if pair[0] in names and pair[1] in tenants}
        self._spending = {name: each for name, each in self._spending.items() if name in names}
