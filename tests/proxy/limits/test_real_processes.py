"""Real processes, one real Redis: together they pass what the limit says, and no more."""

from concurrent.futures import ThreadPoolExecutor
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
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        real_redis(tmp_path / "two") as redis,
        real_redis(tmp_path / "one") as other,
        ThreadPoolExecutor(2) as at_once,
    ):
        two = at_once.submit(run_fleet, redis.url, 2, 20, 200, 5, burst=1)
        one = at_once.submit(run_fleet, other.url, 1, 20, 200, 5, burst=1)
        result, control = two.result(), one.result()
    assert result.alone == 0
    lasted = result.admitted[-1][0] - result.begin
    assert len(result.admitted) <= 1.02 * 20 * lasted + 1
    # A unit that is not taken in its time is lost, on a busy machine to one process as to two.
    assert len(result.admitted) >= 0.8 * len(control.admitted)


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_eight_processes_keep_a_thousand_a_second_within_two_percent(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis:
        result = run_fleet(redis.url, 8, 1000, 1500, 20)
    assert result.alone == 0
    assert within(result.admitted, result.begin + 4, result.begin + 20) == pytest.approx(16_000, rel=0.02)
    assert excess(result.admitted, 1000, 1000) <= 20
