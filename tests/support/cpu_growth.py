"""Compare the CPU time of work with the CPU time of other work, measured alternately on the same machine.

No limit in seconds is needed. The CPU time of the thread is measured, and the cheapest of many rounds counts. A busy
machine adds to the time of a thread (page faults, caches that other processes have evicted, other guests of the
hypervisor), but not to every round. Superfluous work of a program takes time in every round.
"""

import gc
import time
from collections.abc import Callable
from typing import Final

import orjson

TIMES: Final = 4
"""The ratio of the sizes of two inputs."""

MOST: Final = 2.5 * TIMES
"""The most that the larger input's work may take, as a multiple of the smaller input's work. Quadratic work takes 16
times."""

SLACK: Final = 0.02
"""Seconds of difference that count as noise."""

ROUNDS: Final = 20
"""Rounds after which work counts as too expensive. One round is enough if the work is cheap."""

LONGEST: Final = 10.0
"""Seconds after which no further round starts. At least two rounds are made."""

YARDSTICK: Final = b"[" + b"1," * 2**19 + b"1]"
"""A megabyte of JSON. Work that has no smaller input is measured against the time of parsing it, some milliseconds."""


def seconds(work: Callable[[], object]) -> float:
    """Measure the CPU time of one call, without garbage collection, whose time depends on the other objects alive."""
    gc.disable()
    try:
        start = time.thread_time()
        work()
        return time.thread_time() - start
    finally:
        gc.enable()


def growth(small: Callable[[], object], large: Callable[[], object]) -> str:
    """Return why the work for the larger input takes more time than its size explains. Return an empty text if it does
    not."""
    before, after = _cheapest(small, large, MOST)
    if _is_fine(before, after, MOST):
        return ""
    return f"{before * 1000:.1f} ms became {after * 1000:.1f} ms for {TIMES} times the input"


def excess(work: Callable[[], object], most: float) -> str:
    """Return why work takes more than `most` times the parsing of YARDSTICK. Return an empty text if it does not."""
    measure, cost = _cheapest(lambda: orjson.loads(YARDSTICK), work, most)
    if _is_fine(measure, cost, most):
        return ""
    return f"{cost * 1000:.1f} ms are {cost / measure:.0f} times the measure of {measure * 1000:.1f} ms, not {most:g}"


def _cheapest(control: Callable[[], object], work: Callable[[], object], most: float) -> tuple[float, float]:
    """Return the least time of both. Measure them alternately until the work is found cheap, or for all rounds."""
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
