"""The order in which members are tried, for draws that are chosen, not drawn."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.policies import POLICIES, Draw, priority, weighted

ALMOST_ONE = 1 - 2**-53
"""The largest number a draw can give."""

weights_of = st.lists(st.integers(min_value=0, max_value=1_000_000), max_size=8)
draws_of = st.floats(min_value=0, max_value=ALMOST_ONE)


def always(number: float) -> Draw:
    """A draw that gives one number."""
    return lambda: number


def one_by_one(*numbers: float) -> Draw:
    """A draw that gives these numbers in turn."""
    left = iter(numbers)
    return lambda: next(left)


def no_draw() -> float:
    """A draw that must not be made."""
    raise AssertionError("nothing is left to chance here")


@given(weights_of)
def test_priority_is_the_order_of_the_table_and_needs_no_draw(weights: list[int]) -> None:
    assert list(priority(weights, no_draw)) == list(range(len(weights)))


@given(weights_of, st.data())
def test_weighted_tries_every_member_that_has_a_weight_once_and_no_other(
    weights: list[int], data: st.DataObject
) -> None:
    order = weighted(weights, lambda: data.draw(draws_of))
    assert sorted(order) == [position for position, weight in enumerate(weights) if weight > 0]


@pytest.mark.parametrize("weights", [[1, 1], [3, 1], [1, 2, 3], [0, 5, 0, 15], [1, 99]])
def test_the_first_member_is_drawn_in_proportion_to_its_weight(weights: list[int]) -> None:
    total = sum(weights)
    first = Counter(weighted(weights, always((step + 0.5) / total))[0] for step in range(total))
    assert [first[position] for position in range(len(weights))] == weights


@pytest.mark.parametrize("weights", [[1, 1, 2], [3, 0, 1]])
def test_the_rest_is_drawn_in_proportion_too(weights: list[int]) -> None:
    rest = sum(weights[1:])
    second = Counter(weighted(weights, one_by_one(0.0, (step + 0.5) / rest, 0.0))[1] for step in range(rest))
    assert [second[position] for position in range(1, len(weights))] == weights[1:]


@pytest.mark.parametrize(("number", "expected"), [(0.0, [0, 1, 2]), (ALMOST_ONE, [2, 1, 0])])
def test_the_extremes_of_a_draw_choose_the_ends(number: float, expected: list[int]) -> None:
    assert list(weighted([1, 1, 1], always(number))) == expected


def test_nothing_is_drawn_from_nothing() -> None:
    assert list(weighted([], no_draw)) == []


def test_policies_go_by_the_names_of_the_table() -> None:
    assert dict(POLICIES) == {"priority": priority, "weighted": weighted}
