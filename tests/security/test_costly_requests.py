"""The most costly requests, each beside a client with light requests, against a real gateway.

The bounds limit the gateway's work, to which a busy machine adds little. `make trust-full` measures how long other
clients wait.
"""

import asyncio
from pathlib import Path

import pytest

from tests.security.costly_requests import COSTLY_REQUESTS
from tests.security.hostile_run import Attack, HostileRun, hostile_run

WORST_STALL = 1000.0
"""Milliseconds of work. Each of these requests once stalled all clients for 1.4 s to minutes, or ended the process."""

MOST_KEPT = 64 * 2**20
"""Bytes. One of these requests once left 395 MB. The allocator's own memory differs by some MB from run to run."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> HostileRun:
    """The results of all requests, sent once to one gateway."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    return asyncio.run(hostile_run(folder))


def harmless(made: HostileRun, number: str) -> list[Attack]:
    attacks = list(made.of(number))
    assert attacks
    for attack in attacks:
        assert attack.status != 0, attack.name
        assert attack.felt.hurt == 0, attack.name
        assert attack.felt.stalled < WORST_STALL, attack.name
    return attacks


@pytest.mark.timeout(300)
def test_threat_01_references_by_name_freeze_nobody(made: HostileRun) -> None:
    assert {attack.status for attack in harmless(made, "01")} == {400}


@pytest.mark.timeout(300)
def test_threat_02_a_deep_answer_under_a_long_chain_crashes_nothing(made: HostileRun) -> None:
    assert made.alive
    statuses = {attack.name: attack.status for attack in harmless(made, "02")}
    assert statuses["02 a chain of a thousand schemas"] == 400
    assert statuses["02 negations under a deep answer"] == 502
    assert statuses["02 the longest chain under the deepest answer"] == 200


@pytest.mark.timeout(300)
def test_threat_03_large_automata_are_not_kept(made: HostileRun) -> None:
    harmless(made, "03")
    assert made.kept < MOST_KEPT


@pytest.mark.timeout(300)
def test_threat_04_patterns_are_read_in_time_linear_in_their_length(made: HostileRun) -> None:
    assert all(attack.cpu < 2.0 for attack in harmless(made, "04"))


@pytest.mark.timeout(300)
def test_threat_05_long_lists_are_read_in_time_linear_in_their_length(made: HostileRun) -> None:
    harmless(made, "05")


@pytest.mark.timeout(300)
def test_threat_06_checks_end_when_they_have_had_their_time(made: HostileRun) -> None:
    statuses = {attack.name: attack.status for attack in harmless(made, "06")}
    assert statuses == {"06 look-around over long leaves": 400, "06 unique items": 200}


@pytest.mark.timeout(300)
def test_threat_07_the_mock_yields_to_others(made: HostileRun) -> None:
    harmless(made, "07")


@pytest.mark.timeout(300)
def test_threat_08_counting_tokens_is_bounded(made: HostileRun) -> None:
    harmless(made, "08")


def test_every_threat_of_costly_requests_has_one() -> None:
    assert {name[:2] for name in COSTLY_REQUESTS} == {f"{number:02}" for number in range(1, 9)}
