"""One guard in use: called on the event loop or in its threads, within its deadline, counted, its failures logged.

A guard that is not slow is called on the loop, which costs less than a thread and holds everybody up meanwhile. A call
that took longer than its deadline has failed there too, whatever it returned in the end. A guard that blocks the loop
for longer than LONGEST_BLOCK, or its deadline, three times in a minute is called in threads from then on.
"""

import logging
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from proxy.loop_clock import loop_clock
from proxy.plugins.api import RefusedStream
from proxy.plugins.call_plugin import Raised, attempted
from proxy.plugins.load_plugins import LoadedPlugin
from proxy.plugins.plugin_threads import SILENCE, PluginThreads

T = TypeVar("T")

MOST_BLOCKED: Final = 3
"""Calls within COUNTED_FOR that block the loop for too long before no other one does."""

LONGEST_BLOCK: Final = 0.05
"""Seconds for which one call may block the loop, if its deadline is not shorter. They are of wall time: a call that
sleeps or waits for a socket holds the loop as one that computes does."""

COUNTED_FOR: Final = 60.0
"""Seconds for which a call that blocked the loop is counted: a busy machine makes any guard slow now and then."""

PASSED: Final = "took longer than its deadline"


class GuardFailed(Exception):
    """A guard gave no verdict; `why` is for the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _judged(work: Callable[[], T], checked: Callable[[T], str | None]) -> tuple[T, str | None]:
    """Return what `work` returns, and the fault of it: looking for one may take as long in a large request."""
    value = work()
    return value, checked(value)


class RunningGuard:
    """See the module. `calls`, `seconds` and `failures` are since its process began."""

    def __init__(self, plugin: LoadedPlugin, log: logging.Logger) -> None:
        plugin.users.join()
        self.plugin = plugin
        self.calls = 0
        self.seconds = 0.0
        self.failures = 0
        self.refusals = 0
        self.in_threads = plugin.slow
        self._threads = PluginThreads(plugin.name, log)
        self._blocked: deque[float] = deque(maxlen=MOST_BLOCKED)
        self._failing = False
        self._said_at = -math.inf
        self._unsaid = 0
        self._log = log
        self._now = loop_clock()

    @property
    def name(self) -> str:
        """Its name in the table."""
        return self.plugin.name

    async def call(self, work: Callable[[], T], checked: Callable[[T], str | None], *, heavy: bool) -> T:
        """Return what `work` returns, which `checked` finds no fault with. Raises GuardFailed, and
        RefusedStream where `work` does. A `heavy` request is never looked at on the loop."""
        started = self._now()
        self.calls += 1
        try:
            try:
                if heavy or self.in_threads:
                    outcome = await self._threads.run(partial(_judged, work, checked), self.plugin.deadline)
                else:
                    outcome = attempted(partial(_judged, work, checked))
                    self._watch(self._now() - started)  # it cannot be stopped: what it said too late does not count
            except TimeoutError:
                raise GuardFailed(PASSED) from None
        finally:
            self.seconds += self._now() - started
        if isinstance(outcome, Raised):
            raise GuardFailed(f"raised {outcome}") if not isinstance(outcome.error, RefusedStream) else outcome.error
        value, fault = outcome.value
        if fault is not None:
            raise GuardFailed(fault)
        self._recovered()
        return value

    def failed(self, failure: GuardFailed) -> None:
        """Count a failure, and log it where the guard has not failed before: one that fails now and then does so once a
        minute, with how often it has."""
        self.failures += 1
        self._unsaid += 1
        now = self._now()
        if self._failing or now < self._said_at + SILENCE:
            return
        self._failing, self._said_at = True, now
        then = "pass unchecked" if self.plugin.fails_open else "are refused"
        often = f" ({self._unsaid} failures since this was said before)" if self._unsaid > 1 else ""
        self._log.warning("plugin %s %s; requests %s while that is so%s", self.name, failure.why, then, often)
        self._unsaid = 0

    def close(self) -> None:
        """End its threads."""
        self._threads.close()

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            self._log.info("plugin %s works again", self.name)

    def _watch(self, took: float) -> None:
        """Count a call on the loop that blocked it. Raises TimeoutError for one that passed its deadline."""
        late = took > self.plugin.deadline
        if late or took > LONGEST_BLOCK:
            self._count_block(took)
        if late:
            raise TimeoutError

    def _count_block(self, took: float) -> None:
        now = self._now()
        self._blocked.append(now)
        if self.in_threads or len(self._blocked) < MOST_BLOCKED or now - self._blocked[0] > COUNTED_FOR:
            return
        self.in_threads = True
        self._log.warning(
            "plugin %s blocked the event loop for %.3f s, the third time within a minute: it is called in threads from "
            "now on; it should say slow = True",
            self.name,
            took,
        )
