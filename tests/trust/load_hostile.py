"""The effect of costly requests on other clients, and the memory that they leave behind (R36, R37)."""

import asyncio
from functools import lru_cache
from pathlib import Path

from tests.security.hostile_run import HostileRun, hostile_run
from tests.trust.figure_types import Result

MOST_STALL = 50.0
"""Milliseconds beyond the wait of a light client on the same machine with a gateway at rest."""

MOST_KEPT = 20.0
"""MB of memory at rest."""


@lru_cache(maxsize=1)
def _run(folder: Path) -> HostileRun:
    return asyncio.run(hostile_run(folder))


def r36(folder: Path) -> Result:
    """Return the figure: the slowest light response beside every costly request, minus the slowest with a gateway at
    rest."""
    run = _run(folder.parent)
    stall = run.worst.felt.worst - run.idle.worst
    value = f"{stall:.0f} ms more than the {run.idle.worst:.0f} ms at rest, beside '{run.worst.name}'"
    return Result(value, stall <= MOST_STALL and run.alive)


def r37(folder: Path) -> Result:
    """Return the figure: the memory of the process after all of them, minus the memory after a few good requests."""
    kept = _run(folder.parent).kept / 1e6
    return Result(f"{kept:+.1f} MB after {len(_run(folder.parent).attacks)} costly requests", kept <= MOST_KEPT)
