"""Finished requests on their way to whoever exports them: bounded, in one thread, and never waited for.

A request is put here by one append. What comes while the queue is full is dropped and counted: the collector is slow or
away, and what it would be told is not worth the memory of the gateway.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from proxy.tracing.span_values import FinishedRequest

MOST_QUEUED: Final = 2048
MOST_CHARACTERS: Final = 16 * 2**20
"""Requests that wait, and characters of prompts and answers in them."""

MOST_AT_ONCE: Final = 256
"""Requests in one export: encoding them takes several ms, in turns with the event loop's thread."""

EXPORT_EVERY: Final = 1.0
"""Seconds for which requests are collected, unless there are MOST_AT_ONCE sooner."""


class Exporter(Protocol):
    """Sends what has been collected. Called in one thread, and may block for as long as one export may take."""

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        """Send the spans of requests; return why they were not taken, in our own words."""

    def export_metrics(self) -> str | None:
        """Send the metrics; return why they were not taken."""

    def metrics_due(self) -> bool:
        """Return whether the metrics have not been sent for long."""

    def hurry(self) -> None:
        """Repeat nothing from now on: the end has come. Called in any thread."""

    def close(self) -> str | None:
        """Send the metrics for the last time where there are some, and close the connection; return why they were not
        taken."""


class ExportState:
    """What became of the requests, over all exporters of a process. `overflowed` is counted on the event loop's thread,
    the others in those of the exporters."""

    def __init__(self) -> None:
        self.exported = 0
        self.overflowed = 0
        self.lost = 0
        self.failures = 0
        self._counting = threading.Lock()

    @property
    def dropped(self) -> int:
        """The requests whose spans nobody got."""
        return self.overflowed + self.lost

    def sent(self, count: int) -> None:
        """Count requests whose spans the collector took."""
        with self._counting:
            self.exported += count

    def failed(self, count: int) -> None:
        """Count an export of so many requests that failed."""
        with self._counting:
            self.failures += 1
            self.lost += count

    def left(self, count: int) -> None:
        """Count requests for which there was no time at the end."""
        with self._counting:
            self.lost += count


TRACES: Final = "traces"
METRICS: Final = "metrics"


class ExportQueue:
    """The queue and the thread of one exporter. `changed` is called in the thread when exports begin to fail, with what
    is exported and why it fails, and when they succeed again, with None."""

    def __init__(self, exporter: Exporter, state: ExportState, changed: Callable[[str, str | None], None]) -> None:
        self._exporter = exporter
        self._state = state
        self._changed = changed
        self._waiting: deque[FinishedRequest] = deque()
        self._characters = 0
        self._taken_characters = 0
        self._wake = threading.Event()
        self._ending = False
        self._deadline = 0.0
        self._troubles: dict[str, str | None] = {}
        self._thread = threading.Thread(target=self._run, name="tracing", daemon=True)

    def start(self) -> None:
        """Begin to export."""
        self._thread.start()

    def put(self, request: FinishedRequest) -> None:
        """Take a request, or count it as dropped. To be called on the event loop's thread alone."""
        waiting, size = self._waiting, _characters(request) if request.notes.keeps_content else 0
        if len(waiting) >= MOST_QUEUED or (size and self._characters - self._taken_characters + size > MOST_CHARACTERS):
            self._state.overflowed += 1
            return
        self._characters += size
        waiting.append(request)
        if len(waiting) == MOST_AT_ONCE:
            self._wake.set()

    def end(self, within: float) -> None:
        """Let the thread send what is there, for so many seconds at most and one export more, and end. Returns at
        once."""
        self._deadline = time.monotonic() + within
        self._ending = True
        self._exporter.hurry()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended, for so many seconds at most, and return whether it has; it does not keep the
        process from ending."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._ending:
            self._wake.wait(EXPORT_EVERY)
            self._wake.clear()
            self._drain()
            if self._exporter.metrics_due():
                self._report(METRICS, self._tried(self._exporter.export_metrics), 0)
        self._drain()
        self._state.left(len(self._waiting))
        self._tried(self._exporter.close)

    def _drain(self) -> None:
        """Export what waits, in parts."""
        while self._waiting and not (self._ending and time.monotonic() > self._deadline):
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_AT_ONCE))]
            self._taken_characters += sum(map(_characters, batch))
            trouble = self._tried(partial(self._exporter.export, batch))
            if trouble is None:
                self._state.sent(len(batch))
            self._report(TRACES, trouble, len(batch))

    def _tried(self, export: Callable[[], str | None]) -> str | None:
        try:
            return export()
        except Exception as error:  # a fault of ours or of the library's must not end the thread
            return f"a fault ({type(error).__name__})"

    def _report(self, what: str, trouble: str | None, requests: int) -> None:
        if trouble is not None:
            self._state.failed(requests)
        if trouble != self._troubles.get(what):
            self._troubles[what] = trouble
            self._changed(what, trouble)


def _characters(request: FinishedRequest) -> int:
    return len(request.notes.prompt) + len(request.notes.answer)
