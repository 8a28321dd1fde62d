"""What each team has lately seen of one deployment, and whether one team's failures may speak for all.

Teams send different requests, and some failures come of the request: a payload that an engine cannot take, a file that
only its sender may not read. Never ejects anything, reads a clock or knows how many failures are too many.
"""

from enum import Enum, auto

from providers.failure import Failure, FailureKind

_CERTAIN = frozenset({FailureKind.CONNECT, FailureKind.TLS})
"""Failures that no request can bring about: it had not been sent."""


class Ruling(Enum):
    """For whom a failure counts."""

    ALL = auto()  # no request can bring it about, or another team's latest try failed too
    TEAM = auto()  # no other team has tried lately
    NOBODY = auto()  # the latest tries of all other teams went well


class Witnesses:
    """The latest outcome of each team's tries, believed for `window` seconds. A team without a name is everybody."""

    __slots__ = ("_latest", "_window")

    def __init__(self, window: float) -> None:
        self._latest: dict[str, tuple[float, bool]] = {}
        self._window = window

    def well(self, team: str, now: float) -> None:
        """A team's try went well."""
        self._latest[team] = (now, True)

    def badly(self, team: str, failure: Failure, now: float) -> Ruling:
        """A team's try failed."""
        since = now - self._window
        others = {well for other, (at, well) in self._latest.items() if other != team and at >= since}
        self._latest[team] = (now, False)
        if not team or failure.kind in _CERTAIN or False in others:
            return Ruling.ALL
        return Ruling.NOBODY if others else Ruling.TEAM
