"""The queue in front of a collector: bounded, drained in batches, and never blocking."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from proxy.tracing import export_queue
from proxy.tracing.export_queue import MOST_AT_ONCE, MOST_CHARACTERS, MOST_QUEUED, ExportQueue, ExportState
from proxy.tracing.span_values import FinishedRequest
from tests.proxy.tracing.kit.finished import finished, trace
from tests.support.waiting import until


@dataclass
class Sink:
    """An exporter that returns `answers` in turn, then success, once it is `open`."""

    answers: list[str | None] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    metrics: list[str | None] = field(default_factory=list)
    due: bool = False
    closed: bool = False
    hurried: bool = False
    fault: bool = False
    open: threading.Event = field(default_factory=threading.Event)

    def export(self, requests: Sequence[FinishedRequest]) -> str | None:
        self.open.wait()
        self.batches.append(len(requests))
        if self.fault:
            raise ZeroDivisionError("canary")
        return self.answers.pop(0) if self.answers else None

    def export_metrics(self) -> str | None:
        self.due = False
        return self.metrics.pop(0) if self.metrics else None

    def metrics_due(self) -> bool:
        return self.due

    def stop_repeating(self) -> None:
        self.hurried = True

    def close(self) -> str | None:
        self.closed = True
        return None


@dataclass
class Rig:
    """A queue in front of a sink, which is closed until the test opens it."""

    sink: Sink
    state: ExportState
    changes: list[tuple[str, str | None]]
    queue: ExportQueue

    def end(self) -> None:
        self.sink.open.set()
        self.queue.end(10.0)
        self.queue.join(40.0)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(export_queue, "EXPORT_EVERY", 0.005)
    sink, state, changes = Sink(), ExportState(), []  # type: ignore[var-annotated]
    made = Rig(sink, state, changes, ExportQueue(sink, state, lambda what, why: changes.append((what, why))))
    made.queue.start()
    yield made
    made.end()


async def test_what_is_put_is_exported_in_parts(rig: Rig) -> None:
    for _ in range(2 * MOST_AT_ONCE + 1):
        rig.queue.put(finished())
    rig.sink.open.set()
    await until(lambda: rig.state.exported == 2 * MOST_AT_ONCE + 1)
    assert max(rig.sink.batches) <= MOST_AT_ONCE
    assert (rig.state.dropped, rig.state.failures, rig.changes) == (0, 0, [])


def test_while_the_collector_hangs_memory_is_bounded_and_the_rest_counted(rig: Rig) -> None:
    for _ in range(2 * MOST_QUEUED):
        rig.queue.put(finished())
    waiting = MOST_QUEUED + MOST_AT_ONCE
    assert 2 * MOST_QUEUED - waiting <= rig.state.dropped <= MOST_QUEUED
    dropped = rig.state.dropped
    rig.end()
    assert rig.state.exported == 2 * MOST_QUEUED - dropped


def test_texts_are_bounded_by_their_length(rig: Rig) -> None:
    large = trace(keeps_content=True, prompt="x" * (MOST_CHARACTERS // 4), answer="x" * (MOST_CHARACTERS // 4))
    for _ in range(10):
        rig.queue.put(finished(of=large))
    rig.queue.put(finished())
    assert 6 <= rig.state.dropped <= 8
    dropped = rig.state.dropped
    rig.end()
    rig.queue.put(finished(of=large))
    assert (rig.state.exported, rig.state.dropped) == (11 - dropped, dropped)


async def test_failures_are_counted_and_told_once_until_they_change(rig: Rig) -> None:
    rig.sink.answers = ["away", "away", None]
    rig.sink.open.set()
    for number in range(1, 4):
        rig.queue.put(finished())
        await until(lambda number=number: len(rig.sink.batches) == number)  # type: ignore[misc]
    await until(lambda: rig.state.exported == 1)
    await until(lambda: len(rig.changes) == 2)
    assert rig.changes == [("traces", "away"), ("traces", None)]
    assert (rig.state.failures, rig.state.dropped) == (2, 2)


async def test_metrics_have_trouble_of_their_own(rig: Rig) -> None:
    rig.sink.metrics, rig.sink.due = ["away"], True
    await until(lambda: rig.changes == [("metrics", "away")])
    rig.sink.open.set()
    rig.queue.put(finished())
    await until(lambda: rig.state.exported == 1)
    rig.sink.due = True
    await until(lambda: rig.changes[1:] == [("metrics", None)])
    assert (rig.state.failures, rig.state.dropped) == (1, 0)


async def test_a_fault_does_not_end_the_thread_and_is_told_without_its_text(rig: Rig) -> None:
    rig.sink.fault = True
    rig.sink.open.set()
    rig.queue.put(finished())
    await until(lambda: rig.changes == [("traces", "a fault (ZeroDivisionError)")])
    rig.sink.fault = False
    rig.queue.put(finished())
    await until(lambda: rig.state.exported == 1)


def test_the_end_sends_what_is_left_and_closes(rig: Rig) -> None:
    for _ in range(10):
        rig.queue.put(finished())
    rig.end()
    assert (rig.state.exported, rig.sink.closed, rig.sink.hurried) == (10, True, True)


def test_an_end_that_nobody_has_time_for_counts_what_is_left_and_is_not_waited_for(rig: Rig) -> None:
    for _ in range(10):
        rig.queue.put(finished())
    rig.queue.end(-1.0)
    rig.queue.join(0.01)
    rig.sink.open.set()
    rig.queue.join(40.0)
    assert rig.sink.closed
    assert rig.state.exported + rig.state.dropped == 10
