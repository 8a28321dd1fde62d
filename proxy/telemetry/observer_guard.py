"""Guards observers of requests, both running and finished, so that a fault in an observer changes no response.

A fault is counted, and logged with its traceback; the request and its other observers continue.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, Literal, TypeVar, TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")

FinishedObserver = Literal["ledger", "metrics", "log", "page", "payload_log", "tracing", "plugins"]
"""Names of the observers of finished requests, in the metrics and in the log."""

RunningObserver = Literal["payload_log", "tracing", "limits", "watchdog"]
"""Names of the observers of running requests. The observer `limits` releases the slots that a request held."""

ObserverName = FinishedObserver | RunningObserver

TRACEBACK_EVERY: Final = 1.0
"""The least seconds between two tracebacks of one observer, because a fault in every request must not fill the disk."""


class ObserverGuard:
    """Calls observers and handles their faults. `count` counts a fault by its observer's name; a fault of `count`
    itself is only logged. `clock` returns seconds."""

    def __init__(self, count: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._clock = clock
        self._counting = False
        self._traced: dict[str, float] = {}
        self._log = logging.getLogger("dragoman")

    def call(
        self,
        name: ObserverName,
        request_id: str,
        report: Callable[[Unpack[Arguments]], Result],
        *about: *Arguments,
    ) -> Result | None:
        """Call an observer; return `None` after a fault, which is logged and counted."""
        try:
            return report(*about)
        except Exception:
            self._failed(name, request_id)
            return None

    def of(self, name: ObserverName, request_id: str) -> "OneGuard":
        """Return the guard of one observer of one request."""
        return OneGuard(self, name, request_id)

    def _failed(self, name: ObserverName, request_id: str) -> None:
        """Count the current fault, and log it unless a fault of the same observer was logged just now."""
        now = self._clock()
        if now - self._traced.get(name, -TRACEBACK_EVERY) >= TRACEBACK_EVERY:
            self._traced[name] = now
            self._log.exception("request %s: a fault in %s; the response is not affected", request_id, name)
        if not self._counting:
            self._counting = True
            self._count(name)
            self._counting = False


class OneGuard:
    """Calls one observer of one request until its first fault, after which the observer's data is incomplete."""

    __slots__ = ("_guard", "_name", "_request_id", "works")

    def __init__(self, guard: ObserverGuard, name: ObserverName, request_id: str) -> None:
        self._guard = guard
        self._name = name
        self._request_id = request_id
        self.works = True

    def call(self, report: Callable[[Unpack[Arguments]], None], *about: *Arguments) -> None:
        """Call the observer unless it has failed."""
        if self.works:
            self.works = self._guard.call(self._name, self._request_id, _done, report, about) is True


def _done(report: Callable[..., None], about: tuple[object, ...]) -> Literal[True]:
    report(*about)
    return True
