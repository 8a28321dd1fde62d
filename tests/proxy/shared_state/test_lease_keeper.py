"""The state that all leases share: the shares of a limit that processes have alone, and when others may not have
reported theirs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.shared_state.lease_keeper import (
    NEVER,
    REJOIN_SECONDS,
    alone_share,
    equal_share_known_until,
    idle_share,
    in_doubt,
    still_known,
)
from tests.proxy.limits.kit.still_keeper import StillKeeper


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=8))
def test_the_parts_of_all_who_are_alone_add_up_to_one(demands: list[int]) -> None:
    total, count = sum(demands), len(demands)
    shares = [0.9 * each / total + 0.1 / count if total > 0 else 1 / count for each in demands]
    assert sum(alone_share(share, count, count) for share in shares) == pytest.approx(1)
    assert all(alone_share(share, count, count) >= 0.25 / count for share in shares)
    others = 8 - count
    assert sum(alone_share(share, count, 8) for share in shares) + others * idle_share(8) == pytest.approx(1)


def test_it_is_in_doubt_until_all_others_have_told_or_could_have() -> None:
    keeper = StillKeeper()
    assert in_doubt(keeper, 5.0, 5.0)
    assert not in_doubt(keeper, 5.0, 5.0 + REJOIN_SECONDS)
    keeper.all_reported_since = 4.9
    assert in_doubt(keeper, 5.0, 5.2)
    keeper.all_reported_since = 5.0
    assert not in_doubt(keeper, 5.0, 5.2)


def test_only_workers_whom_nobody_counted_yet_have_equal_parts_until_somebody_does() -> None:
    workers, met, strangers = StillKeeper(), StillKeeper(has_answered=True), StillKeeper(other_gateways=True)
    assert [equal_share_known_until(each) for each in (workers, met, strangers)] == [math.inf, NEVER, NEVER]
    assert [still_known(each, math.inf, 5.0) for each in (workers, met, strangers)] == [True, False, True]
    assert [still_known(met, until, 5.0) for until in (4.0, 6.0)] == [False, True]
