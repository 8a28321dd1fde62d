"""What the policies ask about: how busy and how fast deployments are, whose turn it is, and chance.

Never decides anything; the state itself is the deployments' health.
"""

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from providers.dialect import Target
from proxy.healths import Healths


class Load(Protocol):
    """The state that orders depend on, by target."""

    def draw(self) -> float:
        """A number in [0, 1), fresh at each call."""

    def turn(self, group: str) -> int:
        """The next number of a model's or a route's counter, from 0; `group` is its name in the table."""

    def in_flight(self, target: Target) -> int:
        """Requests under way at a deployment."""

    def first_byte(self, target: Target) -> float | None:
        """The seconds its first byte usually takes; None when that is not known."""


class LiveLoad:
    """The load as this process sees it."""

    __slots__ = ("_draw", "_healths", "_turns")

    def __init__(self, healths: Healths, draw: Callable[[], float]) -> None:
        self._healths = healths
        self._draw = draw
        self._turns: dict[str, int] = {}

    def draw(self) -> float:
        """A number in [0, 1)."""
        return self._draw()

    def turn(self, group: str) -> int:
        """The next number of the group's counter."""
        number = self._turns.get(group, 0)
        self._turns[group] = number + 1
        return number

    def keep(self, groups: Container[str]) -> None:
        """A new table is in force: forget the turns of groups that it does not have."""
        self._turns = {group: number for group, number in self._turns.items() if group in groups}

    def in_flight(self, target: Target) -> int:
        """Tries that have not ended."""
        return self._healths.of(target).in_flight

    def first_byte(self, target: Target) -> float | None:
        """The decayed mean of its tries."""
        return self._healths.of(target).first_byte


class Idle:
    """No load: nothing is under way, nothing is known, it is the first one's turn, and every draw is 0."""

    __slots__ = ()

    def draw(self) -> float:
        """The lowest draw."""
        return 0.0

    def turn(self, group: str) -> int:
        """The first turn."""
        return 0

    def in_flight(self, target: Target) -> int:
        """None."""
        return 0

    def first_byte(self, target: Target) -> float | None:
        """Not known."""
        return None


IDLE = Idle()


@dataclass(frozen=True, slots=True)
class LoadOf:
    """The load of one model's or route's members, for a policy; `reach` gives the deployments a member leads to.

    A member is as busy as its deployments together, and as fast as the fastest of them: that is the one which its own
    policy may choose.
    """

    load: Load
    group: str
    reach: Callable[[int], Sequence[Target]]

    def draw(self) -> float:
        """A number in [0, 1)."""
        return self.load.draw()

    def turn(self) -> int:
        """The next number of the group's counter."""
        return self.load.turn(self.group)

    def in_flight(self, position: int) -> int:
        """The sum over the member's deployments."""
        return sum(self.load.in_flight(target) for target in self._distinct(position))

    def first_byte(self, position: int) -> float | None:
        """The least of the member's deployments that are known."""
        known = (self.load.first_byte(target) for target in self._distinct(position))
        return min((seconds for seconds in known if seconds is not None), default=None)

    def _distinct(self, position: int) -> Iterator[Target]:
        return iter(dict.fromkeys(self.reach(position)))
