"""The costs from turns, and a turn on real sockets without a gateway between. No test checks a time."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.cases import CASES, Case
from tests.bench.cpu import Usage
from tests.bench.measure import Outcome, Times, Turn, measure_case
from tests.bench.programs.program import Forwarder
from tests.bench.traffic import Ask
from tests.bench.upstream import running_upstream
from tests.support.looped import looped

QUICK = Times(turns=2, ramp=0.05, window=0.1)
PACED = Case("paced", Ask(chunks=65, pace=20), 60)


def turn(total: float, user: float, count: float, load: float = 0.5) -> Turn:
    return Turn(Usage(total, user, total - user), Usage(load), 1.0, count)


def test_the_cheapest_turn_counts_and_the_samples_of_all() -> None:
    outcome = Outcome(PACED, [turn(0.3, 0.1, 3000), turn(0.2, 0.15, 3000)])
    assert outcome.total == pytest.approx(0.2 / 3000 * 1e6)
    assert outcome.user == pytest.approx(outcome.total * 0.25 / 0.5)
    assert outcome.user + outcome.system == pytest.approx(outcome.total)


def test_a_cheaper_turn_does_not_count_in_which_others_had_the_core() -> None:
    calm, late = turn(0.3, 0.1, 3000), replace(turn(0.1, 0.1, 3000), queued=0.4)
    assert Outcome(PACED, [late, calm]).best is calm
    assert Outcome(PACED, [late]).best is late


@pytest.mark.parametrize(("count", "behind"), [(3000.0, False), (2000.0, True)])
def test_a_program_that_does_not_keep_the_pace_is_behind(count: float, behind: bool) -> None:
    assert Outcome(PACED, [turn(0.2, 0.1, count)]).behind is behind


@looped(("busy", "load", "bound"), [(0.5, 0.99, True), (0.99, 0.99, False), (0.5, 0.5, False), (0.99, 0.2, False)])
def test_a_rate_is_the_loads_where_it_was_busy_and_the_program_was_not(busy: float, load: float, bound: bool) -> None:
    assert Outcome(Case("request", Ask()), [turn(busy, 0.1, 3000, load)]).load_bound is bound


@pytest.mark.nightly
@pytest.mark.timeout(180)
async def test_every_case_can_be_measured_straight_at_the_upstream(tmp_path: Path) -> None:
    with running_upstream(tmp_path) as upstream:
        straight = Forwarder("straight", upstream.port, upstream.pid, upstream.port)
        for case in CASES:
            ask = replace(case.ask, chunks=min(case.ask.chunks, 9), pace=min(case.ask.pace, 1))
            small = replace(case, ask=ask, connections=2)
            outcome = (await measure_case([straight], small, [os.getpid()], QUICK))["straight"]
            assert (len(outcome.turns), outcome.failure) == (2, ""), case.name
            assert outcome.total > 0


async def test_a_program_that_is_not_there_has_no_turns_and_says_why(tmp_path: Path) -> None:
    with running_upstream(tmp_path) as upstream:
        nobody = Forwarder("nobody", 1, os.getpid(), 1)
        straight = Forwarder("straight", upstream.port, upstream.pid, upstream.port)
        outcomes = await measure_case([nobody, straight], Case("request", Ask(), 1), [os.getpid()], QUICK)
    assert outcomes["nobody"].turns == []
    assert outcomes["nobody"].failed == 2
    assert "127.0.0.1" in outcomes["nobody"].failure
    assert len(outcomes["straight"].turns) == 2
