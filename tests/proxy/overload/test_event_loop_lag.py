"""Lags by their values, ticks in virtual time, and the watchdog's thread beside a loop that really stands still."""

import asyncio
import logging
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.overload.event_loop_lag import (
    MAX_STACK,
    WINDOW_TICKS,
    LagRules,
    Lags,
    LoopLag,
    Stalls,
    Watchdog,
    thread_stack,
)
from tests.proxy.kit.virtual_time import in_virtual_time

SCALED = LagRules(tick=0.01, stall=0.05, look=0.01)


def lags(*values: float) -> tuple[float, float]:
    made, now = Lags(), 0.0
    for value in values:
        now += 0.1 + value
        made.add(value, now)
    return made.steady, made.max


def test_before_the_first_tick_nothing_lags() -> None:
    assert lags() == (0.0, 0.0)


def test_a_pause_is_no_lag_and_neither_are_two_in_a_second() -> None:
    for ticks in range(20):
        assert lags(30.0, *[0.0] * ticks)[0] == 0.0
        assert lags(0.7, 0.3, *[0.0] * ticks)[0] == 0.0


def test_a_lag_counts_when_it_has_lasted_a_second() -> None:
    assert lags(*[0.2] * 5) == (0.0, 0.2)
    assert lags(*[0.2] * 6) == (0.2, 0.2)
    assert lags(*[0.4] * 3) == (0.0, 0.4)
    assert lags(*[0.4] * 4) == (0.4, 0.4)


def test_a_lag_that_rises_counts_with_what_it_was_a_second_ago() -> None:
    assert lags(*[0.2] * 10, *[0.5] * 2) == (0.2, 0.5)
    assert lags(*[0.2] * 10, *[0.5] * 5) == (0.5, 0.5)


def test_a_lag_is_over_when_nine_ticks_were_punctual() -> None:
    assert lags(*[0.4] * 10, *[0.0] * 8) == (0.4, 0.4)
    assert lags(*[0.4] * 10, *[0.0] * 9) == (0.0, 0.4)
    assert lags(*[0.4] * 10, *[0.0] * 10) == (0.0, 0.0)


@given(st.lists(st.floats(0, 1e3), min_size=WINDOW_TICKS))
def test_two_of_the_last_ten_ticks_were_as_late_as_the_steady_lag(values: list[float]) -> None:
    steady, worst = lags(*values)
    last = values[-WINDOW_TICKS:]
    assert sum(value >= steady for value in last) >= 2
    assert worst == max(last)


@in_virtual_time
async def test_ticks_come_every_tenth_of_a_second_and_tell_the_worst_lag_of_the_last_second() -> None:
    loop, late = asyncio.get_running_loop(), 0.0
    told: list[float] = []
    lag = LoopLag(LagRules(), lambda lags: told.append(lags.max), lambda: loop.time() + late)
    ticking = asyncio.create_task(lag.run())
    await asyncio.sleep(0.25)
    late = 0.5
    assert lag.due == pytest.approx(0.3)
    await asyncio.sleep(0.1)
    assert told == pytest.approx([0.0, 0.0, 0.5])
    await asyncio.sleep(0.5)
    assert told == pytest.approx([0.0, 0.0, *[0.5] * 6])
    await asyncio.sleep(0.5)
    assert told[-1] == pytest.approx(0.0)
    ticking.cancel()
    await asyncio.gather(ticking, return_exceptions=True)
    assert lag.due == float("inf")


@in_virtual_time
async def test_a_clock_that_is_ahead_of_the_loop_s_timers_is_no_negative_lag() -> None:
    told: list[float] = []
    lag = LoopLag(LagRules(), lambda lags: told.append(lags.max), lambda: 5.0)
    ticking = asyncio.create_task(lag.run())
    await asyncio.sleep(0.15)
    ticking.cancel()
    assert told == [0.0]


def test_a_stall_is_told_once_and_the_next_one_again() -> None:
    stalls = Stalls(1.0)
    assert not stalls.noticed(due=10.0, now=11.0)
    assert stalls.noticed(due=10.0, now=11.1)
    assert not stalls.noticed(due=10.0, now=3600.0)
    assert not stalls.noticed(due=3600.1, now=3600.2)
    assert stalls.noticed(due=3600.1, now=3700.0)
    assert not stalls.noticed(due=float("inf"), now=9999.0)


class LoggedLines(logging.Handler):
    """The logged lines, and an event for the thread that waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.came = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Store the line and set the event."""
        self.lines.append(record.getMessage())
        self.came.set()


@pytest.fixture
def log() -> Iterator[tuple[logging.Logger, LoggedLines]]:
    """Return a logger with its lines."""
    logger, lines = logging.getLogger("tests.watchdog"), LoggedLines()
    logger.addHandler(lines)
    logger.propagate = False
    yield logger, lines
    logger.removeHandler(lines)


def stand_still(lines: LoggedLines, password: str) -> bool:
    """Block the event loop until the watchdog logged; return whether it did."""
    assert password
    return lines.came.wait(30)


async def test_f69_a_loop_that_stands_still_is_told_once_with_its_stack_and_without_values(
    log: tuple[logging.Logger, LoggedLines],
) -> None:
    logger, lines = log
    lag = LoopLag(SCALED, lambda lags: None)
    ticking = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    with Watchdog(lag, logger):
        assert stand_still(lines, "hunter2")
        lines.came.clear()
        assert not lines.came.wait(10 * SCALED.stall), "told twice"
        due = lag.due
        while lag.due == due:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0)
        assert stand_still(lines, "hunter2")
    ticking.cancel()
    first, second = lines.lines
    for line in (first, second):
        assert line.startswith("the event loop has stood still for ")
        assert " < overload/test_event_loop_lag.py:" in line
        assert "stand_still" in line
        assert "hunter2" not in line
        assert "\n" not in line


def test_a_watchdog_without_ticks_is_silent_and_ends(log: tuple[logging.Logger, LoggedLines]) -> None:
    logger, lines = log
    with Watchdog(LoopLag(SCALED, lambda lags: None), logger):
        assert not lines.came.wait(5 * SCALED.stall)
    assert not any(thread.name == "watchdog" for thread in threading.enumerate())


def deeper(depth: int) -> str:
    return deeper(depth - 1) if depth else thread_stack(threading.get_ident())


def test_a_deep_stack_is_cut_at_its_outer_end() -> None:
    text = deeper(300)
    assert len(text) == MAX_STACK
    assert text.startswith("overload/event_loop_lag.py:")
    assert text.split(" < ")[1].endswith(" deeper")


def test_a_name_that_would_break_the_line_is_escaped() -> None:
    space: dict[str, str] = {}
    source = "text = stack(thread)"
    names = {"stack": thread_stack, "thread": threading.get_ident()}
    exec(compile(source, "a\nb\x1b[31m\u2028.py", "exec"), names, space)  # noqa: S102
    assert r" < a\nb\x1b[31m\u2028.py:1 <module>" in space["text"]
    assert space["text"].isascii()
    assert space["text"].isprintable()


def test_a_thread_that_is_gone_stands_nowhere() -> None:
    assert thread_stack(0) == "an unknown place"
