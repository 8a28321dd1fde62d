"""Response times: requests are sent at the times of a clock, and each response is checked. No test checks a time."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.latency import Added, Spent, Way, due_times, quantile, timed_run
from tests.bench.load import WrongAnswer
from tests.bench.probe import expected_whole, probe
from tests.bench.traffic import Ask, chat_request
from tests.bench.upstream import running_upstream
from tests.bench.vendors import OPENAI
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

REQUEST = chat_request(Ask())


def test_requests_are_due_at_the_rate_and_the_same_each_time() -> None:
    due = due_times(1000, 3)
    assert due == due_times(1000, 3)
    assert due == sorted(due)
    assert len(due) == pytest.approx(3000, rel=0.1)
    assert 0 < due[0] < due[-1] < 3


def test_a_quantile_is_one_of_the_times() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(each) for each in range(100)], 0.99) == 99
    assert quantile([1.0], 0.99) == 1.0


def test_what_is_added_is_the_difference_of_the_quietest_runs() -> None:
    added = Added(100, [Spent([0.002], 0.1), Spent([0.001], 0.2)], [Spent([0.004], 0.3), Spent([0.003], 0.1)])
    assert added.median == pytest.approx(2)
    assert added.slow == pytest.approx(2)
    assert added.load_busy == 0.3


def test_a_run_in_which_others_had_the_core_is_disturbed() -> None:
    quiet, noisy = Spent([0.003], 0.1, 0.5, 0.01), Spent([0.002], 0.1, 0.5, 0.03)
    assert Added(100, [quiet], [noisy, replace(quiet, times=[0.004])]).disturbed
    assert not Added(100, [noisy], [quiet]).disturbed


async def test_every_request_that_was_due_is_answered(tmp_path: Path) -> None:
    with running_upstream(tmp_path) as upstream:
        expected = await probe(upstream.port, REQUEST, OPENAI, Ask())
        spent = await timed_run(
            Way(upstream.port, [upstream.pid], [os.getpid()]), REQUEST, expected, due_times(200, 0.2)
        )
    assert len(spent.times) == len(due_times(200, 0.2))
    assert min(spent.times) > 0
    assert spent.load_busy > 0
    assert spent.busy > 0


async def test_a_wrong_answer_is_no_time() -> None:
    async with FakeVendor(json_answer(503, "no")) as vendor:
        with pytest.raises(WrongAnswer):
            await timed_run(Way(vendor.port, (), [os.getpid()]), REQUEST, expected_whole(OPENAI.answer(Ask())), [0.001])
