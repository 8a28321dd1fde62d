"""Real processes and one real Redis: together they pass at most the limit."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxy.limits.leased_rate import HOLD_SECONDS
from tests.proxy.limits.kit.fleet import FleetResult, run_fleet
from tests.proxy.limits.kit.simulation import excess, within
from tests.support.redis import real_redis


def several_and_one(
    folder: Path, processes: int, limit: int, offered: float, seconds: float, burst: int | None = None
) -> tuple[FleetResult, FleetResult]:
    """Return the results of several processes, and of one process that gets the same offered load at the same time."""
    for name in ("all", "one"):
        (folder / name).mkdir()
    with (
        real_redis(folder / "all") as redis,
        real_redis(folder / "one") as other,
        ThreadPoolExecutor(2) as at_once,
    ):
        several = at_once.submit(run_fleet, redis.url, processes, limit, offered, seconds, burst)
        one = at_once.submit(run_fleet, other.url, 1, limit, offered, seconds, burst)
        return several.result(), one.result()


def seconds_to_last(result: FleetResult) -> float:
    """Return the seconds until the last grant: a busy machine ends later than requested."""
    return result.admitted[-1][0] - result.begin


def test_four_processes_pass_together_what_one_would(tmp_path: Path) -> None:
    result, control = several_and_one(tmp_path, 4, 200, 500, 4)
    assert result.alone == 0
    # A leased unit may be used for HOLD_SECONDS longer.
    assert excess(result.admitted, 200, 200) <= HOLD_SECONDS * 200
    # A unit that is not taken in its time is lost. On a busy machine one process loses units like four.
    given, of_one = (len(each.admitted) / (1 + seconds_to_last(each)) for each in (result, control))
    assert given >= 0.9 * of_one


def test_two_processes_pass_of_a_burst_of_one_what_one_would(tmp_path: Path) -> None:
    result, control = several_and_one(tmp_path, 2, 20, 200, 5, burst=1)
    assert result.alone == 0
    assert len(result.admitted) <= 1.02 * 20 * seconds_to_last(result) + 1
    assert len(result.admitted) >= 0.8 * len(control.admitted)


@pytest.mark.nightly
@pytest.mark.timeout(180)
def test_eight_processes_keep_a_thousand_a_second_within_two_percent(tmp_path: Path) -> None:
    with real_redis(tmp_path) as redis:
        result = run_fleet(redis.url, 8, 1000, 1500, 20)
    assert result.alone == 0
    assert within(result.admitted, result.begin + 4, result.begin + 20) == pytest.approx(16_000, rel=0.02)
    assert excess(result.admitted, 1000, 1000) <= 20
