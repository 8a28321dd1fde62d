"""Compare the CPU time of work with that of other work, measured in the same moments on the same machine.

No limit in seconds is needed. The time of the thread is counted, and of many rounds the cheapest. A busy machine adds
to the time of a thread (faults of pages, caches that others have emptied, other guests of the hypervisor), but not to
every round. Whatever a program does too much, it does in every round.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

import orjson

TIMES: Final = 4
"""The ratio of the sizes of two inputs."""

MOST: Final = 2.5 * TIMES
"""The most that the larger input's work may be, in times the smaller one's; a quadratic one takes 16 times."""

SLACK: Final = 0.02
"""Seconds of difference that count as noise."""

ROUNDS: Final = 20
"""Rounds after which work is taken for too much. One is enough if it is not."""

LONGEST: Final = 10.0
"""Seconds after which there are no more rounds, of which there are two at least."""

YARDSTICK: Final = b"[" + b"1," * 2**19 + b"1]"
"""A megabyte of JSON, whose reading is what work is measured by that has no smaller input. It takes some
milliseconds."""


def seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of one call, without the collector, whose share depends on what else is alive."""
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()


def growth(small: Callable[[], object], large: Callable[[], object]) -> str:
    """Return why the work for the larger input is more than its size explains. Return an empty text if it is not."""
    before, after = _cheapest(small, large, MOST)
    if _is_fine(before, after, MOST):
        return ""
    return f"{before * 1000:.1f} ms became {after * 1000:.1f} ms for {TIMES} times the input"


def excess(work: Callable[[], object], most: float) -> str:
    """Return why work is more than so many times the reading of YARDSTICK. Return an empty text if it is not."""
    measure, cost = _cheapest(lambda: orjson.loads(YARDSTICK), work, most)
    if _is_fine(measure, cost, most):
        return ""
    return f"{cost * 1000:.1f} ms are {cost / measure:.0f} times the measure of {measure * 1000:.1f} ms, not {most:g}"


def _cheapest(control: Callable[[], object], work: Callable[[], object], most: float) -> tuple[float, float]:
    """Return the least time of both. Measure both in turn until the work is found cheap, or for all rounds."""
    measure = cost = float("inf")
    spent = 0.0
    for number in range(ROUNDS):
        took = seconds(work)
        cost = min(cost, took)
        measure = min(measure, seconds(control), seconds(control))
        spent += took
        if _is_fine(measure, cost, most) or (number and spent > LONGEST):
            break
    return measure, cost


def _is_fine(measure: float, cost: float, most: float) -> bool:
    return cost <= most * measure + SLACK
