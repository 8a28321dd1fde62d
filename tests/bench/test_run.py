"""The command line, and a complete run with tiny numbers on real sockets. No test checks a time."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.measure import Times
from tests.bench.programs.control import CONTROL
from tests.bench.report import report
from tests.bench.run import KNOWN, STEPS, bench, ordered


def test_without_arguments_the_core_is_measured_beside_nginx_and_what_asyncio_costs_by_itself() -> None:
    order = ordered([])
    assert (order.full, order.words, order.beside, order.peers) == (False, [], ["nginx", "bare-relay"], [])
    assert (order.times, order.steps, order.write) == (Times(), STEPS, False)
    assert Path(order.python).samefile(sys.executable)


def test_a_full_run_is_beside_all_that_is_known() -> None:
    order = ordered(["--full", "--report", "--turns", "5", "--window", "3", "--only", "cpu,memory"])
    assert (order.full, order.write, order.beside) == (True, True, list(KNOWN))
    assert (order.times.turns, order.times.window) == (5, 3)
    assert order.steps == {"cpu", "memory"}


def test_other_checkouts_and_gateways_are_named() -> None:
    order = ordered(["--against", "before=there", "--peer", "A=a.sh", "--peer", "B=b.sh", "--beside", ""])
    assert order.against == {"before": Path("there")}
    assert (order.peers, order.beside) == (["A=a.sh", "B=b.sh"], [])


def test_an_unknown_program_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        ordered(["--beside", "nginx,caddy"])
    assert "caddy" in capsys.readouterr().err


TINY = replace(
    ordered(["--case", "bedrock request, TLS"]),
    beside=(),
    times=Times(turns=1, ramp=0.05, window=0.2, clocked=0.2, settle=0.05, idle=5, starts=1),
)


@pytest.mark.timeout(180)
async def test_a_run_measures_its_cases_times_and_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = replace(TINY, steps=frozenset({"cpu", "latency", "memory"}))
    found = await bench(order, tmp_path, "the command")
    assert found.versions.keys() == found.memory.keys() == {"gateway"}
    assert found.added.keys() == {"gateway", CONTROL}
    assert found.start is not None
    assert found.workers is None
    assert "### bedrock request, TLS" in report(found)
    assert "no result" not in capsys.readouterr().out


@pytest.mark.nightly
@pytest.mark.timeout(180)
async def test_a_run_measures_two_workers_beside_one_process(tmp_path: Path) -> None:
    found = await bench(replace(TINY, steps=frozenset({"workers"})), tmp_path, "the command")
    assert found.workers is not None
    assert found.workers.one.turns
    assert found.workers.two.turns
    assert "## Two workers" in report(found)


def test_agents_requests_are_measured_by_themselves() -> None:
    assert ordered(["--case", "agents"]).steps == {"cpu", "agents"}
    assert ordered(["--case", "agents", "--only", "agents"]).steps == {"agents"}
    assert ordered(["--case", "TLS"]).steps == STEPS


def test_short_ways_take_ten_turns() -> None:
    assert (ordered(["--ablate"]).ablate, ordered(["--ablate"]).times.turns) == (True, 10)
    assert ordered(["--ablate", "--turns", "2"]).times.turns == 2
