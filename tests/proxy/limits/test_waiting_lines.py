"""Waiting for a limit: in order, for a bounded time, by a bounded number."""

import asyncio

import pytest

from proxy.limits.concurrency import Slots
from proxy.limits.limit import Unit
from proxy.limits.limit_views import Exceeded, LimitKind
from proxy.limits.reservation import NO_METERS, Reservation
from proxy.limits.waiting_lines import WaitingLines
from tests.proxy.kit.virtual_time import in_virtual_time


def refused(wait: float) -> Exceeded:
    return Exceeded("team t", LimitKind.RATE, Unit.REQUESTS, None, 1, 1, 1, wait, None)


def now() -> float:
    return asyncio.get_running_loop().time()


class Gate:
    """A gate that opens at a moment, and admits one request every `apart` seconds."""

    def __init__(self, at: float, apart: float = 0.0) -> None:
        self.at = at
        self.apart = apart
        self.attempts = 0

    async def attempt(self) -> Reservation | Exceeded:
        self.attempts += 1
        if now() < self.at - 1e-9:
            return refused(self.at - now())
        self.at = now() + self.apart
        return Reservation(NO_METERS, 0, None)


@in_virtual_time
async def test_who_came_first_passes_first_and_only_the_first_tries() -> None:
    lines, gate, passed = WaitingLines(now), Gate(1.0, 1.0), []

    async def one(number: int) -> None:
        outcome = await lines.wait(refused(1.0), 60.0, gate.attempt, None)
        assert isinstance(outcome, Reservation)
        passed.append((number, round(now(), 2)))

    await asyncio.gather(*(one(number) for number in range(5)))
    assert [number for number, _ in passed] == [0, 1, 2, 3, 4]
    assert passed[-1][1] <= 5.1
    assert gate.attempts <= 10
    assert lines.lines == {}


@in_virtual_time
async def test_patience_ends_with_what_the_first_was_told() -> None:
    lines = WaitingLines(now)
    gate = Gate(1000.0)
    first = asyncio.create_task(lines.wait(refused(0.5), 2000.0, gate.attempt, None))
    await asyncio.sleep(0)
    outcome = await lines.wait(refused(0.5), 2.0, gate.attempt, None)
    assert isinstance(outcome, Exceeded)
    assert outcome.wait > 900
    assert now() == pytest.approx(2.0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert lines.lines == {}


@in_virtual_time
async def test_what_cannot_pass_in_time_is_told_at_once() -> None:
    outcome = await WaitingLines(now).wait(refused(0.5), 2.0, Gate(1000.0).attempt, None)
    assert isinstance(outcome, Exceeded)
    assert now() == pytest.approx(0.5)


@in_virtual_time
async def test_a_client_that_leaves_makes_room_for_the_next() -> None:
    lines, gate = WaitingLines(now), Gate(1.0)
    first = asyncio.create_task(lines.wait(refused(50.0), 60.0, gate.attempt, None))
    await asyncio.sleep(0)
    second = asyncio.create_task(lines.wait(refused(1.0), 60.0, gate.attempt, None))
    await asyncio.sleep(0.5)
    first.cancel()
    line = lines.lines["team t"]
    line.nudge()
    await asyncio.sleep(1.0)
    line.nudge()
    assert isinstance(await second, Reservation)
    assert now() < 2.0


@in_virtual_time
async def test_a_place_that_is_released_is_passed_on_at_once() -> None:
    lines, slots, gate = WaitingLines(now), Slots(1), Gate(0.2)
    slots.take(1, 0.0, 0.0)
    waiting = asyncio.create_task(lines.wait(refused(5.0), 60.0, gate.attempt, slots))
    await asyncio.sleep(0.3)
    slots.settle(1, 1)
    assert isinstance(await waiting, Reservation)
    assert now() == pytest.approx(0.3)
    assert slots.freed is None


@in_virtual_time
async def test_a_full_line_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.limits.waiting_lines.MAX_WAITING", 2)
    lines, gate = WaitingLines(now), Gate(1.0)
    waiting = [asyncio.create_task(lines.wait(refused(1.0), 60.0, gate.attempt, None)) for _ in range(2)]
    await asyncio.sleep(0)
    assert isinstance(await lines.wait(refused(1.0), 60.0, gate.attempt, None), Exceeded)
    assert now() == 0
    await asyncio.gather(*waiting)
