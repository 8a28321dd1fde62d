"""Loads of deployments, set by a test, for policies that depend on them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from providers.target import Target
from proxy.routing.affinity_rules import AffinityRules
from proxy.routing.deployment_load import MemberLoad
from proxy.routing.session_affinity import MemberGroup


def no_draw() -> float:
    """Fail: no draw must be made."""
    raise AssertionError("nothing is left to chance here")


@dataclass(frozen=True, slots=True)
class Now:
    """The load of the deployments of one model or route, by position."""

    draw: Callable[[], float] = no_draw
    busy: Mapping[int, int] = field(default_factory=dict)
    seconds: Mapping[int, float] = field(default_factory=dict)
    turns: Iterator[int] = field(default_factory=count)

    def turn(self) -> int:
        return next(self.turns)

    def in_flight(self, position: int) -> int:
        return self.busy.get(position, 0)

    def first_byte(self, position: int) -> float | None:
        """Return the usual seconds to the first byte."""
        return self.seconds.get(position)


@dataclass(frozen=True, slots=True)
class Told:
    """The load of deployments, by name."""

    draw: Callable[[], float] = no_draw
    busy: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    turns: dict[str, int] = field(default_factory=dict)

    def turn(self, group: str) -> int:
        self.turns[group] = self.turns.get(group, -1) + 1
        return self.turns[group]

    def in_flight(self, target: Target) -> int:
        return self.busy.get(target.name, 0)

    def first_byte(self, target: Target) -> float | None:
        return self.seconds.get(target.name)

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: MemberLoad) -> None:
        """Return no placement, since there is no request."""
