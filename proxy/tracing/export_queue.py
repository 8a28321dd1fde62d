"""A queue of finished requests for an exporter. It is bounded, has one thread, and never lets a request wait.

A request is queued by one append. Requests that come while the queue is full are dropped and counted: the collector is
then slow or unreachable, and spans for it are not worth the gateway's memory.
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
"""The most requests that wait, and the most characters of prompts and responses in the waiting requests."""

MOST_AT_ONCE: Final = 256
"""The most requests in one export. Encoding this many takes several ms, during which the thread alternates with the
event loop's thread."""

EXPORT_EVERY: Final = 1.0
"""Requests are collected for this many seconds before an export, unless MOST_AT_ONCE requests come sooner."""


class Exporter(Protocol):
    """An object that sends the collected requests. It is called in one thread, and may block for as long as one export
    may take."""

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        """Send the spans of requests. Return the reason why they were not accepted, in the gateway's own words; `None`
        if they were accepted."""

    def export_metrics(self) -> str | None:
        """Send the metrics. Return the reason why they were not accepted; `None` if they were accepted."""

    def metrics_due(self) -> bool:
        """Return whether it is time to send the metrics again."""

    def stop_repeating(self) -> None:
        """Repeat no failed export from now on, because the process ends. This may be called in any thread."""

    def close(self) -> str | None:
        """Send the metrics for the last time if there are any, and close the connection. Return the reason why the
        metrics were not accepted; `None` if they were accepted."""


class ExportState:
    """The counts of exported and lost requests, over all exporters of a process. `overflowed` is counted on the event
    loop's thread, and the other counts in the threads of the exporters."""

    def __init__(self) -> None:
        self.exported = 0
        self.overflowed = 0
        self.lost = 0
        self.failures = 0
        self._counting = threading.Lock()

    @property
    def dropped(self) -> int:
        """The number of requests whose spans were not delivered."""
        return self.overflowed + self.lost

    def sent(self, count: int) -> None:
        """Count requests whose spans the collector accepted."""
        with self._counting:
            self.exported += count

    def failed(self, count: int) -> None:
        """Count a failed export of `count` requests."""
        with self._counting:
            self.failures += 1
            self.lost += count

    def left(self, count: int) -> None:
        """Count requests that could not be sent in time at the end."""
        with self._counting:
            self.lost += count


TRACES: Final = "traces"
METRICS: Final = "metrics"


class ExportQueue:
    """The queue and the thread of one exporter. `changed` is called in the thread: when exports begin to fail, with the
    kind of export and the reason, and when they succeed again, with `None`."""

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
        """Queue a request, or count it as dropped. Call it only on the event loop's thread."""
        waiting, size = self._waiting, _characters(request) if request.notes.keeps_content else 0
        if len(waiting) >= MOST_QUEUED or (size and self._characters - self._taken_characters + size > MOST_CHARACTERS):
            self._state.overflowed += 1
            return
        self._characters += size
        waiting.append(request)
        if len(waiting) == MOST_AT_ONCE:
            self._wake.set()

    def end(self, within: float) -> None:
        """Let the thread send the waiting requests, for at most `within` seconds and one more export, and then end.
        This returns at once."""
        self._deadline = time.monotonic() + within
        self._ending = True
        self._exporter.stop_repeating()
        self._wake.set()

    def join(self, timeout: float) -> bool:
        """Wait at most `timeout` seconds until the thread has ended, and return whether it has. The thread does not
        keep the process from ending."""
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
        """Export the waiting requests in batches."""
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
        except Exception as error:  # a fault of the gateway or of the library must not end the thread
            return f"a fault ({type(error).__name__})"

    def _report(self, what: str, trouble: str | None, requests: int) -> None:
        if trouble is not None:
            self._state.failed(requests)
        if trouble != self._troubles.get(what):
            self._troubles[what] = trouble
            self._changed(what, trouble)


def _characters(request: FinishedRequest) -> int:
    return len(request.notes.prompt) + len(request.notes.answer)
