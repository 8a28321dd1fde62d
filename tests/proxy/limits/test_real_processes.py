"""Real processes, one real Redis: together they pass what the limit says, and no more."""

from pathlib import Path

import pytest

from tests.proxy.limits.kit.fleet import run_fleet
from tests.proxy.limits.kit.simulation import excess, within
from tests.support.redis import real_redis


def test_four_processes_pass_together_what_one_would(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis:
        result = run_fleet(redis.url, 4, 200, 500, 4)
    assert result.alone == 0
    # A busy machine ends later than it was told to.
    lasted = result.admitted[-1][0] - result.begin
    assert len(result.admitted) == pytest.approx(200 * (1 + lasted), rel=0.04)
    assert excess(result.admitted, 200, 200) <= 0.02 * 200 * 5


def test_two_processes_pass_of_a_burst_of_one_what_one_would(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis:
        result = run_fleet(redis.url, 2, 20, 200, 5, burst=1)
    assert result.alone == 0
    # A unit passes when the next request comes, a tenth of its time later, and is asked for before it is there.
    lasted = result.admitted[-1][0] - result.begin
    assert 0.85 * 20 * lasted <= len(result.admitted) <= 1.02 * 20 * lasted + 1


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_eight_processes_keep_a_thousand_a_second_within_two_percent(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis:
        result = run_fleet(redis.url, 8, 1000, 1500, 20)
    assert result.alone == 0
    assert within(result.admitted, result.begin + 4, result.begin + 20) == pytest.approx(16_000, rel=0.02)
    assert excess(result.admitted, 1000, 1000) <= 20
