"""When an event loop counts as frozen, by the state that the detector sees at each look. Real processes:
tests/security/test_stall.py."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from proxy.process.freeze_watchdog import LOOK_EVERY, FreezeDetector, ThreadState, main_thread


def _same(state: ThreadState | None) -> ThreadState | None:
    return state


def stands(
    states: list[ThreadState | None], *, limit: float = 1.0, look: float = LOOK_EVERY, beats: int = 7
) -> list[float]:
    """Return how long an event loop without ticks has been frozen at each look, up to the look that ends it."""
    guard, found = FreezeDetector(limit), []
    guard.look(beats, 100.0, lambda: None)
    for number, state in enumerate(states, 1):
        over = guard.look(beats, 100.0 + number * look, partial(_same, state))
        found.append(guard.frozen_for)
        if over:
            return found
    return [*found, -1.0]


def running(*cpu: float) -> list[ThreadState | None]:
    return [ThreadState("R", seconds) for seconds in cpu]


@pytest.mark.smoke
def test_a_thread_that_waits_in_a_call_stands_for_as_long_as_it_waits() -> None:
    assert stands([ThreadState("S", 3.0)] * 9) == [0.25, 0.5, 0.75, 1.0, 1.25]


@pytest.mark.smoke
def test_a_thread_that_runs_stands_for_the_time_it_got() -> None:
    assert stands(running(5.0, 5.25, 5.5, 5.75, 6.0, 6.25)) == [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert stands(running(5.0, 5.01, 5.02, 5.03))[-1] == -1.0


def test_a_thread_that_is_stopped_traced_or_at_a_disk_does_not_stand() -> None:
    for letter in "TtD":
        assert stands([ThreadState(letter, 3.0)] * 1000)[-2:] == [0.0, -1.0]


def test_where_the_system_does_not_tell_time_counts() -> None:
    assert stands([None] * 9) == [0.25, 0.5, 0.75, 1.0, 1.25]


def test_looks_that_did_not_come_count_for_two_at_most() -> None:
    assert stands([ThreadState("S", 3.0)] * 2, look=3600.0) == [2 * LOOK_EVERY, 4 * LOOK_EVERY, -1.0]


def test_a_tick_begins_anew_and_costs_no_question() -> None:
    guard = FreezeDetector(1.0)

    def unasked() -> None:
        raise AssertionError("asked")

    for number in range(1, 100):
        assert not guard.look(number, number * LOOK_EVERY, unasked)
    guard.look(99, 100 * LOOK_EVERY, lambda: None)
    assert guard.frozen_for == LOOK_EVERY
    guard.look(100, 101 * LOOK_EVERY, unasked)
    assert guard.frozen_for == 0.0


def test_a_loop_that_never_ticked_does_not_stand() -> None:
    assert stands([None] * 1000, beats=0)[-1] == -1.0


STANDING = """
import signal
from proxy.process.freeze_watchdog import FreezeWatchdog
from proxy.process.heartbeat import Heartbeat
def standing():
    sum(range(10**13))
with FreezeWatchdog(Heartbeat.private(), 1.0, "json"):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    standing()
"""
"""The loop's thread is blocked in native code, and another thread gets the signal."""


def test_where_the_loop_stands_is_said_whichever_thread_gets_the_signal() -> None:
    ended = subprocess.run([sys.executable, "-c", STANDING], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == signal.SIGPROF
    assert " in standing\n" in ended.stderr


def test_the_system_tells_of_this_very_thread() -> None:
    before = main_thread(os.getpid())
    assert before is not None
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    after = main_thread(os.getpid())
    assert after is not None
    assert after.cpu > before.cpu
    assert main_thread(2**22 + 1) is None
