"""One guard in use. It is called on the event loop or in its threads, within its deadline. Calls are counted and
failures are logged.

A guard that is not slow is called on the event loop. This costs less than a thread, but delays all other requests
meanwhile. A call on the event loop that took longer than its deadline has failed too, even if it returned a verdict in
the end. A guard is called in threads from then on if it blocks the loop for longer than LONGEST_BLOCK, or than its
deadline, three times within a minute.
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
from proxy.plugins.plugin_threads import LOG_INTERVAL, PluginThreads

T = TypeVar("T")

MAX_BLOCKED: Final = 3
"""The number of calls within COUNTED_FOR that may block the loop for too long before the guard moves to threads."""

LONGEST_BLOCK: Final = 0.05
"""The maximum seconds for which one call may block the loop, if its deadline is not shorter. This is wall time: a call
that sleeps or waits for a socket blocks the loop as much as one that computes."""

COUNTED_FOR: Final = 60.0
"""Seconds for which a blocking call is counted, because on a busy machine any guard is slow now and then."""

DEADLINE_PASSED: Final = "took longer than its deadline"


class GuardFailed(Exception):
    """A guard returned no verdict. `why` is for the log."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _judged(work: Callable[[], T], checked: Callable[[T], str | None]) -> tuple[T, str | None]:
    """Return the value of `work` and its fault. Both run on the same thread, because the check of a large request may
    take as long as the work."""
    value = work()
    return value, checked(value)


class RunningGuard:
    """A guard in use. `calls`, `seconds`, `failures` and `refusals` are counted since the process began."""

    def __init__(self, plugin: LoadedPlugin, log: logging.Logger) -> None:
        plugin.users.join()
        self.plugin = plugin
        self.calls = 0
        self.seconds = 0.0
        self.failures = 0
        self.refusals = 0
        self.in_threads = plugin.slow
        self._threads = PluginThreads(plugin.name, log)
        self._blocked: deque[float] = deque(maxlen=MAX_BLOCKED)
        self._failing = False
        self._logged_at = -math.inf
        self._unlogged = 0
        self._log = log
        self._now = loop_clock()

    @property
    def name(self) -> str:
        """The guard's name in the configuration."""
        return self.plugin.name

    async def call(self, work: Callable[[], T], checked: Callable[[T], str | None], *, heavy: bool) -> T:
        """Return the value of `work`, which `checked` must find valid. Raises GuardFailed, and RefusedStream if `work`
        does. A `heavy` request is never checked on the event loop."""
        started = self._now()
        self.calls += 1
        try:
            try:
                if heavy or self.in_threads:
                    outcome = await self._threads.run(partial(_judged, work, checked), self.plugin.deadline)
                else:
                    outcome = attempted(partial(_judged, work, checked))
                    self._watch(
                        self._now() - started
                    )  # the call cannot be stopped, and a verdict after the deadline does not count
            except TimeoutError:
                raise GuardFailed(DEADLINE_PASSED) from None
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
        """Count a failure. Log it if the guard did not fail before. A guard that fails now and then is logged at most
        once a minute, with the number of its failures."""
        self.failures += 1
        self._unlogged += 1
        now = self._now()
        if self._failing or now < self._logged_at + LOG_INTERVAL:
            return
        self._failing, self._logged_at = True, now
        then = "pass unchecked" if self.plugin.fails_open else "are refused"
        often = f" ({self._unlogged} failures since the last message)" if self._unlogged > 1 else ""
        self._log.warning("plugin %s %s; requests %s while that is so%s", self.name, failure.why, then, often)
        self._unlogged = 0

    def close(self) -> None:
        """End the guard's threads."""
        self._threads.close()

    def _recovered(self) -> None:
        if self._failing:
            self._failing = False
            self._log.info("plugin %s works again", self.name)

    def _watch(self, took: float) -> None:
        """Count a call that blocked the event loop. Raises TimeoutError if it passed the deadline."""
        late = took > self.plugin.deadline
        if late or took > LONGEST_BLOCK:
            self._count_block(took)
        if late:
            raise TimeoutError

    def _count_block(self, took: float) -> None:
        now = self._now()
        self._blocked.append(now)
        if self.in_threads or len(self._blocked) < MAX_BLOCKED or now - self._blocked[0] > COUNTED_FOR:
            return
        self.in_threads = True
        self._log.warning(
            "plugin %s blocked the event loop for %.3f s, the third time within a minute: it is called in threads from "
            "now on; it should set slow = True",
            self.name,
            took,
        )
