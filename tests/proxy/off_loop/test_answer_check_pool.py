"""Checks in worker processes: real processes, ended when they cost too much, replaced, and shared by teams."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from providers.emulation.check_answer import AnswerCheck, CheckKind
from proxy.off_loop import answer_check_pool as answer_checks
from proxy.off_loop.answer_check_pool import AnswerChecks, CheckFailed, TooCostly
from tests.proxy.kit.costly_constraints import COSTLY, check_of
from tests.support.waiting import until

NUMBERS = check_of({"type": "array", "items": {"type": "integer"}})
SLOW, SLOW_TEXT = COSTLY["look-around over long leaves"]


@asynccontextmanager
async def checks() -> AsyncIterator[AnswerChecks]:
    made = AnswerChecks()
    before = children()
    try:
        yield made
    finally:
        await made.aclose()
    assert children() == before


def children() -> set[int]:
    own = str(os.getpid())
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue  # it has ended meanwhile
        if rest.split()[1] == own:
            found.add(int(name.split()[0]))
    return found


def environment(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes()


@pytest.fixture
async def made() -> AsyncIterator[AnswerChecks]:
    async with checks() as made:
        yield made


@pytest.mark.smoke
async def test_a_constraint_is_compiled_and_answers_are_held_against_it(made: AnswerChecks) -> None:
    assert await made.problem(NUMBERS, "a") is None
    assert await made.breach(NUMBERS, "[1]", "a") is None
    assert await made.breach(NUMBERS, '["x"]', "a") == "it does not satisfy the schema"
    large = AnswerCheck("guided_regex", CheckKind.PATTERN, b"((a{900}){900}){900}")
    reason = "the response could not be checked, since the pattern is too large to be checked"
    assert [await made.problem(large, "a") for _ in range(2)] == [reason, reason]


@pytest.mark.smoke
async def test_what_takes_no_time_is_checked_here_without_a_process(made: AnswerChecks) -> None:
    before = children()
    word = AnswerCheck("guided_choice", CheckKind.CHOICE, choices=frozenset({"yes"}))
    assert await made.problem(word, "a") is None
    assert await made.breach(word, "no", "a") == "it is none of the choices"
    assert await made.breach(AnswerCheck("response_format", CheckKind.OBJECT), "{}", "a") is None
    assert children() == before


async def test_a_check_that_costs_too_much_ends_its_process_and_the_next_one_gets_another(made: AnswerChecks) -> None:
    with pytest.raises(TooCostly, match="takes too much time"):
        await made.breach(SLOW, SLOW_TEXT, "a")
    assert await made.breach(NUMBERS, "[1]", "a") is None


async def test_a_process_that_was_killed_while_it_waited_is_replaced_unseen(made: AnswerChecks) -> None:
    before = children()
    assert await made.breach(NUMBERS, "[1]", "a") is None
    (process,) = children() - before
    os.kill(process, signal.SIGKILL)
    await asyncio.sleep(0.2)
    assert await made.breach(NUMBERS, "[1]", "a") is None


async def test_one_that_ends_for_its_memory_just_as_it_is_asked_again_is_replaced_unseen(made: AnswerChecks) -> None:
    assert await made.problem(NUMBERS, "a") is None
    (process,) = made._idle
    process._writer.get_extra_info("socket").shutdown(socket.SHUT_WR)
    assert await made.breach(NUMBERS, "[1, 2, 3]", "a") is None
    assert await made.problem(check_of({"type": "array", "items": {"type": "null"}}), "a") is None
    assert process not in made._idle


async def test_a_client_that_leaves_takes_its_process_along(made: AnswerChecks) -> None:
    task = asyncio.ensure_future(made.breach(SLOW, SLOW_TEXT, "a"))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await made.breach(NUMBERS, '["x"]', "a") == "it does not satisfy the schema"


async def test_one_team_s_checks_leave_a_process_to_the_others(made: AnswerChecks) -> None:
    await made.problem(NUMBERS, "light")
    greedy = [asyncio.ensure_future(made.breach(SLOW, SLOW_TEXT, "greedy")) for _ in range(6)]
    await asyncio.sleep(0.05)
    assert await made.breach(NUMBERS, "[1]", "light") is None
    assert not all(task.done() for task in greedy)
    await asyncio.gather(*greedy, return_exceptions=True)


async def test_processes_without_work_are_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_checks, "IDLE_SECONDS", 0.1)
    async with checks() as made:
        before = children()
        running = asyncio.ensure_future(made.run())
        assert await made.breach(NUMBERS, "[1]", "a") is None
        await until(lambda: children() == before)
        assert await made.breach(NUMBERS, "[1]", "a") is None
        running.cancel()


async def test_where_no_process_can_be_started_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with checks() as made:
        with pytest.raises(CheckFailed):
            await made.breach(NUMBERS, "[1]", "a")


async def test_no_secret_of_the_environment_reaches_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    async with checks() as made:
        before = children()
        assert await made.breach(NUMBERS, "[1]", "a") is None
        (process,) = children() - before
        assert b"canary" not in environment(process)
