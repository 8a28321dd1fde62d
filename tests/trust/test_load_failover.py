"""The board's text about FailoverBench's scenarios. Runs of the scenarios are in tests/faults/test_failover.py."""

from tests.faults.failover_scenarios import RUNS, SCENARIOS
from tests.faults.failover_verdicts import Verdict
from tests.trust.load_failover import told

EXPECTED = {scenario.id: [Verdict(scenario.expected, "as it shall")] * RUNS for scenario in SCENARIOS}


def test_all_as_they_shall_end_are_good() -> None:
    assert told(EXPECTED).good
    assert told(EXPECTED).value == "12 pass, 4 safe"


def test_one_run_of_seven_that_ends_otherwise_is_bad_and_named() -> None:
    result = told({**EXPECTED, "S15": [*EXPECTED["S15"][1:], Verdict("fail", "recovered")]})
    assert (result.value, result.good) == ("1 fail/pass, 11 pass, 4 safe; S15 fail (recovered)", False)


def test_an_end_that_is_better_than_expected_is_named_too() -> None:
    result = told({**EXPECTED, "S10": [Verdict("pass", "rescued")] * RUNS})
    assert (result.value, result.good) == ("13 pass, 3 safe; S10 pass (rescued)", False)
