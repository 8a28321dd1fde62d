"""A fault in an observer is counted and logged, and has no other effect."""

from dataclasses import dataclass, field
from typing import get_args

import pytest

from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import FinishedObserver, ObserverGuard, RunningObserver


@dataclass
class Guarded:
    """An observer guard whose clock a test sets."""

    now: float = 0.0
    metrics: Metrics = field(default_factory=Metrics)
    guard: ObserverGuard = field(init=False)

    def __post_init__(self) -> None:
        self.guard = ObserverGuard(self.metrics.observer_failed, lambda: self.now)

    def faults(self) -> list[str]:
        text = self.metrics.render().decode()
        return [line for line in text.splitlines() if line.startswith("dragoman_observer_failures_total{")]


def fails(number: int) -> int:
    raise TypeError(f"an observer's own fault with {number}")


def test_what_an_observer_returns_is_passed_on() -> None:
    made = Guarded()
    assert made.guard.call("log", "req-1", lambda number: number + 1, 2) == 3
    assert made.faults() == []


def test_a_fault_is_counted_and_nothing_is_raised() -> None:
    made = Guarded()
    names: tuple[RunningObserver, ...] = ("tracing", "limits", "limits")
    for name in names:
        assert made.guard.call(name, "req-1", fails, 2) is None
    assert sorted(made.faults()) == [
        'dragoman_observer_failures_total{observer="limits"} 2.0',
        'dragoman_observer_failures_total{observer="tracing"} 1.0',
    ]


def test_each_observer_has_a_traceback_a_second(caplog: pytest.LogCaptureFixture) -> None:
    made = Guarded()
    for made.now in (0.0, 0.9, 1.0):
        made.guard.call("tracing", "req-1", fails, 2)
    made.guard.call("payload_log", "req-2", fails, 2)
    assert [record.message for record in caplog.records] == [
        "request req-1: a fault in tracing; the response is not affected",
        "request req-1: a fault in tracing; the response is not affected",
        "request req-2: a fault in payload_log; the response is not affected",
    ]


def test_what_ends_a_request_is_no_fault_of_an_observer() -> None:
    def leave(number: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Guarded().guard.call("log", "req-1", leave, 2)


def test_the_names_are_few() -> None:
    assert len({*get_args(FinishedObserver), *get_args(RunningObserver)}) == 9
