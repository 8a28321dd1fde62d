"""What each team has lately seen of one deployment, and whether one team's failures may count for all.

Teams send different requests, and some failures are due to the request: a payload that an engine cannot take, a file
that only its sender may read. Pure: time is an argument.
"""

from dataclasses import dataclass, field
from enum import Enum, auto

from providers.failure import Failure, FailureKind

_CERTAIN = frozenset({FailureKind.CONNECT, FailureKind.TLS})
"""Failures that no request can cause: it had not been sent."""


class Ruling(Enum):
    """For whom a failure counts."""

    ALL = auto()  # no request can bring it about, or another team's latest attempt failed too
    TEAM = auto()  # no other team has called it lately
    NOBODY = auto()  # the latest attempts of all other teams succeeded


@dataclass(slots=True, eq=False)
class Witnesses:
    """The latest outcome of each team's attempts, believed for `window` seconds. A team without a name is everybody."""

    _window: float
    _latest: dict[str, tuple[float, bool]] = field(default_factory=dict)

    def succeeded(self, team: str, now: float) -> None:
        """Note a success of a team."""
        self._latest[team] = (now, True)

    def failed(self, team: str, failure: Failure, now: float) -> Ruling:
        """Note a failure of a team, and return for whom it counts."""
        since = now - self._window
        others = {well for other, (at, well) in self._latest.items() if other != team and at >= since}
        self._latest[team] = (now, False)
        if not team or failure.kind in _CERTAIN or False in others:
            return Ruling.ALL
        return Ruling.NOBODY if others else Ruling.TEAM
