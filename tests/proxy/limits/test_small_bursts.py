"""Rates that allow only a unit or two at once: hardly any unit that accrues is lost on the way."""

import random

import pytest

from proxy.limits.gcra import LocalRate, rule_of
from proxy.limits.leased_rate import LeasedRate
from proxy.limits.limit import Limits, Period, Rate, Unit
from proxy.shared_state.lease import LeaseGrant
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.proxy.limits.kit.simulation import WALL, World, all_admitted, excess, fleet, run_traffic, stop
from tests.proxy.limits.kit.still_keeper import StillKeeper
from tests.support.looped import looped
from tests.support.nightly import some


def test_with_a_small_burst_it_asks_again_when_a_unit_may_be_there_and_lets_requests_wait_for_it() -> None:
    keeper = StillKeeper(rounds=1)
    lease = LeasedRate("t", Rate(Unit.REQUESTS, 100, Period.SECOND, 1), keeper)
    for tick in range(1, 20):
        for _ in range(8):
            lease.refused(1, tick / 100)
        if lease.next_request(tick / 100) is not None:
            lease.apply_grant(LeaseGrant(0, 0.4, 0.5, 2), tick / 100)
    keeper.noted.clear()
    assert not lease.fetchable(1, 0.1935)
    lease.refused(1, 0.1935)
    assert keeper.noted == []
    assert lease.fetchable(1, 0.1945)  # 6 ms later there is one unit, less 2 ms for the way


@looped(
    ("rate", "offered"),
    some(
        [
            pytest.param(Rate(Unit.REQUESTS, 100, Period.SECOND, 1), 150, id="by the second, fewer"),
            pytest.param(Rate(Unit.REQUESTS, 100, Period.SECOND, 1), 800, id="by the second"),
            pytest.param(Rate(Unit.REQUESTS, 6000, Period.MINUTE, 2), 200, id="two at once"),
            pytest.param(Rate(Unit.REQUESTS, 6000, Period.MINUTE, 1), 800, id="by the minute"),
        ],
        2,
    ),
)
@looped("count", some([8, 2, 1], 3))
@in_virtual_time
async def test_of_a_small_burst_all_together_get_no_less_than_one_would(count: int, rate: Rate, offered: float) -> None:
    """One process also passes less than the limit: units that accrue without a request are lost, except for the
    burst."""
    processes = fleet(World(), Limits((rate,)), count)
    await run_traffic(processes, offered, 10)
    await stop(processes)
    alone, passed, chance = LocalRate(rule_of(rate)), 0, random.Random(1)
    at = 0.0
    while (at := at + chance.expovariate(offered)) < 10:
        passed += alone.attempt(1, at, WALL)
    admitted = all_admitted(processes)
    assert len(admitted) >= 0.98 * passed
    assert excess(admitted, rate.burst, 100) <= 0.03 * 100
