"""Selection policies: in which order the members of a model or a route are tried.

Never holds live state or a source of randomness; the draw is an argument.
"""

from collections.abc import Callable, Mapping, Sequence

Draw = Callable[[], float]
"""A number in [0, 1), fresh at each call."""

Policy = Callable[[Sequence[int], Draw], Sequence[int]]
"""Weights in the order of the table to positions in the order of trial."""


def priority(weights: Sequence[int], draw: Draw) -> Sequence[int]:
    """As written."""
    return range(len(weights))


def weighted(weights: Sequence[int], draw: Draw) -> Sequence[int]:
    """Drawn without replacement in proportion to the weights, so that the rest is a fair fallback order.

    Members of weight 0 are left out: that is how an operator takes one out of service without forgetting it.
    """
    left = [position for position, weight in enumerate(weights) if weight > 0]
    order: list[int] = []
    while left:
        mark = draw() * sum(weights[position] for position in left)
        for position in left:
            mark -= weights[position]
            if mark < 0:
                break
        else:
            position = left[-1]
        left.remove(position)
        order.append(position)
    return order


POLICIES: Mapping[str, Policy] = {"priority": priority, "weighted": weighted}
