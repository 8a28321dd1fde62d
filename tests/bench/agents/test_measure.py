"""Costs and their growth, and a gateway that is measured. No test checks a time."""

import os
import sys
from pathlib import Path

import pytest

from tests.bench.agents.beside import in_flight, light_times, peak_bytes
from tests.bench.agents.bodies import LARGE, SMALL
from tests.bench.agents.hostile import Hostile
from tests.bench.agents.measure import AgentsRow, Cost, growth_of, measured_rows
from tests.bench.agents.rows import Row, chosen_rows
from tests.bench.measure import Times
from tests.bench.programs.gateway import Build
from tests.bench.upstream import running_upstream


def cost(size: int, seconds: float) -> Cost:
    return Cost(Row("chat", "openai", size, spaced=False), size, 0.001, [seconds * 2, seconds])


def test_the_cheapest_turn_counts() -> None:
    found = cost(SMALL, 0.004)
    assert (found.milliseconds, found.times_floor) == (4, 4)


def test_growth_is_for_ten_times_the_bytes() -> None:
    assert growth_of([cost(SMALL, 0.004), cost(LARGE, 0.036)]) == {"chat → openai, compact": pytest.approx(9)}
    assert growth_of([cost(SMALL, 0.004), Cost(Row("chat", "openai", LARGE, spaced=False), LARGE, 0.001)]) == {}


@pytest.mark.timeout(180)
async def test_the_gateway_answers_every_row(tmp_path: Path) -> None:
    with running_upstream(tmp_path) as upstream, Build().start(tmp_path, upstream) as target:
        found: list[AgentsRow] = [*chosen_rows(["300 KB, spaced"]), Hostile("densest", "openai", SMALL)]
        costs = await measured_rows([target], found, sys.executable, 0, Times(turns=1))
        assert [each.failure for each in costs["gateway"]] == [""] * len(found)
        assert peak_bytes([target.pid]) > 0
        request = chosen_rows(["chat → openai, 300 KB"])[0].request(target)
        assert request is not None
        async with in_flight(target.port, request):
            assert await light_times(target, min(os.sched_getaffinity(0)))
