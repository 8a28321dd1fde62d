"""The order in which members are tried, for chosen random draws and loads."""

from collections import Counter
from collections.abc import Callable
from itertools import repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.table.table_schema import ModelSection
from proxy.routing.policies import (
    EXPLORED_SHARE,
    POLICIES,
    WEIGHTED_POLICIES,
    Policy,
    fastest,
    least_busy,
    priority,
    round_robin,
    weighted,
)
from tests.proxy.kit.deployment_loads import Now, no_draw
from tests.support.looped import looped

ALMOST_ONE = 1 - 2**-53
"""The largest number a random draw can give."""

weights_of = st.lists(st.integers(min_value=0, max_value=1_000_000), max_size=8)
draws_of = st.floats(min_value=0, max_value=ALMOST_ONE)
busy_of = st.dictionaries(st.integers(min_value=0, max_value=7), st.integers(min_value=0, max_value=100))
seconds_of = st.dictionaries(st.integers(min_value=0, max_value=7), st.floats(min_value=0, max_value=600))
every_other_policy = looped("policy", [policy for name, policy in POLICIES.items() if name != "priority"])


def always(number: float) -> Callable[[], float]:
    """Return a draw that always gives one number."""
    return lambda: number


def one_by_one(*numbers: float) -> Callable[[], float]:
    """Return a draw that gives these numbers in turn."""
    left = iter(numbers)
    return lambda: next(left)


def test_policies_go_by_the_names_of_the_table() -> None:
    assert dict(POLICIES) == {
        "priority": priority,
        "weighted": weighted,
        "round_robin": round_robin,
        "least_busy": least_busy,
        "fastest": fastest,
    }
    assert ModelSection.model_validate({"policy": "fastest"}).policy == "fastest"
    assert set(POLICIES) > WEIGHTED_POLICIES


@given(weights_of)
def test_priority_is_the_order_of_the_table_and_needs_no_load(weights: list[int]) -> None:
    assert list(priority(weights, Now())) == list(range(len(weights)))


@every_other_policy
@given(weights_of, draws_of, busy_of, seconds_of, st.integers(min_value=0, max_value=10_000))
def test_every_other_policy_tries_each_member_that_has_a_weight_once_and_no_other(
    policy: Policy, weights: list[int], drawn: float, busy: dict[int, int], seconds: dict[int, float], turn: int
) -> None:
    order = policy(weights, Now(always(drawn), busy, seconds, repeat(turn)))
    assert sorted(order) == [position for position, weight in enumerate(weights) if weight > 0]


@every_other_policy
@looped("weights", [[], [0, 0]])
def test_nothing_comes_of_nothing(policy: Policy, weights: list[int]) -> None:
    assert list(policy(weights, Now())) == []


# weighted ------------------------------------------------------------------------------------------------------------


@looped("weights", [[1, 1], [3, 1], [1, 2, 3], [0, 5, 0, 15], [1, 99]])
def test_the_first_member_is_drawn_in_proportion_to_its_weight(weights: list[int]) -> None:
    total = sum(weights)
    first = Counter(weighted(weights, Now(always((step + 0.5) / total)))[0] for step in range(total))
    assert [first[position] for position in range(len(weights))] == weights


@pytest.mark.parametrize("weights", [[1, 1, 2], [3, 0, 1]])
def test_the_rest_is_drawn_in_proportion_too(weights: list[int]) -> None:
    rest = sum(weights[1:])
    draws = [one_by_one(0.0, (step + 0.5) / rest, 0.0) for step in range(rest)]
    second = Counter(weighted(weights, Now(draw))[1] for draw in draws)
    assert [second[position] for position in range(1, len(weights))] == weights[1:]


@pytest.mark.parametrize(("number", "expected"), [(0.0, [0, 1, 2]), (ALMOST_ONE, [2, 1, 0])])
def test_the_extremes_of_a_draw_choose_the_ends(number: float, expected: list[int]) -> None:
    assert list(weighted([1, 1, 1], Now(always(number)))) == expected


# round_robin ---------------------------------------------------------------------------------------------------------


def test_each_member_comes_first_in_turn_whatever_its_weight() -> None:
    now = Now()
    assert [round_robin([1, 0, 70, 2], now)[0] for _ in range(7)] == [0, 2, 3, 0, 2, 3, 0]


@looped("size", [2, 3, 4, 5])
def test_the_turns_of_one_that_is_away_are_shared_by_all_others(size: int) -> None:
    now = Now()
    orders = [round_robin([1] * size, now) for _ in range(size * (size - 1))]
    first = Counter(next(position for position in order if position != 1) for order in orders)
    assert first == {position: size for position in range(size) if position != 1}


def test_one_member_needs_no_turn_and_no_draw() -> None:
    now = Now()
    assert list(round_robin([0, 1], now)) == [1]
    assert now.turn() == 0
    assert list(fastest([0, 1], Now(no_draw))) == [1]


# least_busy ----------------------------------------------------------------------------------------------------------


def test_the_fewest_requests_under_way_for_its_weight_come_first_and_equals_take_turns() -> None:
    assert list(least_busy([1, 1, 1], Now(busy={0: 3, 1: 1, 2: 2}))) == [1, 2, 0]
    assert list(least_busy([10, 1, 5], Now(busy={0: 30, 1: 4, 2: 5}))) == [2, 0, 1]
    now = Now(busy={0: 2, 1: 4, 2: 9})
    assert [least_busy([1, 2, 1], now)[0] for _ in range(6)] == [0, 1, 0, 0, 1, 1]


# fastest -------------------------------------------------------------------------------------------------------------


def test_the_soonest_first_byte_comes_first_and_one_nothing_is_known_of_before_it() -> None:
    assert list(fastest([1, 99, 1], Now(always(0.5), seconds={0: 0.4, 1: 0.9, 2: 0.2}))) == [2, 0, 1]
    known = {0: 0.4, 2: 0.2}
    assert list(fastest([1, 1, 1], Now(always(0.5), seconds=known))) == [1, 2, 0]
    assert list(fastest([1, 1, 1], Now(always(0.5), {1: 1}, known))) == [2, 0, 1]
    assert list(fastest([1, 1, 1], Now(always(0.5), {0: 3, 1: 1, 2: 2}))) == [1, 2, 0]


def test_a_small_share_of_requests_looks_at_every_member() -> None:
    seconds = {0: 0.1, 1: 9.0, 2: 5.0}
    drawn = [step / 3000 for step in range(3000)]
    first = Counter(fastest([1, 1, 1], Now(always(number), seconds=seconds))[0] for number in drawn)
    assert first == {0: 2900, 1: 50, 2: 50}
    assert list(fastest([1, 1, 1], Now(always(EXPLORED_SHARE), seconds=seconds))) == [0, 2, 1]
