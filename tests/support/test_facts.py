"""Facts noted in several processes are the facts of one run."""

from collections import Counter
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conformance.conftest import WALKED
from tests.conformance.conftest import told as matrix_told
from tests.contracts.conftest import CHECKED, PASSED
from tests.contracts.conftest import told as contracts_told
from tests.support.facts import Fact, facts, hand_over, take_over


def process(**attributes: object) -> pytest.Config:
    """What a process of a run keeps its facts in."""
    return cast(pytest.Config, SimpleNamespace(stash=pytest.Stash(), **attributes))


def gathered(*shares: Counter[Fact]) -> Counter[Fact]:
    """What the starting process knows after workers noted these."""
    starter = process()
    for share in shares:
        output: dict[str, dict[Fact, int]] = {}
        worker = process(workeroutput=output)
        facts(worker).update(share)
        hand_over(worker)
        assert all(type(handed) is dict for handed in output.values())
        take_over(starter, output)
    return facts(starter)


BODIES: Counter[Fact] = Counter({(PASSED, "bodies", "a"): 3, (PASSED, "bodies", "b"): 2, (PASSED, "fixtures", "a"): 1})
CELLS: Counter[Fact] = Counter([(CHECKED, "passed", "x", "first"), (CHECKED, "cannot", "x", "second")])
MATRIX: Counter[Fact] = Counter([(WALKED, "9 cells")])


def test_what_workers_noted_is_added_up() -> None:
    assert gathered(BODIES, Counter(), BODIES + CELLS) == BODIES + BODIES + CELLS


def test_a_worker_that_broke_down_adds_nothing() -> None:
    starter = process()
    facts(starter).update(BODIES)
    take_over(starter, {})
    assert facts(starter) == BODIES


def test_a_process_that_is_no_worker_keeps_its_facts() -> None:
    alone = process()
    facts(alone).update(BODIES)
    hand_over(alone)
    assert facts(alone) == BODIES


@pytest.mark.parametrize(
    "shares", [(BODIES + CELLS + MATRIX,), (BODIES, CELLS, MATRIX), (MATRIX, CELLS + CELLS, BODIES)]
)
def test_the_lines_are_the_same_however_the_tests_were_shared_out(shares: tuple[Counter[Fact], ...]) -> None:
    noted = gathered(*shares)
    assert contracts_told(noted) == [
        "contracts: 2 vendors, 5 bodies, 1 fixtures passed",
        "shelves: 1 dialects x 2 checks: 1 passed, 1 cannot (reasons in tests/contracts/shelves.py)",
    ]
    assert matrix_told(noted) == ["matrix: 9 cells"]


def test_nothing_is_said_of_what_did_not_run() -> None:
    assert contracts_told(Counter()) == []
    assert matrix_told(Counter()) == []
