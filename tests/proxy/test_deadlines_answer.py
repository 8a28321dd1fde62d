"""How long the gateway waits for a response to begin: which events end the wait, and which work continues meanwhile."""

import asyncio

import pytest

from proxy.deadlines import Deadlines, Phase
from tests.proxy.kit.deadline_outcomes import AGES, attempt, deadline_of, passes


@pytest.mark.parametrize("phase", [Phase.ANSWER, Phase.FIRST_EVENT])
def test_an_answer_that_does_not_begin_passes_its_limit_whatever_signs_of_life_come(phase: Phase) -> None:
    async def work(clock: Deadlines) -> None:
        clock.expect(phase, 30.0)
        for _ in range(100):
            await asyncio.sleep(1)
            clock.enter(Phase.IDLE, 5.0)

    assert deadline_of(work) == (phase, 30.0, 30.0)


@passes(Phase.IDLE, 5.0, 5.0)
async def test_silence_counts_beside_the_wait_for_an_answer(clock: Deadlines) -> None:
    clock.expect(Phase.ANSWER, 30.0)
    clock.enter(Phase.IDLE, 5.0)
    await asyncio.sleep(AGES)


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_an_answer_that_has_begun_is_waited_for_no_more(clock: Deadlines) -> None:
    clock.expect(Phase.ANSWER, 30.0)
    await asyncio.sleep(29)
    clock.begun()
    await asyncio.sleep(AGES)


@pytest.mark.parametrize("limit", [None, 50.0])
def test_another_call_is_waited_for_anew(limit: float | None) -> None:
    async def work(clock: Deadlines) -> None:
        clock.expect(Phase.ANSWER, 30.0)
        clock.enter(Phase.IDLE, 5.0)
        await asyncio.sleep(4)
        clock.expect(Phase.ANSWER, limit)
        await asyncio.sleep(AGES)

    assert deadline_of(work) == ((Phase.TOTAL, 600.0, 600.0) if limit is None else (Phase.ANSWER, 50.0, 54.0))


@passes(Phase.TOTAL, 600.0, 600.0)
async def test_no_wait_for_an_answer_outlives_its_try(clock: Deadlines) -> None:
    with attempt(clock, None):
        clock.expect(Phase.ANSWER, 30.0)
    await asyncio.sleep(AGES)
