"""Counts of several processes become the counts of one run."""

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conformance.conftest import WALKED
from tests.conformance.conftest import summary_lines as matrix_lines
from tests.contracts.conftest import CHECKED, PASSED
from tests.contracts.conftest import summary_lines as contract_lines
from tests.support.looped import looped
from tests.support.summary_counts import CountKey, counts, hand_over, take_over


def process(**attributes: object) -> pytest.Config:
    """Return the object in which a process of a run holds its counts."""
    return cast(pytest.Config, SimpleNamespace(stash=pytest.Stash(), **attributes))


def gathered(*shares: Counter[CountKey]) -> Counter[CountKey]:
    """Return the counts of the starting process after workers sent theirs."""
    starter = process()
    for share in shares:
        output: dict[str, dict[CountKey, int]] = {}
        worker = process(workeroutput=output)
        counts(worker).update(share)
        hand_over(worker)
        assert all(type(handed) is dict for handed in output.values())
        take_over(starter, output)
    return counts(starter)


BODIES: Counter[CountKey] = Counter(
    {(PASSED, "bodies", "a"): 3, (PASSED, "bodies", "b"): 2, (PASSED, "fixtures", "a"): 1}
)
CELLS: Counter[CountKey] = Counter([(CHECKED, "passed", "x", "first"), (CHECKED, "cannot", "x", "second")])
MATRIX: Counter[CountKey] = Counter([(WALKED, "9 cells")])


def test_what_workers_noted_is_added_up() -> None:
    assert gathered(BODIES, Counter(), BODIES + CELLS) == BODIES + BODIES + CELLS


def test_a_worker_that_broke_down_adds_nothing() -> None:
    starter = process()
    counts(starter).update(BODIES)
    take_over(starter, {})
    assert counts(starter) == BODIES


def test_a_process_that_is_no_worker_keeps_its_facts() -> None:
    alone = process()
    counts(alone).update(BODIES)
    hand_over(alone)
    assert counts(alone) == BODIES


@looped("shares", [(BODIES + CELLS + MATRIX,), (BODIES, CELLS, MATRIX), (MATRIX, CELLS + CELLS, BODIES)])
def test_the_lines_are_the_same_however_the_tests_were_shared_out(shares: tuple[Counter[CountKey], ...]) -> None:
    noted = gathered(*shares)
    assert contract_lines(noted) == [
        "contracts: 2 vendors, 5 bodies, 1 fixtures passed",
        "shelves: 1 dialects x 2 checks: 1 passed, 1 cannot (reasons in tests/providers/dialects/*/suite_data.py)",
    ]
    assert matrix_lines(noted) == ["matrix: 9 cells"]


def test_nothing_is_said_of_what_did_not_run() -> None:
    assert contract_lines(Counter()) == []
    assert matrix_lines(Counter()) == []
