"""The loads at and beyond the capacity are sent and counted correctly. No test checks a capacity."""

import asyncio
import os
import time
from pathlib import Path

import uvloop

from tests.proxy.kit.raw_client import request
from tests.support.http_scripts import body_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script
from tests.trust import load_capacity
from tests.trust.load_capacity import Lags, queued
from tests.trust.load_open import OpenLoad


async def test_a_load_goes_on_at_its_rate_whatever_the_answers_are() -> None:
    def serve(received: Received) -> Script:
        number = len(vendor.requests)
        headers = [("connection", "close")] if number % 7 == 0 else []
        return body_answer(503 if number % 5 == 0 else 200, b"x", headers)

    async with FakeVendor(serve) as vendor:
        tally = await OpenLoad(vendor.port, request("POST", "/", b"{}"), 200.0, 0.5, 20).run(5.0)
    assert (len(tally.times(200)), len(tally.times(503)), tally.lost) == (80, 20, 0)
    assert tally.goodput == 160.0
    assert [answer.due for answer in sorted(tally.answers, key=lambda each: each.due)][-1] == 99 / 200


async def test_a_load_tells_for_how_long_it_stood_still() -> None:
    def serve(received: Received) -> Script:
        time.sleep(0.02)
        return body_answer(200, b"x")

    async with FakeVendor(serve) as vendor:
        load = OpenLoad(vendor.port, request("POST", "/", b"{}"), 20.0, 0.5, 4)
        tally = await load.run(5.0)
    assert len(tally.times(200)) == 10
    assert load.stalled >= 0.1


async def test_what_has_no_answer_is_lost() -> None:
    async with asyncio.timeout(40), FakeVendor(()) as vendor:
        tally = await OpenLoad(vendor.port, request("POST", "/", b"{}"), 100.0, 0.1, 4).run(0.1)
    assert (tally.answers, tally.lost) == ([], 10)


def test_what_the_machine_gave_to_others_is_not_the_gateways_own_lag() -> None:
    lags = Lags([(0.5, 0.45), (0.1, 0.0), (0.01, 0.3)])
    assert (lags.worst, round(lags.own, 3)) == (0.5, 0.1)
    assert Lags().worst == Lags().own == 0.0
    assert (lags.clear(0.0), lags.clear(0.3), Lags().clear(1.0)) == (1 / 3, 2 / 3, 0.0)
    assert queued(os.getpid()) >= 0


def test_a_lag_is_held_against_all_that_happened_while_it_was_shown() -> None:
    marks = [(10.0, 1.0), (10.5, 1.2), (11.0, 4.0)]
    assert [load_capacity.before(marks, when) for when in (9.0, 10.4, 10.5, 10.9, 12.0)] == [1.0, 1.0, 1.2, 1.2, 4.0]


def test_an_overload_is_measured(tmp_path: Path) -> None:
    seen = uvloop.run(load_capacity.overload(tmp_path, 1.8, 0.05, 60))
    assert seen.peak > 0
    assert len(seen.crowd.answers) + seen.crowd.lost == int(3 * seen.peak * 1.8)
    assert {answer.status for answer in seen.crowd.answers} <= {200, 503}


def test_lags_are_measured(tmp_path: Path) -> None:
    seen = uvloop.run(load_capacity.lagged(tmp_path, 0.6, 40, 2**20))
    assert seen.rate > 0
    assert seen.half.seen
    assert seen.heavy.seen
