"""The bounds of second attempts in one process: a share of each team's requests, USD per hour for each name, and a stop
while half of a name's deployments are late. The state outlives the configuration, as the state of deployments does.

Pure: `now` is seconds of the event loop.
"""

from collections import deque
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from proxy.bounded_dict import BoundedDict
from proxy.hedging.hedge_rules import HedgeRules

Identity: TypeAlias = tuple[str, str, str]
"""That of `providers.target.Target`."""

RECENT: Final = 0.1
"""The weight of the newest request in the share of late ones: about the last twenty count."""

LATE_FROM: Final = 0.3
LATE_UNTIL: Final = 0.1
"""The share of late requests above which a deployment is late, and the one below which it is as usual again. As usual
fewer than one request in twenty is late: four in a row are an outage, and not a few stalls."""

MOST_DEPLOYMENTS: Final = 4096
"""Deployments of which the share is kept: clients choose the names under `vendor/*`."""

_HOUR: Final = 3600.0
_SLOT: Final = 60.0


@dataclass(slots=True, eq=False)
class HedgeBucket:
    """A token bucket filled by requests: a second attempt takes one. It begins full."""

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
        """Take a token, which `has_one` has found."""
        self._tokens = self._left(rules) - 1

    def _left(self, rules: HedgeRules) -> float:
        return rules.burst if self._tokens is None else min(self._tokens, rules.burst)


@dataclass(slots=True, eq=False)
class HourlySpending:
    """The USD of the last hour, by minute. `reserved` are the USD that running attempts may add."""

    reserved: float = 0.0
    _minutes: deque[tuple[float, float]] = field(default_factory=deque)

    def spent(self, now: float) -> float:
        """Return the USD of the last hour, to the minute."""
        minutes = self._minutes
        while minutes and minutes[0][0] <= now - _HOUR:
            minutes.popleft()
        return sum([usd for _, usd in minutes])

    def reserve(self, usd: float, most: float, now: float) -> bool:
        """Reserve the USD that an attempt may cost, if the hour's limit has room for it; `settle` ends that."""
        if usd > 0 and self.spent(now) + self.reserved + usd > most:
            return False
        self.reserved += usd
        return True

    def settle(self, reserved: float, used: float, now: float) -> None:
        """Replace a reservation by the used USD."""
        self.reserved = max(0.0, self.reserved - reserved)
        if used <= 0:
            return
        minutes = self._minutes
        if minutes and now < minutes[-1][0] + _SLOT:
            began, usd = minutes[-1]
            minutes[-1] = began, usd + used
        else:
            minutes.append((now, used))


@dataclass(slots=True, eq=False)
class LateShare:
    """The decayed share of a deployment's requests that were late."""

    share: float = 0.0
    is_late: bool = False

    def note(self, late: float) -> None:
        """Note a request: 1 for one that was late, else 0."""
        self.share += RECENT * (late - self.share)
        self.is_late = self.share > (LATE_UNTIL if self.is_late else LATE_FROM)


@dataclass(slots=True, eq=False)
class HedgeStates:
    """The bounds of all names. Names are labels of the configuration, teams are `Team.tenant`."""

    _buckets: dict[tuple[str, str], HedgeBucket] = field(default_factory=dict)
    _spending: dict[str, HourlySpending] = field(default_factory=dict)
    _late: BoundedDict[Identity, LateShare] = field(default_factory=lambda: BoundedDict(MOST_DEPLOYMENTS))

    def bucket(self, name: str, tenant: str) -> HedgeBucket:
        """Return the bucket of a team's requests for a name."""
        bucket = self._buckets.get((name, tenant))
        if bucket is None:
            bucket = self._buckets[name, tenant] = HedgeBucket()
        return bucket

    def spending(self, name: str) -> HourlySpending:
        """Return the spending of cancelled calls of a name."""
        spending = self._spending.get(name)
        if spending is None:
            spending = self._spending[name] = HourlySpending()
        return spending

    def note(self, deployment: Identity, *, late: bool) -> None:
        """Note whether a request was late at a deployment: it had no content when a second attempt might begin."""
        found = self._late.get(deployment)
        if found is None:
            if not late:
                return  # nearly always
            found = self._late[deployment] = LateShare()
        found.note(1.0 if late else 0.0)

    def closed(self, deployments: Iterable[Identity]) -> bool:
        """Return whether half or more of these are late."""
        late = [found is not None and found.is_late for found in map(self._late.get, deployments)]
        return 2 * sum(late) >= len(late)

    def keep(self, names: Set[str], tenants: Set[str]) -> None:
        """Forget the names and teams that a new configuration does not have."""
        self._buckets = {pair: each for pair, each in self._buckets.items() if pair[0] in names and pair[1] in tenants}
        self._spending = {name: each for name, each in self._spending.items() if name in names}
