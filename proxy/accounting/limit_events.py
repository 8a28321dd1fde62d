"""Logs what happens to limits: budgets that come to a step, and a wall clock that was set back.

A gateway of several processes says it once for each.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from proxy.limits.limit import ScopeBudget, budget_words
from proxy.limits.limit_registry import LimitRegistry

LOOK_EVERY: Final = 1.0
"""Seconds between two looks."""

_THEN: Final = {"warn": "", "reject": "; its requests are refused"}


class LimitEvents:
    """Logs the events of a process's limits. `wall` returns unix seconds."""

    def __init__(self, book: LimitRegistry, wall: Callable[[], float], log: logging.Logger) -> None:
        self._book = book
        self._wall = wall
        self._log = log
        self._set_back = False

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_EVERY)

    def look(self) -> None:
        """Log what happened since the last look."""
        reached = self._book.notes.reached
        while reached:
            self._log.warning("%s", reached_words(*reached.popleft()))
        before, self._set_back = self._set_back, self._book.set_back(self._wall())
        if self._set_back and not before:
            self._log.warning(
                "limits: the clock was set back: quotas and budgets stay in the later period until it ends"
            )


def reached_words(scope: str, budget: ScopeBudget) -> str:
    """Return the line that says what a team has come to."""
    then = f"; its requests are answered by {budget.route}" if budget.then == "route" else _THEN[budget.then]
    return f"{scope} has come to {budget.at:.0%} of its budget of {budget_words(budget)}{then}"
