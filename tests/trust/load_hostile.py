"""The effect of costly requests on other clients, and what they leave behind (R36, R37)."""

import asyncio
from functools import lru_cache
from pathlib import Path

from tests.security.hostile_run import HostileRun, hostile_run
from tests.trust.figure_types import Result

MOST_STALL = 50.0
"""Milliseconds beyond what a light client waits on the same machine beside a gateway at rest."""

MOST_KEPT = 20.0
"""MB."""


@lru_cache(maxsize=1)
def _run(folder: Path) -> HostileRun:
    return asyncio.run(hostile_run(folder))


def r36(folder: Path) -> Result:
    """The slowest light answer beside every costly request, less the slowest beside a gateway at rest."""
    run = _run(folder.parent)
    stall = run.worst.felt.worst - run.idle.worst
    value = f"{stall:.0f} ms more than the {run.idle.worst:.0f} ms at rest, beside '{run.worst.name}'"
    return Result(value, stall <= MOST_STALL and run.alive)


def r37(folder: Path) -> Result:
    """The memory of the process after all of them, less that after a few good requests."""
    kept = _run(folder.parent).kept / 1e6
    return Result(f"{kept:+.1f} MB after {len(_run(folder.parent).attacks)} costly requests", kept <= MOST_KEPT)
