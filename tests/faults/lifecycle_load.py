"""F62 to F64: many requests at deployments that are full, just recovered, or all down."""

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from proxy.deployment_health.deployment_queue import DeploymentQueue
from tests.faults.check_answers import good, refusal
from tests.faults.fault_rig import PATIENT, Rig, ok
from tests.faults.registry import fault
from tests.faults.request_outcomes import ONE, assert_accounted, health, unspent_retries
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import json_answer
from tests.support.vendor_script import Until

FULL: Final = 10
"""Retries that an unused budget allows."""


class Stopped:
    """A clock that a test moves."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def stopped(rig: Rig) -> Stopped:
    """Make this clock the clock of the circuits from now on."""
    clock = Stopped(asyncio.get_running_loop().time())
    dispatcher = rig.app.front.dispatcher
    dispatcher.now = dispatcher.reports.now = clock
    dispatcher._context = dispatcher._context._replace(now=clock)
    return clock


async def crowd(rig: Rig, count: int, model: str) -> list[Answer]:
    """Return the responses to `count` concurrent requests."""
    return await asyncio.gather(*(rig.ask(model) for _ in range(count)))


def refusals(answers: Sequence[Answer], code: str) -> int:
    """Return how many responses are such refusals, with a retry after a second."""
    refused = [answer for answer in answers if answer.status != 200]
    for answer in refused:
        assert refusal(answer) == (503, code)
        assert (answer.headers["retry-after"], "x-should-retry" in answer.headers) == ("1", False)
    return len(refused)


async def narrow(rig: Rig, places: int, wait: float) -> DeploymentQueue:
    """Give `one/m` this many slots. A request without a free slot waits for `wait` seconds."""
    await rig.ask()
    (queue,) = rig.app.front.dispatcher.deployments._queues.values()
    queue.bind(places)
    queue._rules = replace(queue._rules, wait=wait)
    return queue


async def until_waiting(queue: DeploymentQueue, count: int) -> None:
    """Wait until `count` requests wait for a slot."""
    while queue.waiting != count:  # noqa: ASYNC110 - it has no event
        await asyncio.sleep(0.001)


@fault(62, PATIENT)
async def more_requests_than_a_deployment_takes(rig: Rig) -> None:
    queue = await narrow(rig, 8, 0.1)
    gate = asyncio.Event()
    rig.one.answer(*[(Until(gate), *ok(rig.stream, "one"))] * 8)
    async with asyncio.TaskGroup() as group:
        inside = group.create_task(crowd(rig, 8, "one/m"))
        await rig.one.received(9)
        assert refusals(await crowd(rig, 20, "one/m"), "overloaded") == 20
        elsewhere = await crowd(rig, 20, "both")
        assert (queue.in_flight, queue.waiting) == (8, 0)
        gate.set()
    assert [good(answer, rig.stream) for answer in inside.result()] == ["one"] * 8
    assert [good(answer, rig.stream) for answer in elsewhere] == ["two"] * 20
    assert {answer.headers["x-dragoman-attempts"] for answer in elsewhere} == {"2"}
    assert len(rig.one.requests) == 9
    assert await rig.attempts(ONE, "busy") == 40
    await assert_accounted(rig)
    assert unspent_retries(rig) == FULL
    assert health(rig).in_flight == 0


@fault(62, PATIENT)
async def queue_for_a_place(rig: Rig) -> None:
    """Twice as many requests may wait as there are slots. The others are refused at once, and the waiting ones are
    served in order."""
    queue = await narrow(rig, 8, 60.0)
    gate = asyncio.Event()
    rig.one.answer(*[(Until(gate), *ok(rig.stream, "one"))] * 8)
    async with asyncio.TaskGroup() as group:
        inside = group.create_task(crowd(rig, 24, "one/m"))
        await until_waiting(queue, 16)
        assert refusals(await crowd(rig, 8, "one/m"), "overloaded") == 8
        assert (queue.in_flight, queue.waiting) == (8, 16)
        gate.set()
    assert [good(answer, rig.stream) for answer in inside.result()] == ["one"] * 24
    assert len(rig.one.requests) == 25


HERD: Final = 200


@fault(63, PATIENT)
async def herd_before_a_deployment_that_comes_back(rig: Rig) -> None:
    clock = stopped(rig)
    rig.one.answer(json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "3")]))
    assert good(await rig.ask("both"), rig.stream) == "two"
    gate = asyncio.Event()
    rig.one.answer((Until(gate), *ok(rig.stream, "one")))
    clock.now += 3.0
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(rig.ask("both")) for _ in range(HERD)]
        while sum(task.done() for task in asked) < HERD - 1:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.005)
        assert len(rig.one.requests) == 2
        assert health(rig).in_flight == 1
        gate.set()
    texts = [good(task.result(), rig.stream) for task in asked]
    assert (texts.count("one"), texts.count("two")) == (1, HERD - 1)
    breakers = rig.app.front.dispatcher.deployments.breakers
    for later, share in ((0.0, 1), (0.5, 5), (0.5, 10), (9.0, 10)):
        clock.now += later
        breakers._draw = itertools.cycle([number / 10 + 0.05 for number in range(10)]).__next__
        before = len(rig.one.requests)
        for _ in range(10):
            good(await rig.ask("both"), rig.stream)
        assert len(rig.one.requests) - before == share


@fault(64)
async def every_deployment_is_ejected(rig: Rig) -> None:
    clock = stopped(rig)
    fails = json_answer(500, {"error": {"message": "broken", "type": "server_error"}})
    rig.one.default = rig.two.default = fails
    for model in ("one/m", "two/m"):
        while health_of(rig, model) < 2:
            assert refusal(await rig.ask(model)) == (502, "upstream_error")
    vendors = rig.one.requests, rig.two.requests

    def heard() -> int:
        return sum(map(len, vendors))

    before = heard()
    for _ in range(3):
        # One request in each scaled second checks whether the outage is over, and no other request waits.
        clock.now += 0.11
        answers = await crowd(rig, 30, "both")
        assert refusals([answer for answer in answers if answer.status == 503], "no_healthy_deployment") == 29
        assert refusals(await crowd(rig, 30, "both"), "no_healthy_deployment") == 30
    assert heard() == before + 3
    rig.one.default = rig.two.default = lambda received: ok(rig.stream, "back")
    clock.now += 0.11
    assert good(await rig.ask("both"), rig.stream) == "back"
    for _ in range(10):
        assert good(await rig.ask("both"), rig.stream) == "back"
    await assert_accounted(rig)


def health_of(rig: Rig, model: str) -> int:
    """Return the state of a model's only deployment, as the gauge shows it."""
    states = rig.app.front.dispatcher.deployments.breakers.states(rig.app.front.dispatcher.now())
    return dict(states).get(f"{model}/default", 0)
