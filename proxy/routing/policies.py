"""Selection policies: functions that order the members of a model or route. The functions get the state and the random
numbers as an argument."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

EXPLORED_SHARE = 0.05
"""The share of requests that `fastest` sends first to a random member, so that the recovery of a slow one is
noticed."""


class Members(Protocol):
    """The current state of the members of one model or route, by position in the configuration."""

    def draw(self) -> float:
        """Return a random number in [0, 1)."""

    def turn(self) -> int:
        """Return the number of this call, from 0."""

    def in_flight(self, position: int) -> int:
        """Return the number of requests in flight at a member."""

    def first_byte(self, position: int) -> float | None:
        """Return the usual number of seconds until a member's first byte; `None` if it is unknown."""


Policy = Callable[[Sequence[int], Members], Sequence[int]]
"""A function that takes the members' weights and returns the members' positions in the order of attempts.

All policies except `priority` leave out members of weight 0, so that an operator can take a member out of service.
"""


def priority(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Return the order of the configuration."""
    return range(len(weights))


def weighted(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Draw members without replacement in proportion to their weights, so that the order of fallbacks is fair too."""
    left = _in_service(weights)
    order: list[int] = []
    while left:
        drawn = members.draw() * sum(weights[position] for position in left)
        for position in left:
            drawn -= weights[position]
            if drawn < 0:
                break
        else:
            position = left[-1]
        left.remove(position)
        order.append(position)
    return order


def round_robin(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Put each member first once in every round, regardless of the weights. The order of the others rotates with each
    round, so that requests of a failing member go to all others and not only to the next one."""
    left = _in_service(weights)
    if len(left) < 2:
        return left
    round_, number = divmod(members.turn(), len(left))
    first, *rest = *left[number:], *left[:number]
    shift = round_ % len(rest)
    return [first, *rest[shift:], *rest[:shift]]


def least_busy(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Order by the ratio of requests in flight to weight, the smallest first. Members with equal ratios take turns."""
    return sorted(round_robin(weights, members), key=lambda position: members.in_flight(position) / weights[position])


def fastest(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Order by the usual time to the first byte, regardless of the weights.

    A member without a measurement comes first for one request. Until the time of this request is measured, the member
    comes last.
    """

    def rank(position: int) -> tuple[int, float]:
        seconds = members.first_byte(position)
        if seconds is not None:
            return 1, seconds
        busy = members.in_flight(position)
        return (2, busy) if busy else (0, 0)

    order = sorted(_in_service(weights), key=rank)
    if len(order) > 1 and (chance := members.draw()) < EXPLORED_SHARE:
        order.insert(0, order.pop(int(chance / EXPLORED_SHARE * len(order))))
    return order


def _in_service(weights: Sequence[int]) -> list[int]:
    return [position for position, weight in enumerate(weights) if weight > 0]


WEIGHTED_POLICIES = frozenset({"weighted", "least_busy"})
"""The policies whose order depends on weights above 0."""

POLICIES: Mapping[str, Policy] = {
    "priority": priority,
    "weighted": weighted,
    "round_robin": round_robin,
    "least_busy": least_busy,
    "fastest": fastest,
}
