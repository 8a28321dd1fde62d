"""Selection policies: in which order the members of a model or a route are tried.

Never holds live state or a source of randomness; both are arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

EXPLORED = 0.05
"""The share of requests that policy fastest sends first to a member drawn at random: one that was slow is seen to
recover."""


class Members(Protocol):
    """The members of one model or route as they are now, each by its position in the table."""

    def draw(self) -> float:
        """A number in [0, 1), fresh at each call."""

    def turn(self) -> int:
        """The number of the request among those to these members: 0, 1, 2 and so on, one more at each call."""

    def in_flight(self, position: int) -> int:
        """Requests under way at a member."""

    def first_byte(self, position: int) -> float | None:
        """The seconds a member's first byte usually takes; None when that is not known."""


Policy = Callable[[Sequence[int], Members], Sequence[int]]
"""Weights in the order of the table to positions in the order of trial.

Members of weight 0 are left out by every policy but priority: that is how an operator takes one out of service without
forgetting it.
"""


def priority(weights: Sequence[int], members: Members) -> Sequence[int]:
    """As written."""
    return range(len(weights))


def weighted(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Drawn without replacement in proportion to the weights, so that the rest is a fair fallback order."""
    left = _in_service(weights)
    order: list[int] = []
    while left:
        mark = members.draw() * sum(weights[position] for position in left)
        for position in left:
            mark -= weights[position]
            if mark < 0:
                break
        else:
            position = left[-1]
        left.remove(position)
        order.append(position)
    return order


def round_robin(weights: Sequence[int], members: Members) -> Sequence[int]:
    """Each first in turn, whatever the weights. The others' order turns too, once a round, so that one that is away
    leaves its requests to all of them and not to its neighbour."""
    left = _in_service(weights)
    if len(left) < 2:
        return left
    lap, number = divmod(members.turn(), len(left))
    first, *rest = *left[number:], *left[:number]
    shift = lap % len(rest)
    return [first, *rest[shift:], *rest[:shift]]


def least_busy(weights: Sequence[int], members: Members) -> Sequence[int]:
    """The fewest requests under way for its weight first; among equals in turn."""
    return sorted(round_robin(weights, members), key=lambda position: members.in_flight(position) / weights[position])


def fastest(weights: Sequence[int], members: Members) -> Sequence[int]:
    """The soonest usual first byte first, whatever the weights.

    A member of which nothing is known gets one request before all others; the next ones do not wait for what it shows,
    unless nothing is known of any.
    """

    def rank(position: int) -> tuple[int, float]:
        seconds = members.first_byte(position)
        if seconds is not None:
            return 1, seconds
        busy = members.in_flight(position)
        return (2, busy) if busy else (0, 0)

    order = sorted(_in_service(weights), key=rank)
    if len(order) > 1 and (chance := members.draw()) < EXPLORED:
        order.insert(0, order.pop(int(chance / EXPLORED * len(order))))
    return order


def _in_service(weights: Sequence[int]) -> list[int]:
    return [position for position, weight in enumerate(weights) if weight > 0]


WEIGHED = frozenset({"weighted", "least_busy"})
"""Policies that ask for more of a weight than whether it is 0."""

POLICIES: Mapping[str, Policy] = {
    "priority": priority,
    "weighted": weighted,
    "round_robin": round_robin,
    "least_busy": least_busy,
    "fastest": fastest,
}
