"""FailoverBench's scenarios under the bench's own rules: seven runs of each with this gateway, all with the same
verdict."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import pytest
import uvloop

from tests.faults.failover_runs import directly, repeated
from tests.faults.failover_scenarios import RUNS, SCENARIOS, Scenario, judged
from tests.faults.failover_verdicts import Seen
from tests.faults.failover_wall import WORDS

PACE: Final = 0.3
"""The duration of a second of the bench, in seconds. A margin of some seconds of the bench is then at least one second
on a busy machine. At this pace the longest scenario takes 23 seconds, and the others run beside it."""

SLOW: Final = frozenset({"S06", "S07", "S09", "S15"})
"""Scenarios that take a client long if it calls the vendor directly."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Sequence[Seen]]:
    """The record of every run, by the scenario's id."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(repeated(tmp_path_factory.mktemp("failover"), SCENARIOS, RUNS, PACE))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: f"{scenario.id}-{scenario.expected}")
def test_seven_runs_of_seven_end_as_expected(scenario: Scenario, seen: Mapping[str, Sequence[Seen]]) -> None:
    found = judged(scenario, seen[scenario.id])
    assert len(found) == RUNS
    assert [each for each in found if each.kind != scenario.expected] == [], scenario.why


def test_twelve_are_to_pass_and_four_to_be_safe() -> None:
    assert Counter(scenario.expected for scenario in SCENARIOS) == {"pass": 12, "safe": 4}
    assert [scenario.id for scenario in SCENARIOS] == [f"S{number:02}" for number in range(1, 17)]
    assert len(WORDS) == 60


def test_a_client_with_nothing_before_the_vendor_gets_what_the_bench_published() -> None:
    quick = [scenario for scenario in SCENARIOS if scenario.id not in SLOW]
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        found = runner.run(directly(quick, PACE))
    kinds = {scenario.id: judged(scenario, [found[scenario.id]])[0].kind for scenario in quick}
    assert kinds == {scenario.id: scenario.without for scenario in quick}
