"""The load of deployments for selection policies: requests in flight, latency, counters and random numbers."""

from collections.abc import Callable, Container, Iterator, Sequence
from typing import Protocol

from providers.frozen_record import frozen
from providers.target import Target
from proxy.deployment_health.breaker_registry import Breakers
from proxy.routing.affinity_rules import AffinityRules
from proxy.routing.session_affinity import MemberGroup


class Load(Protocol):
    """The load of targets, which policies read."""

    def draw(self) -> float:
        """Return a random number in [0, 1)."""

    def turn(self, group: str) -> int:
        """Return the next number of a counter, from 0. `group` is the name of a model or route."""

    def in_flight(self, target: Target) -> int:
        """Return the number of requests in flight at a deployment."""

    def first_byte(self, target: Target) -> float | None:
        """Return the usual number of seconds until a deployment's first byte; `None` if it is unknown."""

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: "MemberLoad") -> Sequence[int] | None:
        """Return the positions of a group's members in the order for the request's conversation; `None` if the policy
        decides the order."""


class LiveLoad:
    """The load that this process measures."""

    __slots__ = ("_breakers", "_draw", "_turns")

    def __init__(self, breakers: Breakers, draw: Callable[[], float]) -> None:
        self._breakers = breakers
        self._draw = draw
        self._turns: dict[str, int] = {}

    def draw(self) -> float:
        return self._draw()

    def turn(self, group: str) -> int:
        number = self._turns.get(group, 0)
        self._turns[group] = number + 1
        return number

    def keep(self, groups: Container[str]) -> None:
        """Forget the counters of groups that a new configuration no longer has."""
        self._turns = {group: number for group, number in self._turns.items() if group in groups}

    def in_flight(self, target: Target) -> int:
        return self._breakers.of(target).in_flight

    def first_byte(self, target: Target) -> float | None:
        """Return a decaying mean over the attempts, in seconds."""
        return self._breakers.of(target).first_byte

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: "MemberLoad") -> Sequence[int] | None:
        """Return `None`, because the load of a process belongs to no conversation."""


class Idle:
    """The load of an idle gateway: no requests in flight, no known latency, and 0 for every counter and random
    number."""

    __slots__ = ()

    def draw(self) -> float:
        """Return 0."""
        return 0.0

    def turn(self, group: str) -> int:
        """Return 0."""
        return 0

    def in_flight(self, target: Target) -> int:
        """Return 0."""
        return 0

    def first_byte(self, target: Target) -> float | None:
        """Return `None`."""
        return None

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: "MemberLoad") -> Sequence[int] | None:
        """Return `None`, because there is no conversation without a request."""
        return None


IDLE = Idle()


class RecordingLoad:
    """A load that records whether it was used. An order that was found without the load stays valid until the
    configuration changes."""

    __slots__ = ("_load", "used")

    def __init__(self, load: Load) -> None:
        self._load = load
        self.used = False

    def draw(self) -> float:
        self.used = True
        return self._load.draw()

    def turn(self, group: str) -> int:
        self.used = True
        return self._load.turn(group)

    def in_flight(self, target: Target) -> int:
        self.used = True
        return self._load.in_flight(target)

    def first_byte(self, target: Target) -> float | None:
        self.used = True
        return self._load.first_byte(target)

    def ordered(self, rules: AffinityRules, group: MemberGroup, members: "MemberLoad") -> Sequence[int] | None:
        self.used = True
        return self._load.ordered(rules, group, members)


@frozen
class MemberLoad:
    """The load of the members of one model or route, by position. `reach` returns the deployments of a member.

    A member is as busy as its deployments together, and as fast as the fastest of them, which its own policy may
    choose.
    """

    load: Load
    group: str
    reach: Callable[[int], Sequence[Target]]

    def draw(self) -> float:
        return self.load.draw()

    def turn(self) -> int:
        """Return the next number of the group's counter."""
        return self.load.turn(self.group)

    def in_flight(self, position: int) -> int:
        """Return the requests in flight at all deployments of a member."""
        return sum(self.load.in_flight(target) for target in self._distinct(position))

    def ordered(self, rules: AffinityRules, group: MemberGroup) -> Sequence[int] | None:
        """Return the order of members for the request's conversation, as `Load.ordered` describes."""
        return self.load.ordered(rules, group, self)

    def first_byte(self, position: int) -> float | None:
        """Return the shortest known time to the first byte of a member's deployments."""
        known = (self.load.first_byte(target) for target in self._distinct(position))
        return min((seconds for seconds in known if seconds is not None), default=None)

    def _distinct(self, position: int) -> Iterator[Target]:
        return iter(dict.fromkeys(self.reach(position)))
