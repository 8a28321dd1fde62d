"""One guard in use: its calls, its failures, and its log lines."""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from proxy.plugins import running_guard
from proxy.plugins.load_plugins import LoadedPlugin
from proxy.plugins.running_guard import DEADLINE_PASSED, GuardFailed, RunningGuard


class Plain:
    slow = False


class Slow:
    slow = True


def guard(made: object, deadline: float = 1.0) -> RunningGuard:
    return RunningGuard(LoadedPlugin("g", made, deadline, False), logging.getLogger("dragoman"))


def right(value: object) -> str | None:
    return None


async def called_on_loop(running: RunningGuard, *, heavy: bool = False) -> bool:
    """Return whether the guard is called on the event loop."""
    here = threading.get_ident()
    return await running.call(threading.get_ident, right, heavy=heavy) == here


async def test_slow_guards_and_heavy_requests_are_called_in_threads() -> None:
    plain, slow = guard(Plain()), guard(Slow())
    assert (await called_on_loop(plain), await called_on_loop(plain, heavy=True), await called_on_loop(slow)) == (
        True,
        False,
        False,
    )
    assert (plain.calls, slow.calls) == (2, 1)
    for each in (plain, slow):
        each.close()


async def test_a_call_that_hangs_fails_at_its_deadline_and_keeps_its_thread() -> None:
    running, release = guard(Slow(), 0.02), threading.Event()
    for _ in range(3):  # of two threads
        with pytest.raises(GuardFailed, match=DEADLINE_PASSED):
            await running.call(release.wait, right, heavy=False)
    release.set()
    running.plugin = replace(running.plugin, deadline=5.0)
    assert await running.call(lambda: True, right, heavy=False)
    running.close()


class Clock:
    """A clock that work advances."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def block(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("deadline", "blocks", "between", "on_loop"),
    [
        (1.0, [0.9, 0.9, 0.9], 0.0, False),
        (1.0, [0.06, 0.001, 0.06, 0.001, 0.06], 1.0, False),
        (1.0, [0.06, 0.06], 0.0, True),
        (1.0, [0.04] * 50, 0.0, True),
        (1.0, [0.9] * 9, 40.0, True),  # a busy machine, occasionally
        (0.005, [0.02] * 3, 0.0, False),
    ],
)
async def test_a_guard_that_blocks_the_loop_again_and_again_is_called_in_threads(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    deadline: float,
    blocks: list[float],
    between: float,
    on_loop: bool,
) -> None:
    clock = Clock()
    monkeypatch.setattr(running_guard, "loop_clock", lambda: clock)
    running = guard(Plain(), deadline)
    for block in blocks:
        with suppress(GuardFailed):
            await running.call(partial(clock.block, block), right, heavy=False)
        clock.now += between
    running.plugin = replace(running.plugin, deadline=5.0)
    assert await called_on_loop(running) is on_loop
    assert await called_on_loop(running) is on_loop
    said = [each for each in caplog.messages if each.startswith("plugin g blocked the event loop")]
    assert len(said) == (0 if on_loop else 1)
    running.close()


async def test_a_cancelled_request_is_no_failure_of_its_guard() -> None:
    running, release = guard(Slow()), threading.Event()
    task = asyncio.create_task(running.call(release.wait, right, heavy=False))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    running.close()


async def test_what_is_raised_is_told_without_its_text() -> None:
    def fails() -> None:
        raise ValueError("the prompt")

    with pytest.raises(GuardFailed) as caught:
        await guard(Plain()).call(fails, right, heavy=False)
    assert caught.value.why.startswith("raised ValueError at test_running_guard.py:")


async def test_failures_are_logged_once_until_it_works_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "dragoman")
    running = guard(Plain())
    work: Callable[[], None] = list[None]().clear
    for _ in range(3):
        with pytest.raises(GuardFailed) as caught:
            await running.call(work, lambda value: "returned nothing", heavy=False)
        running.failed(caught.value)
    await running.call(work, right, heavy=False)
    assert caplog.messages == [
        "plugin g returned nothing; requests are refused while that is so",
        "plugin g works again",
    ]
    assert running.failures == 3


async def test_one_that_fails_now_and_then_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("WARNING", "dragoman")  # without the message that it works again
    running = guard(Plain())
    work: Callable[[], None] = list[None]().clear
    for silence in (60.0, 60.0, 60.0, 0.0):
        monkeypatch.setattr(running_guard, "LOG_INTERVAL", silence)
        running.failed(GuardFailed("returned nothing"))
        await running.call(work, right, heavy=False)
    line = "plugin g returned nothing; requests are refused while that is so"
    assert caplog.messages == [line, f"{line} (3 failures since the last message)"]
    assert running.failures == 4
